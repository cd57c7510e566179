#pragma once

#include "frontend/fluid.h"

/// Size of a recurrent language model of bytes.
struct LstmTextSize {
  int64_t layers = 2;
  int64_t width = 256;
  int64_t length = 128;  ///< bytes of a window; the states begin as zeros in each window
};

/// A recurrent language model (Graves, "Generating sequences with recurrent neural networks", 2013)
/// over bytes: text u8 [N, length] -> logits [N, length, 256] of the next bytes.
inline fluid::Value lstm_text(fluid::Value text, const LstmTextSize& size) {
  fluid::Value h = fluid::embedding(text, {.rows = 256, .units = size.width, .name = "bytes"});
  h = fluid::lstm(h, {.units = size.width, .layers = size.layers}).output;
  return fluid::linear(h, {.units = 256, .name = "head"});
}

/// Adds the feeds, the network and the outputs "loss" and "logits" to `net`. Returns the loss.
inline fluid::Value record_lstm_text(fluid::Program& net, const LstmTextSize& size = {}) {
  const auto text = net.data("text", {fluid::kBatch, size.length}, fluid::u8);
  const auto target = net.data("target", {fluid::kBatch, size.length}, fluid::u8);
  const auto logits = lstm_text(text, size);
  const auto loss = fluid::mean(fluid::softmax_cross_entropy(logits, target));
  net.output("loss", loss);
  net.output("logits", logits);
  return loss;
}
