#pragma once

#include <cstdint>

#include "executor/gpu_driver/backend_table.h"

namespace fluid::testing {

struct ConvolutionLayer {
  const char* name;
  int64_t images, channels, size, filters, taps, stride, padding;
};

/// Convolution layers of the examples, with the batch sizes of the benchmarks.
inline constexpr ConvolutionLayer kExampleConvolutions[] = {
    {"AlexNet 1", 64, 3, 227, 64, 11, 4, 2},
    {"AlexNet 2", 64, 64, 27, 192, 5, 1, 2},
    {"AlexNet 3", 64, 192, 13, 384, 3, 1, 1},
    {"AlexNet 4", 64, 384, 13, 256, 3, 1, 1},
    {"AlexNet 5", 64, 256, 13, 256, 3, 1, 1},
    {"ResNet-18 1", 64, 3, 32, 64, 3, 1, 1},
    {"ResNet-18 a", 64, 64, 32, 64, 3, 1, 1},
    {"ResNet-18 b", 64, 64, 32, 128, 3, 2, 1},
    {"ResNet-18 b, shortcut", 64, 64, 32, 128, 1, 2, 0},
    {"ResNet-18 c", 64, 128, 16, 128, 3, 1, 1},
    {"ResNet-18 d", 64, 512, 4, 512, 3, 1, 1},
    {"mnist_cnn 1", 128, 1, 32, 32, 3, 1, 0},
    {"mnist_cnn 2", 128, 32, 15, 64, 5, 1, 0},
    {"mnist_fluid 1", 100, 1, 28, 20, 5, 1, 2},
    {"mnist_fluid 2", 100, 20, 14, 20, 5, 1, 2}};

/// The convolution of a layer, or a gradient of it: NCHW in f32, NHWC in half precision.
inline FluidGpuConvolution convolution_of(const ConvolutionLayer& l, FluidGpuDirection direction,
                                          FluidGpuDtype dtype) {
  const int64_t map = (l.size + 2 * l.padding - l.taps) / l.stride + 1;
  return {.direction = direction,
          .dtype = dtype,
          .channels_last = dtype != fluid_gpu_f32,
          .groups = 1,
          .images = l.images,
          .channels = l.channels,
          .height = l.size,
          .width = l.size,
          .filters = l.filters,
          .filter_height = l.taps,
          .filter_width = l.taps,
          .map_height = map,
          .map_width = map,
          .stride = {l.stride, l.stride},
          .dilation = {1, 1},
          .padding = {l.padding, l.padding}};
}

}  // namespace fluid::testing
