#include "frontend/images/color.h"

#include <algorithm>
#include <cmath>

namespace fluid {
namespace {

/// Luma of ITU-R 601-2, in PIL's fixed-point arithmetic.
uint8_t luma(const uint8_t* rgb) {
  return static_cast<uint8_t>((rgb[0] * 19595 + rgb[1] * 38470 + rgb[2] * 7471 + 0x8000) >> 16);
}

/// Interpolates from `base` (factor 0) to `value` (factor 1), or extrapolates. Rounds towards zero
/// and clamps to [0, 255].
uint8_t blend(int base, int value, float factor) {
  const float mixed = static_cast<float>(base) + factor * static_cast<float>(value - base);
  return static_cast<uint8_t>(std::clamp(mixed, 0.f, 255.f));
}

uint8_t clipped(double x) { return static_cast<uint8_t>(std::clamp(x, 0., 255.)); }

struct Hsv {
  uint8_t h = 0, s = 0, v = 0;
};

Hsv hsv_of(const uint8_t* rgb) {
  const uint8_t most = std::max({rgb[0], rgb[1], rgb[2]}),
                least = std::min({rgb[0], rgb[1], rgb[2]});
  if (most == least) return {0, 0, most};
  const auto range = static_cast<float>(most - least);
  const float s = range / static_cast<float>(most);
  const float r = static_cast<float>(most - rgb[0]) / range;
  const float g = static_cast<float>(most - rgb[1]) / range;
  const float b = static_cast<float>(most - rgb[2]) / range;
  float h = 0;
  if (rgb[0] == most) {
    h = b - g;
  } else if (rgb[1] == most) {
    h = static_cast<float>(2.0 + r - b);
  } else {
    h = static_cast<float>(4.0 + g - r);
  }
  h = static_cast<float>(std::fmod(h / 6.0 + 1.0, 1.0));
  return {clipped(static_cast<int>(h * 255.0)), clipped(static_cast<int>(s * 255.0)), most};
}

void write_rgb(const Hsv& hsv, uint8_t* rgb) {
  if (hsv.s == 0) {
    std::fill(rgb, rgb + 3, hsv.v);
    return;
  }
  const double sector = static_cast<float>(hsv.h) * 6.0 / 255.0;
  const int i = static_cast<int>(std::floor(sector));
  const auto f = static_cast<float>(sector - i);
  const auto s = static_cast<float>(static_cast<float>(hsv.s) / 255.0);
  const uint8_t v = hsv.v;
  const uint8_t p = clipped(std::round(v * (1.0 - s)));
  const uint8_t q = clipped(std::round(v * (1.0 - s * f)));
  const uint8_t t = clipped(std::round(v * (1.0 - s * (1.0 - f))));
  const uint8_t sectors[6][3] = {{v, t, p}, {q, v, p}, {p, v, t}, {p, q, v}, {t, p, v}, {v, p, q}};
  std::copy_n(sectors[i % 6], 3, rgb);
}

}  // namespace

void adjust_brightness(Image& image, double factor) {
  if (factor == 1) return;
  for (uint8_t& value : image.pixels) value = blend(0, value, static_cast<float>(factor));
}

void adjust_contrast(Image& image, double factor) {
  if (factor == 1 || image.pixels.empty()) return;
  const int64_t pixels = image.height * image.width;
  int64_t sum = 0;
  for (int64_t i = 0; i < pixels; ++i) {
    const uint8_t* pixel = image.pixels.data() + i * image.channels;
    sum += image.channels == 3 ? luma(pixel) : pixel[0];
  }
  const int mean = static_cast<int>(static_cast<double>(sum) / static_cast<double>(pixels) + 0.5);
  for (uint8_t& value : image.pixels) value = blend(mean, value, static_cast<float>(factor));
}

void adjust_saturation(Image& image, double factor) {
  if (factor == 1 || image.channels != 3) return;
  for (int64_t i = 0; i < image.height * image.width; ++i) {
    uint8_t* pixel = image.pixels.data() + i * 3;
    const int gray = luma(pixel);
    for (int c = 0; c < 3; ++c) pixel[c] = blend(gray, pixel[c], static_cast<float>(factor));
  }
}

void adjust_hue(Image& image, double turn) {
  if (turn == 0 || image.channels != 3) return;
  const auto shift = static_cast<uint8_t>(static_cast<int>(turn * 255));
  for (int64_t i = 0; i < image.height * image.width; ++i) {
    uint8_t* pixel = image.pixels.data() + i * 3;
    Hsv hsv = hsv_of(pixel);
    hsv.h = static_cast<uint8_t>(hsv.h + shift);
    write_rgb(hsv, pixel);
  }
}

}  // namespace fluid
