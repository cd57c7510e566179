#pragma once

#include "frontend/examples/resnet.h"
#include "frontend/fluid.h"

/// Hyperparameters of a U-Net.
struct UnetConfig {
  int64_t width = 64;  ///< channels at the highest resolution; the number doubles with each level
  int64_t levels = 4;  ///< number of times that the resolution is halved
  int64_t classes = 11;
};

/// U-Net (Ronneberger et al., "U-Net: convolutional networks for biomedical image segmentation",
/// MICCAI 2015) with "same" padding and batch normalisation. Images [N, C, H, W] -> logits [N,
/// classes, H, W]. H and W must be multiples of 2^levels.
inline fluid::Value unet(fluid::Value images, const UnetConfig& config = {}) {
  const auto two_convs = [](fluid::Value x, int64_t filters) {
    constexpr fluid::Act kRelu = fluid::Act::relu;
    return conv_bn(conv_bn(x, filters, 3, 1, kRelu), filters, 3, 1, kRelu);
  };
  fluid::Values skips;
  fluid::Value h = images;
  for (int64_t level = 0; level < config.levels; ++level) {
    skips.push_back(two_convs(h, config.width << level));
    h = fluid::max_pool2d(skips.back(), {.kernel = {2}, .stride = {2}});
  }
  h = two_convs(h, config.width << config.levels);
  for (int64_t level = config.levels - 1; level >= 0; --level) {
    const int64_t filters = config.width << level;
    const auto up = fluid::conv2d_transpose(h, {.filters = filters, .kernel = 2, .stride = 2});
    h = two_convs(fluid::concat({skips[static_cast<size_t>(level)], up}, {.axis = 1}), filters);
  }
  return fluid::conv2d(h, {.filters = config.classes, .kernel = 1, .name = "head"});
}

/// Adds the outputs "loss", "accuracy" (of pixels) and "prob" of the segmentation of `images` to
/// `net`. The true class of a pixel above 0.5 is the digit `label`. The true class of other pixels,
/// the background, is 10. Returns the loss.
inline fluid::Value record_unet(fluid::Program& net, fluid::Value images, fluid::Value label,
                                const UnetConfig& config = {}) {
  const fluid::Shape& shape = images.shape();
  const auto ink = fluid::greater(fluid::reshape(images, {fluid::kBatch, shape[2], shape[3]}),
                                  fluid::scalar_like(images, 0.5));
  const auto digit = fluid::unsqueeze(label, {.axes = {1, 2}});
  const auto target = fluid::where(ink, digit, fluid::scalar_like(label, 10));
  const auto logits = fluid::transpose(unet(images, config), {.perm = {0, 2, 3, 1}});
  const auto loss = fluid::mean(fluid::softmax_cross_entropy(logits, target));
  net.output("loss", loss);
  net.output("accuracy", fluid::accuracy(logits, target));
  net.output("prob", fluid::softmax(logits));
  return loss;
}
