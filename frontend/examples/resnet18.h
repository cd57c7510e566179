#pragma once

#include <cmath>

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

/// A residual block of two convolutions. The shortcut is the identity if the shape stays the same,
/// else a 1x1 convolution.
inline fluid::Value residual_block(fluid::Value x, int64_t filters, int64_t stride) {
  const fluid::Value h =
      conv_bn(conv_bn(x, filters, 3, stride, fluid::Act::relu), filters, 3, 1, fluid::Act::none);
  const bool same = stride == 1 && x.shape()[1].is(filters);
  return fluid::relu(h + (same ? x : conv_bn(x, filters, 1, stride, fluid::Act::none)));
}

/// ResNet-18: He et al., "Deep residual learning for image recognition", CVPR 2016, in
/// torchvision's variant. The stem suits small images: a 3x3 convolution of stride 1, without
/// pooling. Images [N, 3, H, W] -> logits [N, 10].
inline fluid::Value resnet18(fluid::Value images, int64_t width = 64) {
  fluid::Value h = conv_bn(images, width, 3, 1, fluid::Act::relu);
  for (int stage = 0; stage < 4; ++stage) {
    h = residual_block(h, width << stage, stage == 0 ? 1 : 2);
    h = residual_block(h, width << stage, 1);
  }
  return fluid::linear(fluid::flatten(fluid::adaptive_avg_pool2d(h, {.output = {1}})),
                       {.units = 10});
}
