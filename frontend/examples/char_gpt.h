#pragma once

#include "frontend/fluid.h"

/// Hyperparameters of a byte-level language model.
struct CharGptConfig {
  int64_t layers = 6;
  int64_t heads = 6;
  int64_t width = 384;
  int64_t length = 256;  ///< maximum context length in bytes
  /// Sequence length T: kLength, or a constant of at most `length`. Absent: `length`.
  std::optional<fluid::Dim> text_length = {};
};

/// A decoder-only transformer (Radford et al., "Language models are unsupervised multitask
/// learners", 2019) over bytes: text u8 [N, T] -> logits [N, T, 256] of the next bytes. With
/// `position`, an integer scalar, decodes the byte at this position: text [1, 1] -> [1, 1, 256].
inline fluid::Value char_gpt(fluid::Program& net, fluid::Value text, const CharGptConfig& config,
                             std::optional<fluid::Value> position = {}) {
  const fluid::Init init = fluid::Init::normal(0, 0.02);
  fluid::Value h = fluid::embedding(
      text, {.rows = 256, .units = config.width, .weight_init = init, .name = "bytes"});
  const fluid::Value positions = net.parameter("positions.w", {config.length, config.width}, init);
  fluid::Value index = position.value_or(fluid::Value());
  if (config.text_length) {
    index = fluid::arange(net.ir().main(),
                          {.type = fluid::Type{fluid::i64, {*config.text_length}, {}}});
  }
  h = h + (index ? fluid::embedding(positions, index) : positions);
  std::optional<fluid::AttentionCache> cache;
  if (position) cache = {.length = config.length, .position = *position};
  for (int64_t i = 0; i < config.layers; ++i) {
    h = fluid::transformer_block(h, {.heads = config.heads,
                                     .causal = !position,
                                     .cache = cache,
                                     .bias = false,
                                     .weight_init = init});
  }
  h = fluid::layer_norm(h, {.bias = false});
  return fluid::linear(h, {.units = 256, .bias = false, .weight_init = init, .name = "head"});
}

/// Adds the feeds, the network and the outputs "loss" and "logits" to `net`. Returns the loss.
inline fluid::Value record_char_gpt(fluid::Program& net, const CharGptConfig& config = {}) {
  const fluid::Dim length = config.text_length.value_or(config.length);
  const auto text = net.data("text", {fluid::kBatch, length}, fluid::u8);
  const auto target = net.data("target", {fluid::kBatch, length}, fluid::u8);
  const auto logits = char_gpt(net, text, config);
  const auto loss = fluid::mean(fluid::softmax_cross_entropy(logits, target));
  net.output("loss", loss);
  net.output("logits", logits);
  return loss;
}

/// Adds a decoder with the parameters of record_char_gpt() to `net`. Feeds: "text" u8 [1, 1], one
/// byte, and "position" i64 [], the position of the byte. Output: "logits" [1, 1, 256] of the next
/// byte. Each predict step reads the keys and values that the earlier steps have cached.
inline void record_char_gpt_decoder(fluid::Program& net, const CharGptConfig& config = {}) {
  const auto text = net.data("text", {1, 1}, fluid::u8);
  const auto position = net.data("position", {}, fluid::i64);
  net.output("logits", char_gpt(net, text, config, position));
}
