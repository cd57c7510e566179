#include "frontend/readers/digits.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <numbers>
#include <span>
#include <thread>

#include "frontend/readers/digit_strokes.h"
#include "frontend/readers/kind.h"
#include "frontend/readers/mnist.h"
#include "frontend/readers/split_mix64.h"
#include "ir/threads.h"

namespace fluid {
namespace {

constexpr int kDigitSide = 28;
constexpr int kDigitPixels = kDigitSide * kDigitSide;
constexpr int kStepsPerSpan = 4;  // number of line segments between two control points
/// Standard deviation of the jitter of control points, relative to the height of a digit.
constexpr double kJitter = 0.04;
constexpr double kMaxRotation = 0.25;  // largest rotation of a digit, in radians
constexpr double kMaxShear = 0.4;
constexpr double kMaxShift = 2.25;  // largest offset of the digit from the centre, in pixels
constexpr double kEdgeWidth = 1.1;  // width of the anti-aliased edge of a stroke, in pixels
constexpr size_t kMaxThreads = 8;
constexpr size_t kSamplesPerTask = 256;  // number of samples per parallel task

struct Segment {
  Point a, b;
};

/// Evaluates the Catmull-Rom spline (1974) with control points a, b, c and d at `t`. The spline is
/// b at t = 0 and c at t = 1.
double catmull_rom(double a, double b, double c, double d, double t) {
  return b + t / 2 * (c - a + t * (2 * a - 5 * b + 4 * c - d + t * (3 * (b - c) + d - a)));
}

/// Appends line segments that approximate the spline of a stroke.
void flatten(const Stroke& stroke, std::vector<Segment>& segments) {
  const auto point = [&](int64_t i) {
    return stroke[static_cast<size_t>(std::clamp<int64_t>(i, 0, std::ssize(stroke) - 1))];
  };
  Point from = stroke.front();
  for (int64_t i = 0; i + 1 < std::ssize(stroke); ++i) {
    const Point p = point(i - 1), q = point(i), r = point(i + 1), s = point(i + 2);
    for (int step = 1; step <= kStepsPerSpan; ++step) {
      const double t = static_cast<double>(step) / kStepsPerSpan;
      const Point to = {catmull_rom(p.x, q.x, r.x, s.x, t), catmull_rom(p.y, q.y, r.y, s.y, t)};
      segments.push_back({from, to});
      from = to;
    }
  }
}

/// Returns the line segments of a random variant of `digit`. The control points are randomly
/// jittered, rotated, sheared and stretched.
std::vector<Segment> random_segments(int digit, SplitMix64& random) {
  const auto& variants = digit_stroke_variants(digit);
  std::vector<Stroke> strokes = variants[random.below(variants.size())];
  const double turn = random.uniform(-kMaxRotation, kMaxRotation);
  // Usually positive, because most handwriting leans right.
  const double shear = random.uniform(-0.15, kMaxShear);
  const double width = random.uniform(0.45, 1.0);
  std::vector<Segment> segments;
  for (Stroke& stroke : strokes) {
    for (Point& p : stroke) {
      const double y = p.y - 0.5 + kJitter * random.normal();
      const double x = width * (p.x - 0.5 + kJitter * random.normal()) - shear * y;
      p = {std::cos(turn) * x - std::sin(turn) * y, std::sin(turn) * x + std::cos(turn) * y};
    }
    flatten(stroke, segments);
  }
  return segments;
}

/// Scales the segments so that the longer side of their bounding box is `size` pixels, and moves
/// their centre of mass to `centre`.
void scale_and_centre(std::vector<Segment>& segments, double size, Point centre) {
  Point low = segments[0].a, high = low, mass;
  double length = 0;
  for (const auto& [a, b] : segments) {
    low = {std::min({low.x, a.x, b.x}), std::min({low.y, a.y, b.y})};
    high = {std::max({high.x, a.x, b.x}), std::max({high.y, a.y, b.y})};
    const double l = std::hypot(b.x - a.x, b.y - a.y);
    mass = {mass.x + l * (a.x + b.x) / 2, mass.y + l * (a.y + b.y) / 2};
    length += l;
  }
  const double scale = size / std::max(high.x - low.x, high.y - low.y);
  mass = {mass.x / length, mass.y / length};
  for (auto& [a, b] : segments) {
    a = {centre.x + scale * (a.x - mass.x), centre.y + scale * (a.y - mass.y)};
    b = {centre.x + scale * (b.x - mass.x), centre.y + scale * (b.y - mass.y)};
  }
}

double distance(Point p, const Segment& s) {
  const double dx = s.b.x - s.a.x, dy = s.b.y - s.a.y;
  const double square = dx * dx + dy * dy;
  const double along = (p.x - s.a.x) * dx + (p.y - s.a.y) * dy;
  const double t = square > 0 ? std::clamp(along / square, 0.0, 1.0) : 0.0;
  const double ex = p.x - s.a.x - t * dx, ey = p.y - s.a.y - t * dy;
  return std::sqrt(ex * ex + ey * ey);
}

/// Draws a line of half-width `radius` into `image`. Pixels are 1 on the line and fall to 0 across
/// an edge of width kEdgeWidth.
void rasterize(const Segment& s, double radius, std::span<float> image) {
  const double reach = radius + kEdgeWidth / 2;
  const auto first = [&](double v) { return std::max(0, static_cast<int>(std::ceil(v - reach))); };
  const auto last = [&](double v) {
    return std::min(kDigitSide - 1, static_cast<int>(std::floor(v + reach)));
  };
  for (int y = first(std::min(s.a.y, s.b.y)); y <= last(std::max(s.a.y, s.b.y)); ++y) {
    for (int x = first(std::min(s.a.x, s.b.x)); x <= last(std::max(s.a.x, s.b.x)); ++x) {
      const double d = distance({static_cast<double>(x), static_cast<double>(y)}, s);
      const double value = std::clamp((reach - d) / kEdgeWidth, 0.0, 1.0);
      float& pixel = image[static_cast<size_t>(y * kDigitSide + x)];
      pixel = std::max(pixel, static_cast<float>(value));
    }
  }
}

/// Returns an approximately normal random number with mean 0 and variance 1: the scaled sum of four
/// uniform numbers.
double approximate_normal(SplitMix64& random) {
  const uint64_t bits = random.next();
  const auto sum = static_cast<double>((bits & 0xffff) + (bits >> 16 & 0xffff) +
                                       (bits >> 32 & 0xffff) + (bits >> 48));
  return (sum / 65536 - 2) * std::numbers::sqrt3;
}

void draw_digit(int digit, SplitMix64& random, std::span<uint8_t> out) {
  std::vector<Segment> segments = random_segments(digit, random);
  const double centre = (kDigitSide - 1) / 2.0;
  const double size = random.uniform(14, 20);
  const Point position = {centre + random.uniform(-kMaxShift, kMaxShift),
                          centre + random.uniform(-kMaxShift, kMaxShift)};
  scale_and_centre(segments, size, position);
  const double radius = random.uniform(0.5, 1.7);
  std::array<float, kDigitPixels> image = {};
  for (const Segment& s : segments) rasterize(s, radius, image);
  const double strength = random.uniform(200, 255), noise = random.uniform(0, 16);
  for (size_t i = 0; i < out.size(); ++i) {
    const double value =
        strength * static_cast<double>(image[i]) + noise * approximate_normal(random);
    out[i] = static_cast<uint8_t>(std::clamp(value, 0.0, 255.0));
  }
}

}  // namespace

Dataset generate_digits(int64_t samples, uint64_t seed) {
  Tensor images(DType::u8, {samples, 1, kDigitSide, kDigitSide}), labels(DType::u8, {samples});
  const std::span<uint8_t> pixels = images.as<uint8_t>(), classes = labels.as<uint8_t>();
  const size_t all = classes.size();
  std::atomic<size_t> next = 0;
  const auto generate = [&] {
    for (size_t first; (first = next.fetch_add(kSamplesPerTask)) < all;) {
      for (size_t i = first; i < std::min(first + kSamplesPerTask, all); ++i) {
        SplitMix64 random(seed, i);
        classes[i] = static_cast<uint8_t>(random.below(10));
        draw_digit(classes[i], random, pixels.subspan(i * kDigitPixels, kDigitPixels));
      }
    }
  };
  run_on_threads(std::clamp<size_t>(std::thread::hardware_concurrency(), 1, kMaxThreads), generate);
  return digit_dataset(std::move(images), labels, "digits");
}

DataKind digits_kind() {
  return {.name = "digits",
          .usage = "digits",
          .doc =
              "synthetic handwritten digits: columns image u8[1, 28, 28] and label i64; n=N "
              "samples, seed=N",
          .needs_path = false,
          .options = {"n", "seed", "split"},
          .open_source = in_memory([](const DataArgs& args) {
            constexpr int64_t kMaxSamples = 1'000'000;
            const bool test = args.get_choice("split", "train", {"train", "test"}) == "test";
            const int64_t n = args.get_integer("n", test ? kTestDigits : kTrainDigits, 1);
            if (n > kMaxSamples) args.fail("n is over 1000000");
            const auto seed = static_cast<uint64_t>(args.get_integer("seed", 0, 0));
            return generate_digits(n, 2 * seed + (test ? 1 : 0));
          })};
}

}  // namespace fluid
