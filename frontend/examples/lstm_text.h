#pragma once

#include "frontend/fluid.h"

/// Hyperparameters of a byte-level recurrent language model.
struct LstmTextConfig {
  int64_t layers = 2;
  int64_t width = 256;
  int64_t length = 128;  ///< bytes per window; the initial states of each window are zeros
};

/// A recurrent language model (Graves, "Generating sequences with recurrent neural networks", 2013)
/// over bytes: text u8 [N, length] -> logits [N, length, 256] of the next bytes. `states`: on entry
/// the initial states, on return the final states.
inline fluid::Value lstm_text(fluid::Value text, const LstmTextConfig& config,
                              fluid::Values& states) {
  fluid::Value h = fluid::embedding(text, {.rows = 256, .units = config.width, .name = "bytes"});
  const fluid::RecurrentResult result =
      fluid::lstm(h, {.units = config.width, .layers = config.layers, .initial = states});
  states = result.states;
  return fluid::linear(result.output, {.units = 256, .name = "head"});
}

/// Adds the feeds, the network and the outputs "loss" and "logits" to `net`. Returns the loss.
inline fluid::Value record_lstm_text(fluid::Program& net, const LstmTextConfig& config = {}) {
  const auto text = net.data("text", {fluid::kBatch, config.length}, fluid::u8);
  const auto target = net.data("target", {fluid::kBatch, config.length}, fluid::u8);
  fluid::Values states;
  const auto logits = lstm_text(text, config, states);
  const auto loss = fluid::mean(fluid::softmax_cross_entropy(logits, target));
  net.output("loss", loss);
  net.output("logits", logits);
  return loss;
}

/// Adds a decoder with the parameters of record_lstm_text() to `net`. Feed: "text" u8 [1, 1], one
/// byte. Output: "logits" [1, 1, 256] of the next byte. Each predict step starts with the final
/// states of the previous step.
inline void record_lstm_text_decoder(fluid::Program& net, const LstmTextConfig& config = {}) {
  fluid::Values caches, states;
  for (int64_t i = 0; i < 2 * config.layers; ++i) {
    caches.push_back(
        fluid::cache(net.ir().main(), "state" + std::to_string(i), {1, config.width}, fluid::f32));
  }
  states = caches;
  net.output("logits", lstm_text(net.data("text", {1, 1}, fluid::u8), config, states));
  for (size_t i = 0; i < states.size(); ++i) fluid::update_cache(caches[i], states[i]);
}
