#pragma once

#include <cmath>
#include <vector>

#include "frontend/fluid.h"

/// A convolution without bias and with "same" padding, followed by batch normalisation. Weights use
/// Kaiming-normal initialisation by fan-out: He et al., "Delving deep into rectifiers", ICCV 2015.
inline fluid::Value conv_bn(fluid::Value x, int64_t filters, int64_t kernel, int64_t stride,
                            fluid::Act act) {
  const double deviation = std::sqrt(2 / static_cast<double>(filters * kernel * kernel));
  const fluid::Value h = fluid::conv2d(x, {.filters = filters,
                                           .kernel = kernel,
                                           .stride = stride,
                                           .padding = kernel / 2,
                                           .bias = false,
                                           .weight_init = fluid::Init::normal(0, deviation)});
  return fluid::batch_norm(h, {.act = act});
}

/// Adds the shortcut from x to the result h of a block, and applies ReLU. The shortcut is the
/// identity if x and h have the same shape, else a 1x1 convolution.
inline fluid::Value add_shortcut(fluid::Value x, fluid::Value h, int64_t stride) {
  const int64_t filters = h.shape()[1].size;
  const bool same = stride == 1 && x.shape()[1].is(filters);
  return fluid::relu(h + (same ? x : conv_bn(x, filters, 1, stride, fluid::Act::none)));
}

/// A residual block of two convolutions.
inline fluid::Value residual_block(fluid::Value x, int64_t filters, int64_t stride) {
  const fluid::Value h =
      conv_bn(conv_bn(x, filters, 3, stride, fluid::Act::relu), filters, 3, 1, fluid::Act::none);
  return add_shortcut(x, h, stride);
}

/// A bottleneck block of three convolutions, with 4 * filters output channels. The 3x3 convolution
/// has the stride, as in torchvision.
inline fluid::Value bottleneck_block(fluid::Value x, int64_t filters, int64_t stride) {
  fluid::Value h = conv_bn(x, filters, 1, 1, fluid::Act::relu);
  h = conv_bn(h, filters, 3, stride, fluid::Act::relu);
  return add_shortcut(x, conv_bn(h, 4 * filters, 1, 1, fluid::Act::none), stride);
}

/// Hyperparameters of a ResNet.
struct ResNetSize {
  int64_t width = 64;           ///< filters of the first stage; the number doubles with each stage
  std::vector<int64_t> blocks;  ///< number of blocks per stage
};

/// The stages of residual blocks after the stem, then average pooling and a linear layer. h [N, C,
/// H, W] -> logits [N, 10]. The first block of each stage except the first has stride 2.
template <class Block>
fluid::Value resnet_stages(fluid::Value h, const ResNetSize& size, const Block& block) {
  int64_t filters = size.width;
  for (const int64_t blocks : size.blocks) {
    for (int64_t i = 0; i < blocks; ++i) {
      h = block(h, filters, i == 0 && filters > size.width ? 2 : 1);
    }
    filters *= 2;
  }
  return fluid::linear(fluid::flatten(fluid::adaptive_avg_pool2d(h, {.output = {1}})),
                       {.units = 10});
}

/// ResNet-18 (He et al., "Deep residual learning for image recognition", CVPR 2016) in
/// torchvision's variant, but with a stem for small images: a 3x3 convolution of stride 1, without
/// pooling. Images [N, 3, H, W] -> logits [N, 10].
inline fluid::Value resnet18(fluid::Value images, int64_t width = 64) {
  return resnet_stages(conv_bn(images, width, 3, 1, fluid::Act::relu),
                       {.width = width, .blocks = {2, 2, 2, 2}}, residual_block);
}

/// ResNet-50 in torchvision's variant, with torchvision's stem for large images. Images [N, 3, H,
/// W] -> logits [N, 10].
inline fluid::Value resnet50(fluid::Value images,
                             const ResNetSize& size = {.blocks = {3, 4, 6, 3}}) {
  const fluid::Value stem = conv_bn(images, size.width, 7, 2, fluid::Act::relu);
  return resnet_stages(fluid::max_pool2d(stem, {.kernel = {3}, .stride = {2}, .padding = {1}}),
                       size, bottleneck_block);
}
