#pragma once

#include "frontend/fluid.h"

/// Hyperparameters of a network with two heads. `parity_weight`: weight of the parity head's loss.
struct MultiTaskConfig {
  int64_t filters = 16;
  int64_t width = 64;
  double parity_weight = 0.5;
};

/// Adds to `net` a digit classifier with a shared trunk and two heads (Caruana, "Multitask
/// learning", 1997). One head predicts the class of the digit, with softmax cross-entropy. The
/// other predicts whether the digit is odd, with binary cross-entropy. Returns the weighted sum of
/// both losses. The feeds are `image` and `label`.
inline fluid::Value record_multi_task(fluid::Program& net, const MultiTaskConfig& config = {}) {
  constexpr fluid::Act kRelu = fluid::Act::relu;
  const auto image =
      net.data("image", {fluid::kBatch, 1, 28, 28}, fluid::f32, {.scale = 1 / 255.f});
  const auto label = net.data("label", {fluid::kBatch}, fluid::i64);
  const auto parity = fluid::mod(label, fluid::scalar_like(label, 2));

  const fluid::Value h = fluid::conv2d(
      image, {.filters = config.filters, .kernel = 5, .stride = 2, .padding = 2, .act = kRelu});
  const auto pooled = fluid::max_pool2d(h, {.kernel = {2}, .stride = {2}});
  const auto trunk =
      fluid::linear(fluid::flatten(pooled), {.units = config.width, .act = kRelu, .name = "trunk"});
  const auto logits = fluid::linear(trunk, {.units = 10, .name = "digit"});
  const auto odd =
      fluid::reshape(fluid::linear(trunk, {.units = 1, .name = "odd"}), {fluid::kBatch});

  const auto digit_loss = fluid::mean(fluid::softmax_cross_entropy(logits, label));
  const auto parity_loss =
      fluid::mean(fluid::binary_cross_entropy_with_logits(odd, fluid::cast(parity, odd.dtype())));
  const auto loss = digit_loss + config.parity_weight * parity_loss;
  const auto right = fluid::equal(fluid::greater(odd, fluid::scalar_like(odd, 0)),
                                  fluid::cast(parity, fluid::DType::boolean));
  net.output("loss", loss);
  net.output("digit_loss", digit_loss);
  net.output("parity_loss", parity_loss);
  net.output("accuracy", fluid::accuracy(logits, label));
  net.output("parity_accuracy", fluid::mean(fluid::cast(right, odd.dtype())));
  net.output("prob", fluid::softmax(logits));
  net.output("odd", fluid::sigmoid(odd));
  return loss;
}
