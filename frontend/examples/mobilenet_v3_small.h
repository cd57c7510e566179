#pragma once

#include <algorithm>
#include <cmath>
#include <span>

#include "frontend/fluid.h"

/// Hyperparameters of MobileNetV3-Small.
struct MobileNetConfig {
  double width = 1;      ///< width multiplier: scales all numbers of channels
  double dropout = 0.2;  ///< dropout probability before the last layer
  int64_t classes = 10;
  size_t blocks = 11;  ///< uses only the first `blocks` of the 11 inverted residual blocks
};

/// Returns a multiple of 8 that is close to `channels`, at least 8 and at least 90 % of `channels`.
inline int64_t mobilenet_channels(double channels) {
  const int64_t rounded = std::max<int64_t>(8, static_cast<int64_t>(channels + 4) / 8 * 8);
  return static_cast<double>(rounded) < 0.9 * channels ? rounded + 8 : rounded;
}

/// A convolution without bias and with "same" padding, batch normalisation and activation.
inline fluid::Value mobilenet_conv(fluid::Value x, int64_t filters, int64_t kernel, int64_t stride,
                                   fluid::Act act, int64_t groups = 1) {
  const double fan_out = static_cast<double>(filters / groups * kernel * kernel);
  const auto h = fluid::conv2d(x, {.filters = filters,
                                   .kernel = kernel,
                                   .stride = stride,
                                   .padding = kernel / 2,
                                   .groups = groups,
                                   .bias = false,
                                   .weight_init = fluid::Init::normal(0, std::sqrt(2 / fan_out))});
  return fluid::batch_norm(h, {.eps = 1e-3, .momentum = 0.01, .act = act});
}

/// Scales each channel by a learned function of the means of all channels: Hu et al.,
/// "Squeeze-and-excitation networks", CVPR 2018.
inline fluid::Value squeeze_excite(fluid::Value x) {
  const int64_t channels = x.shape()[1].size;
  const auto squeezed =
      fluid::conv2d(fluid::global_avg_pool2d(x),
                    {.filters = mobilenet_channels(static_cast<double>(channels / 4)),
                     .kernel = 1,
                     .act = fluid::Act::relu});
  return x * fluid::conv2d(squeezed,
                           {.filters = channels, .kernel = 1, .act = fluid::Act::hard_sigmoid});
}

/// An inverted residual block: a 1x1 convolution to `expanded` channels, a depthwise convolution,
/// squeeze-and-excitation, and a 1x1 convolution to `filters` channels.
struct MobileNetBlock {
  int64_t kernel, expanded, filters;
  bool squeeze;
  fluid::Act act;
  int64_t stride;
};
inline fluid::Value mobilenet_block(fluid::Value x, const MobileNetBlock& block, double width) {
  const int64_t channels = x.shape()[1].size;
  const int64_t expanded = mobilenet_channels(width * static_cast<double>(block.expanded));
  const int64_t filters = mobilenet_channels(width * static_cast<double>(block.filters));
  fluid::Value h = x;
  if (expanded != channels) h = mobilenet_conv(h, expanded, 1, 1, block.act);
  h = mobilenet_conv(h, expanded, block.kernel, block.stride, block.act, expanded);
  if (block.squeeze) h = squeeze_excite(h);
  h = mobilenet_conv(h, filters, 1, 1, fluid::Act::none);
  return block.stride == 1 && channels == filters ? x + h : h;
}

/// MobileNetV3-Small: Howard et al., "Searching for MobileNetV3", ICCV 2019, in torchvision's
/// variant. Images [N, 3, H, W] -> logits [N, classes].
inline fluid::Value mobilenet_v3_small(fluid::Value images, const MobileNetConfig& config = {}) {
  constexpr fluid::Act kRelu = fluid::Act::relu, kSwish = fluid::Act::hard_swish;
  constexpr MobileNetBlock kBlocks[] = {
      {3, 16, 16, true, kRelu, 2},   {3, 72, 24, false, kRelu, 2},  {3, 88, 24, false, kRelu, 1},
      {5, 96, 40, true, kSwish, 2},  {5, 240, 40, true, kSwish, 1}, {5, 240, 40, true, kSwish, 1},
      {5, 120, 48, true, kSwish, 1}, {5, 144, 48, true, kSwish, 1}, {5, 288, 96, true, kSwish, 2},
      {5, 576, 96, true, kSwish, 1}, {5, 576, 96, true, kSwish, 1},
  };
  fluid::Value h = mobilenet_conv(images, mobilenet_channels(16 * config.width), 3, 2, kSwish);
  for (const MobileNetBlock& block : std::span(kBlocks).first(config.blocks)) {
    h = mobilenet_block(h, block, config.width);
  }
  h = mobilenet_conv(h, 6 * h.shape()[1].size, 1, 1, kSwish);
  const fluid::Init init = fluid::Init::normal(0, 0.01);
  h = fluid::linear(fluid::flatten(fluid::global_avg_pool2d(h)),
                    {.units = mobilenet_channels(1024 * config.width),
                     .act = kSwish,
                     .weight_init = init,
                     .bias_init = fluid::Init::zeros()});
  return fluid::linear(
      fluid::dropout(h, {.p = config.dropout}),
      {.units = config.classes, .weight_init = init, .bias_init = fluid::Init::zeros()});
}
