// Trains a transformer on the bytes of a text (--data text:FILE), and continues a prompt.

#include "frontend/examples/char_gpt.h"

#include "frontend/examples/text_model.h"

namespace fl = fluid;

int main(int argc, char** argv) {
  const auto record = [](fl::Program& net) {
    fl::minimize(record_char_gpt(net), fl::AdamW{.lr = 1e-3, .beta2 = 0.99},
                 {.clip = {.global_norm = 1},
                  .schedule = fl::Cosine{.steps = 5000, .end = 1e-4, .warmup = 100}});
  };
  return text_model::run(argc, argv, "char_gpt", CharGptConfig().length, record,
                         [](fl::Program& net) { record_char_gpt_decoder(net); });
}
