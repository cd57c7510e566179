#include "frontend/images/resize.h"

#include <algorithm>
#include <cmath>

namespace fluid {
namespace {

/// Fraction bits of the fixed-point weights, as in PIL.
constexpr int kWeightBits = 22;

/// The filter taps of each output pixel along one axis.
struct Taps {
  std::vector<int64_t> first;    // per output pixel: index of the first input pixel
  std::vector<int32_t> count;    // per output pixel: number of taps
  std::vector<int32_t> weights;  // filter weights [outputs, max_count]
  int64_t max_count = 0;
};

double triangle(double x) { return std::max(0.0, 1 - std::abs(x)); }

/// The cubic convolution kernel of Keys (1981) with a = -0.5.
double cubic(double x) {
  constexpr double a = -0.5;
  x = std::abs(x);
  if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  if (x < 2) return (((x - 5) * x + 8) * x - 4) * a;
  return 0;
}

Taps taps_of(int64_t inputs, int64_t outputs, Interpolation interpolation) {
  const bool bilinear = interpolation == Interpolation::bilinear;
  const double scale = static_cast<double>(inputs) / static_cast<double>(outputs);
  const double widening = std::max(scale, 1.0), support = (bilinear ? 1 : 2) * widening;
  Taps taps;
  taps.max_count = static_cast<int64_t>(std::ceil(support)) * 2 + 1;
  taps.weights.resize(static_cast<size_t>(taps.max_count * outputs));
  std::vector<double> weights(static_cast<size_t>(taps.max_count));
  for (int64_t i = 0; i < outputs; ++i) {
    const double center = (static_cast<double>(i) + 0.5) * scale;
    const int64_t first = std::max<int64_t>(0, static_cast<int64_t>(center - support + 0.5));
    const int64_t end = std::min(inputs, static_cast<int64_t>(center + support + 0.5));
    double sum = 0;
    for (int64_t x = first; x < end; ++x) {
      const double at = (static_cast<double>(x) - center + 0.5) * (1 / widening);
      sum += weights[static_cast<size_t>(x - first)] = bilinear ? triangle(at) : cubic(at);
    }
    for (int64_t x = 0; x < end - first; ++x) {
      const double weight =
          sum == 0 ? weights[static_cast<size_t>(x)] : weights[static_cast<size_t>(x)] / sum;
      const double fixed = weight * (1 << kWeightBits);
      taps.weights[static_cast<size_t>(i * taps.max_count + x)] =
          static_cast<int32_t>(fixed + (weight < 0 ? -0.5 : 0.5));
    }
    taps.first.push_back(first);
    taps.count.push_back(static_cast<int32_t>(end - first));
  }
  return taps;
}

constexpr int32_t kHalf = 1 << (kWeightBits - 1);

uint8_t rounded(int32_t sum) {
  return static_cast<uint8_t>(std::clamp(sum >> kWeightBits, 0, 255));
}

template <int kChannels>
void filter_row(const uint8_t* from, uint8_t* to, const Taps& taps) {
  const auto outputs = static_cast<int64_t>(taps.first.size());
  for (int64_t i = 0; i < outputs; ++i, to += kChannels) {
    const uint8_t* pixel = from + taps.first[static_cast<size_t>(i)] * kChannels;
    const int32_t* weight = taps.weights.data() + i * taps.max_count;
    int32_t sum[kChannels];
    std::fill(sum, sum + kChannels, kHalf);
    for (int32_t x = 0; x < taps.count[static_cast<size_t>(i)]; ++x, pixel += kChannels) {
      for (int c = 0; c < kChannels; ++c) sum[c] += pixel[c] * weight[x];
    }
    for (int c = 0; c < kChannels; ++c) to[c] = rounded(sum[c]);
  }
}

void filter_row(const uint8_t* from, uint8_t* to, const Taps& taps, int64_t channels) {
  switch (channels) {
    case 1:
      return filter_row<1>(from, to, taps);
    case 3:
      return filter_row<3>(from, to, taps);
    default:
      return filter_row<4>(from, to, taps);
  }
}

}  // namespace

Image resize(const Image& image, const ImageBox& box, int64_t height, int64_t width,
             Interpolation interpolation) {
  const Taps across = taps_of(box.width, width, interpolation);
  const Taps down = taps_of(box.height, height, interpolation);
  Image narrowed(box.height, width, image.channels);
  for (int64_t y = 0; y < box.height; ++y) {
    filter_row(image.row(box.top + y) + box.left * image.channels, narrowed.row(y), across,
               image.channels);
  }
  Image out(height, width, image.channels);
  const int64_t row_bytes = width * image.channels;
  std::vector<int32_t> sums(static_cast<size_t>(row_bytes));
  for (int64_t y = 0; y < height; ++y) {
    std::ranges::fill(sums, kHalf);
    for (int32_t tap = 0; tap < down.count[static_cast<size_t>(y)]; ++tap) {
      const uint8_t* from = narrowed.row(down.first[static_cast<size_t>(y)] + tap);
      const int32_t weight = down.weights[static_cast<size_t>(y * down.max_count + tap)];
      int32_t* sum = sums.data();
      for (int64_t i = 0; i < row_bytes; ++i) sum[i] += from[i] * weight;
    }
    uint8_t* to = out.row(y);
    for (int64_t i = 0; i < row_bytes; ++i) to[i] = rounded(sums[static_cast<size_t>(i)]);
  }
  return out;
}

}  // namespace fluid
