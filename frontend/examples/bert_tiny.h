#pragma once

#include "frontend/fluid.h"

/// Hyperparameters of a byte-level masked language model. Layers, heads and width are BERT-Tiny's
/// (Turc et al., "Well-read students learn better", 2019).
struct BertConfig {
  int64_t layers = 2;
  int64_t heads = 2;
  int64_t width = 128;
  int64_t length = 256;
  double dropout = 0.1;
  double mask_rate = 0.15;  ///< probability that a byte is masked
};

/// Byte-level BERT (Devlin et al., NAACL 2019): text u8 [N, length] -> logits [N, length, 256] of
/// the bytes at the same positions. Byte 0 is the mask token, so texts must not contain it.
/// The output layer shares its weights with the embedding.
inline fluid::Value bert_tiny(fluid::Program& net, fluid::Value text, const BertConfig& config) {
  const fluid::Init init = fluid::Init::normal(0, 0.02);
  const auto table = net.parameter("bytes.w", {256, config.width}, init);
  fluid::Value h = fluid::embedding(text, {.rows = 256, .units = config.width, .weight = table}) +
                   net.parameter("positions.w", {config.length, config.width}, init);
  h = fluid::layer_norm(h, {.eps = 1e-12});
  if (config.dropout > 0) h = fluid::dropout(h, {.p = config.dropout});
  for (int64_t i = 0; i < config.layers; ++i) {
    h = fluid::transformer_block(h, {.heads = config.heads,
                                     .norm_first = false,
                                     .dropout = config.dropout,
                                     .eps = 1e-12,
                                     .weight_init = init});
  }
  h = fluid::linear(
      h, {.units = config.width, .act = fluid::Act::gelu, .weight_init = init, .name = "head"});
  h = fluid::layer_norm(h, {.eps = 1e-12});
  const auto bias = net.parameter("logits.b", {256}, fluid::Init::zeros());
  return fluid::matmul(h, table, {.transpose_b = true}) + bias;
}

/// Adds the outputs "loss" and "logits" of the masked language model to `net`. `masked`: bool [N,
/// length], true for masked bytes. Only masked bytes count in the loss. Returns the loss, a sum
/// over the masked bytes divided by their expected number. Dividing by the actual number would make
/// the loss depend on the size of the micro-batches.
inline fluid::Value record_bert_tiny(fluid::Program& net, fluid::Value text, fluid::Value masked,
                                     const BertConfig& config = {}) {
  const auto hidden = fluid::masked_fill(text, masked, {.value = 0});
  const auto logits = bert_tiny(net, hidden, config);
  const auto per_byte = fluid::softmax_cross_entropy(logits, text);
  const auto loss =
      fluid::mean(per_byte * fluid::cast(masked, per_byte.dtype())) / config.mask_rate;
  net.output("loss", loss);
  net.output("logits", logits);
  return loss;
}
