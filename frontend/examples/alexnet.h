#pragma once

#include "frontend/fluid.h"

/// AlexNet: Krizhevsky, "One weird trick for parallelizing convolutional neural networks", 2014, in
/// torchvision's variant. Images [N, 3, H, W] of at least 63 x 63 -> logits [N, 10]. `width`:
/// filters of the first convolution.
inline fluid::Value alexnet(fluid::Value images, double dropout = 0.5, int64_t width = 64) {
  constexpr fluid::Act kRelu = fluid::Act::relu;
  const auto pool = [](fluid::Value x) {
    return fluid::max_pool2d(x, {.kernel = {3}, .stride = {2}});
  };
  const auto conv3 = [](fluid::Value x, int64_t filters) {
    return fluid::conv2d(x, {.filters = filters, .kernel = 3, .padding = 1, .act = kRelu});
  };
  fluid::Value h = fluid::conv2d(
      images, {.filters = width, .kernel = 11, .stride = 4, .padding = 2, .act = kRelu});
  h = fluid::conv2d(pool(h), {.filters = 3 * width, .kernel = 5, .padding = 2, .act = kRelu});
  h = conv3(conv3(conv3(pool(h), 6 * width), 4 * width), 4 * width);
  h = fluid::flatten(fluid::adaptive_avg_pool2d(pool(h), {.output = {6}}));
  for (int layer = 0; layer < 2; ++layer) {
    h = fluid::linear(fluid::dropout(h, {.p = dropout}), {.units = 64 * width, .act = kRelu});
  }
  return fluid::linear(h, {.units = 10});
}
