#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "frontend/fluid.h"

/// Names of a convolution and of the batch normalisation that follows it; empty: default names.
struct ConvBnNames {
  std::string conv, bn;
};

/// A convolution without bias and with "same" padding, followed by batch normalisation. Weights use
/// Kaiming-normal initialisation by fan-out: He et al., "Delving deep into rectifiers", ICCV 2015.
inline fluid::Value conv_bn(fluid::Value x, int64_t filters, int64_t kernel, int64_t stride,
                            fluid::Act act, const ConvBnNames& names = {}) {
  const double deviation = std::sqrt(2 / static_cast<double>(filters * kernel * kernel));
  const fluid::Value h = fluid::conv2d(x, {.filters = filters,
                                           .kernel = kernel,
                                           .stride = stride,
                                           .padding = kernel / 2,
                                           .bias = false,
                                           .weight_init = fluid::Init::normal(0, deviation),
                                           .name = names.conv});
  return fluid::batch_norm(h, {.act = act, .name = names.bn});
}

/// Returns torchvision's names for convolution `n` of the block `name` and its batch normalisation.
inline ConvBnNames names_in_block(const std::string& name, int n) {
  const std::string number = std::to_string(n);
  return {name + ".conv" + number, name + ".bn" + number};
}

/// Adds the shortcut from x to the result h of the block `name`, and applies ReLU. The shortcut is
/// the identity if x and h have the same shape, else a 1x1 convolution.
inline fluid::Value add_shortcut(fluid::Value x, fluid::Value h, int64_t stride,
                                 const std::string& name) {
  const int64_t filters = h.shape()[1].size;
  if (stride == 1 && x.shape()[1].is(filters)) return fluid::relu(h + x);
  const ConvBnNames names = {name + ".downsample.0", name + ".downsample.1"};
  return fluid::relu(h + conv_bn(x, filters, 1, stride, fluid::Act::none, names));
}

/// A residual block of two convolutions.
inline fluid::Value residual_block(fluid::Value x, int64_t filters, int64_t stride,
                                   const std::string& name) {
  fluid::Value h = conv_bn(x, filters, 3, stride, fluid::Act::relu, names_in_block(name, 1));
  h = conv_bn(h, filters, 3, 1, fluid::Act::none, names_in_block(name, 2));
  return add_shortcut(x, h, stride, name);
}

/// A bottleneck block of three convolutions, with 4 * filters output channels. The 3x3 convolution
/// has the stride, as in torchvision.
inline fluid::Value bottleneck_block(fluid::Value x, int64_t filters, int64_t stride,
                                     const std::string& name) {
  fluid::Value h = conv_bn(x, filters, 1, 1, fluid::Act::relu, names_in_block(name, 1));
  h = conv_bn(h, filters, 3, stride, fluid::Act::relu, names_in_block(name, 2));
  h = conv_bn(h, 4 * filters, 1, 1, fluid::Act::none, names_in_block(name, 3));
  return add_shortcut(x, h, stride, name);
}

/// Hyperparameters of a ResNet.
struct ResNetConfig {
  int64_t width = 64;           ///< filters of the first stage; the number doubles with each stage
  std::vector<int64_t> blocks;  ///< number of blocks per stage
};

/// The layers of a ResNet after the stem: stages of residual blocks, average pooling and a linear
/// layer. h [N, C, H, W] -> logits [N, 10]. Each stage after the first begins with a block of
/// stride 2. Layers have torchvision's names, such as layer1.0.conv1 for the first convolution.
template <class Block>
fluid::Value resnet_stages(fluid::Value h, const ResNetConfig& config, const Block& block) {
  int64_t filters = config.width;
  for (size_t stage = 0; stage < config.blocks.size(); ++stage) {
    for (int64_t i = 0; i < config.blocks[stage]; ++i) {
      const std::string name = "layer" + std::to_string(stage + 1) + "." + std::to_string(i);
      h = block(h, filters, i == 0 && stage > 0 ? 2 : 1, name);
    }
    filters *= 2;
  }
  return fluid::linear(fluid::flatten(fluid::adaptive_avg_pool2d(h, {.output = {1}})),
                       {.units = 10, .name = "fc"});
}

/// ResNet-18 (He et al., "Deep residual learning for image recognition", CVPR 2016) in
/// torchvision's variant, but with a stem for small images: a 3x3 convolution of stride 1, without
/// pooling. Images [N, 3, H, W] -> logits [N, 10].
inline fluid::Value resnet18(fluid::Value images, int64_t width = 64) {
  return resnet_stages(conv_bn(images, width, 3, 1, fluid::Act::relu, {"conv1", "bn1"}),
                       {.width = width, .blocks = {2, 2, 2, 2}}, residual_block);
}

/// ResNet-50 in torchvision's variant, with torchvision's stem for large images. Images [N, 3, H,
/// W] -> logits [N, 10].
inline fluid::Value resnet50(fluid::Value images,
                             const ResNetConfig& config = {.blocks = {3, 4, 6, 3}}) {
  const fluid::Value stem = conv_bn(images, config.width, 7, 2, fluid::Act::relu, {"conv1", "bn1"});
  return resnet_stages(fluid::max_pool2d(stem, {.kernel = {3}, .stride = {2}, .padding = {1}}),
                       config, bottleneck_block);
}
