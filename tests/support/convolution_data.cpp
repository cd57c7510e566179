#include "tests/support/convolution_data.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "tests/support/product_data.h"

namespace fluid::testing {
namespace {

using ImageIndex = std::array<int64_t, 4>;  ///< [n, c, h, w], or extents

int64_t windows(int64_t in, const ConvolutionSize& s) {
  return (in + 2 * s.padding - s.dilation * (s.taps - 1) - 1) / s.stride + 1;
}

/// Where an element of images or maps with these extents lies.
int64_t image_at(const FluidGpuConvolution& c, const ImageIndex& extents, const ImageIndex& p) {
  const auto [n, channel, y, x] = p;
  const auto [_, channels, height, width] = extents;
  return c.channels_last != 0 ? ((n * height + y) * width + x) * channels + channel
                              : ((n * channels + channel) * height + y) * width + x;
}

ImageIndex images(const FluidGpuConvolution& c) {
  return {c.images, c.channels, c.height, c.width};
}
ImageIndex maps(const FluidGpuConvolution& c) {
  return {c.images, c.filters, c.map_height, c.map_width};
}

int64_t product(const ImageIndex& p) { return p[0] * p[1] * p[2] * p[3]; }
int64_t filter_numbers(const FluidGpuConvolution& c) {
  return c.filters * c.channels / c.groups * c.filter_height * c.filter_width;
}

/// How many numbers a, b and the result have.
std::array<int64_t, 3> sizes(const FluidGpuConvolution& c) {
  const int64_t x = product(images(c)), y = product(maps(c)), w = filter_numbers(c);
  if (c.direction == fluid_gpu_forward) return {x, w, y};
  if (c.direction == fluid_gpu_data_gradient) return {y, w, x};
  return {x, y, w};
}

/// Calls visit(image, filter, map) for each term of the convolution, with the indices of the three
/// elements. Each element is a sum of products of the other two.
template <class Visit>
void for_each_product_term(const FluidGpuConvolution& c, const Visit& visit) {
  const int64_t own = c.channels / c.groups;
  ImageIndex m;
  for (int64_t at = 0; at < product(maps(c)); ++at) {
    m = {at / (c.map_width * c.map_height * c.filters),
         at / (c.map_width * c.map_height) % c.filters, at / c.map_width % c.map_height,
         at % c.map_width};
    for (int64_t tap = 0; tap < own * c.filter_height * c.filter_width; ++tap) {
      const int64_t i = tap / (c.filter_height * c.filter_width);
      const int64_t y = m[2] * c.stride[0] - c.padding[0] +
                        tap / c.filter_width % c.filter_height * c.dilation[0];
      const int64_t x = m[3] * c.stride[1] - c.padding[1] + tap % c.filter_width * c.dilation[1];
      if (y < 0 || y >= c.height || x < 0 || x >= c.width) continue;
      const int64_t channel = m[1] / (c.filters / c.groups) * own + i;
      visit(image_at(c, images(c), {m[0], channel, y, x}),
            m[1] * own * c.filter_height * c.filter_width + tap, image_at(c, maps(c), m));
    }
  }
}

}  // namespace

FluidGpuConvolution convolution_of(FluidGpuDirection direction, FluidGpuDtype number,
                                   bool channels_last, ConvolutionSize s) {
  return {.direction = direction,
          .dtype = number,
          .channels_last = channels_last,
          .groups = static_cast<int32_t>(s.groups),
          .images = s.images,
          .channels = s.channels,
          .height = s.height,
          .width = s.width,
          .filters = s.filters,
          .filter_height = s.taps,
          .filter_width = s.taps,
          .map_height = windows(s.height, s),
          .map_width = windows(s.width, s),
          .stride = {s.stride, s.stride},
          .dilation = {s.dilation, s.dilation},
          .padding = {s.padding, s.padding}};
}

ConvolutionData::ConvolutionData(const FluidGpuConvolution& c)
    : FactorData{small_integers(dtype_of(c.dtype), sizes(c)[0], 1),
                 small_integers(dtype_of(c.dtype), sizes(c)[1], 2),
                 small_integers(dtype_of(c.dtype), sizes(c)[2], 3),
                 small_integers(dtype_of(c.dtype), c.filters, 4)} {}

std::vector<double> ConvolutionData::expected(const FluidGpuConvolution& c) const {
  const int64_t count = sizes(c)[2];
  Tensor results(DType::f64, {count});
  const auto result = results.as<double>();
  std::ranges::fill(result, 0);
  for_each_product_term(c, [&](int64_t image, int64_t filter, int64_t map) {
    const bool forward = c.direction == fluid_gpu_forward;
    const bool of_data = c.direction == fluid_gpu_data_gradient;
    const int64_t to = forward ? map : of_data ? image : filter;
    const int64_t left = of_data ? map : image;
    const int64_t right = c.direction == fluid_gpu_filter_gradient ? map : filter;
    result[static_cast<size_t>(to)] += a.at(left) * b.at(right);
  });
  for (int64_t i = 0; i < count; ++i) {
    double& sum = result[static_cast<size_t>(i)];
    const int64_t pixels = c.map_height * c.map_width;
    if (c.has_addend != 0) sum += addend.at(i);
    if (c.bias != 0) sum += bias.at(c.channels_last != 0 ? i % c.filters : i / pixels % c.filters);
    if (c.relu != 0) sum = std::max(sum, 0.0);
  }
  const Tensor rounded = results.cast(dtype_of(c.dtype));
  std::vector<double> all;
  for (int64_t i = 0; i < count; ++i) all.push_back(rounded.at(i));
  return all;
}

void expect_convolved(const std::vector<double>& found, const std::vector<double>& expected,
                      FluidGpuDtype number) {
  constexpr double kRounding[] = {0, 1e-4, 1e-2, 4e-2};
  double largest = 1, worst = 0;
  for (const double x : expected) largest = std::max(largest, std::abs(x));
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) {
    const double off = std::abs(found[i] - expected[i]);
    worst = std::isnan(off) ? INFINITY : std::max(worst, off);
  }
  EXPECT_LE(worst, kRounding[number] * largest);
}

}  // namespace fluid::testing
