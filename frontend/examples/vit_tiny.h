#pragma once

#include "frontend/fluid.h"

/// Hyperparameters of a vision transformer. The defaults are ViT-Ti's, with patches for 32 x 32
/// images.
struct VitConfig {
  int64_t patch = 4;  ///< height and width of a patch
  int64_t layers = 12;
  int64_t heads = 3;
  int64_t width = 192;
};

/// Vision transformer: Dosovitskiy et al., "An image is worth 16x16 words", ICLR 2021, without
/// dropout. Images [N, C, H, W] -> logits [N, 10].
inline fluid::Value vit_tiny(fluid::Program& net, fluid::Value images,
                             const VitConfig& config = {}) {
  const fluid::Init init = fluid::Init::normal(0, 0.02);
  const int64_t width = config.width;
  const fluid::Value patches = fluid::conv2d(
      images,
      {.filters = width, .kernel = config.patch, .stride = config.patch, .name = "patches"});
  const int64_t tokens = patches.shape()[2].size * patches.shape()[3].size;
  const auto token = fluid::broadcast_to(net.parameter("class_token.w", {1, 1, width}, init),
                                         {fluid::kBatch, 1, width});
  fluid::Value h = fluid::transpose(fluid::reshape(patches, {fluid::kBatch, width, tokens}),
                                    {.perm = {0, 2, 1}});
  h = fluid::concat({token, h}, {.axis = 1}) +
      net.parameter("positions.w", {tokens + 1, width}, init);
  for (int64_t i = 0; i < config.layers; ++i) {
    h = fluid::transformer_block(h, {.heads = config.heads, .eps = 1e-6, .weight_init = init});
  }
  const auto first = fluid::slice(h, {.starts = {0}, .stops = {1}, .axes = {1}});
  h = fluid::layer_norm(fluid::reshape(first, {fluid::kBatch, width}), {.eps = 1e-6});
  return fluid::linear(h, {.units = 10, .weight_init = init, .name = "head"});
}
