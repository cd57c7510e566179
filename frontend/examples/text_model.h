#pragma once

// Functions that train byte-level language models on a text, and continue prompts.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>
#include <random>

#include "frontend/examples/example.h"
#include "frontend/fluid.h"

namespace text_model {

namespace fl = fluid;

struct Sampling {
  double temperature = 0.8;
  int64_t top_k = 40;  ///< number of most likely bytes from which to sample
};

/// Samples a byte from the softmax of the `top_k` largest logits.
inline uint8_t sample_byte(std::span<const float> logits, const Sampling& sampling,
                           std::mt19937_64& random) {
  std::vector<uint8_t> order(logits.size());
  std::iota(order.begin(), order.end(), uint8_t{0});
  const auto k = static_cast<size_t>(std::clamp<int64_t>(sampling.top_k, 1, std::ssize(order)));
  std::ranges::partial_sort(order, order.begin() + static_cast<ptrdiff_t>(k), std::greater<>(),
                            [&](uint8_t byte) { return logits[byte]; });
  std::vector<double> weights;
  for (size_t i = 0; i < k; ++i) {
    const double below =
        static_cast<double>(logits[order[i]]) - static_cast<double>(logits[order[0]]);
    weights.push_back(std::exp(below / sampling.temperature));
  }
  return order[std::discrete_distribution<size_t>(weights.begin(), weights.end())(random)];
}

/// Predicts one byte at a time with a decoder program. Its feeds are "text" u8 [1, 1] and, if
/// `length` is not 0, "position" i64 [], which is less than `length`. Its output is "logits" [1, 1,
/// 256].
class Decoder {
 public:
  Decoder(const fl::Program& net, int64_t length, const std::string& parameters)
      : exe_(net, fl::cpu()), length_(length) {
    if (!parameters.empty()) exe_.load(parameters);
  }

  /// Feeds the last byte of `text` and returns the logits of the next byte. The caches already
  /// contain the earlier bytes. When the caches are full, feeds the last `length` / 2 bytes again
  /// from position 0.
  std::span<const float> next(const std::string& text) {
    if (length_ > 0 && position_ == length_) {
      position_ = 0;
      for (size_t i = text.size() - static_cast<size_t>(length_ / 2); i + 1 < text.size(); ++i) {
        predict(text[i]);
      }
    }
    return predict(text.back());
  }

 private:
  std::span<const float> predict(char c) {
    fl::Tensor byte(fl::u8, {1, 1}), position(fl::i64, {});
    byte.as<uint8_t>()[0] = static_cast<uint8_t>(c);
    position.as<int64_t>()[0] = position_++;
    logits_ = length_ == 0
                  ? exe_.predict({{"text", byte}})["logits"].copy()
                  : exe_.predict({{"text", byte}, {"position", position}})["logits"].copy();
    return logits_.as<float>();
  }

  fl::Executor exe_;
  int64_t length_;
  int64_t position_ = 0;
  fl::Tensor logits_;
};

/// Appends `count` bytes to `text`. Samples each byte from the prediction for the text so far.
inline void generate(Decoder& decoder, std::string& text, int64_t count, const Sampling& sampling,
                     uint64_t seed) {
  std::mt19937_64 random(seed);
  for (size_t i = 1; i < text.size(); ++i) decoder.next(text.substr(0, i));
  for (int64_t i = 0; i < count; ++i) {
    text += static_cast<char>(sample_byte(decoder.next(text), sampling, random));
  }
}

inline void train(fl::Trainer& trainer, const std::string& name, const ExampleOptions& options) {
  fl::Reader train(fl::open_data(options.data, "train").source, {.batch = 12, .shuffle_seed = 1});
  fl::Reader held_out(fl::open_data(options.data, "val").source, {.batch = 12});
  trainer.fit(train, {.epochs = options.epochs_or(10),
                      .max_steps = options.steps,
                      .validation = &held_out,
                      .save = name + ".safetensors",
                      .on_epoch = fl::print_epoch});
}

/// Main function of a language model example. `record` records the model and its training recipe.
/// `record_decoder` records a decoder with the same parameters. `length`: see Decoder.
inline int run(int argc, char** argv, const std::string& name, int64_t length,
               const std::function<void(fl::Program&)>& record,
               const std::function<void(fl::Program&)>& record_decoder) {
  return run_example(
      argc, argv,
      [&](const ExampleOptions& options) {
        fl::Program net(name);
        record(net);
        if (!options.save.empty()) net.save(options.save);
        std::string text = options.flag_or("--prompt", "");
        const Sampling sampling{
            .temperature =
                parse_positive<double>("--temperature", options.flag_or("--temperature", "0.8")),
            .top_k = parse_positive("--top-k", options.flag_or("--top-k", "40"))};
        const int64_t bytes = parse_positive("--bytes", options.flag_or("--bytes", "200"));
        const int64_t seed = parse_positive("--seed", options.flag_or("--seed", "1"));
        std::string parameters = options.flag_or("--load", "");
        if (!options.data.empty()) {
          fl::Trainer trainer(net, fl::cpu());
          if (!parameters.empty()) trainer.load(parameters);
          train(trainer, name, options);
          parameters = name + ".safetensors";
        }
        if (text.empty()) return;
        fl::Program decoder_net(name + "_decoder");
        record_decoder(decoder_net);
        Decoder decoder(decoder_net, length, parameters);
        generate(decoder, text, bytes, sampling, static_cast<uint64_t>(seed));
        std::printf("%s\n", text.c_str());
      },
      {"--load FILE.safetensors", "--prompt TEXT", "--bytes N", "--temperature X", "--top-k N",
       "--seed N"});
}

}  // namespace text_model
