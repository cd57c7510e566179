// Trains a two-layer LSTM on the bytes of a text (--data text:FILE), and continues a prompt.

#include "frontend/examples/lstm_text.h"

#include "frontend/examples/text_model.h"

namespace fl = fluid;

int main(int argc, char** argv) {
  const auto record = [](fl::Program& net) {
    fl::minimize(record_lstm_text(net), fl::Adam{.lr = 2e-3}, {.clip = {.global_norm = 1}});
  };
  return text_model::run(argc, argv, "lstm_text", 0, record,
                         [](fl::Program& net) { record_lstm_text_decoder(net); });
}
