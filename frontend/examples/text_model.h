#pragma once

// What the language models of bytes share: training on a text, and continuing a prompt.

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
  int64_t top_k = 40;  ///< draw from the most likely bytes only
};

/// Draws a byte from the softmax of `logits`.
inline uint8_t draw(std::span<const float> logits, const Sampling& sampling,
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

/// Appends `count` bytes to `text`, each predicted from the bytes before it.
inline void generate(fl::Executor& exe, std::string& text, int64_t count, int64_t window_length,
                     const Sampling& sampling, uint64_t seed) {
  const auto length = static_cast<size_t>(window_length);
  std::mt19937_64 random(seed);
  fl::Tensor window(fl::u8, {1, window_length});
  const std::span<uint8_t> bytes = window.as<uint8_t>();
  for (int64_t i = 0; i < count; ++i) {
    const size_t seen = std::min(text.size(), length);
    std::copy(text.end() - static_cast<ptrdiff_t>(seen), text.end(), bytes.begin());
    const fl::Tensor& logits = exe.predict({{"text", window}})["logits"];
    text += static_cast<char>(
        draw(logits.as<float>().subspan((seen - 1) * 256, 256), sampling, random));
  }
}

inline void train(fl::Trainer& trainer, const std::string& name, const ExampleOptions& options) {
  fl::Reader train(fl::open_data(options.data, "train").dataset, {.batch = 12, .shuffle_seed = 1});
  fl::Reader held_out(fl::open_data(options.data, "val").dataset, {.batch = 12});
  trainer.fit(train, {.epochs = options.epochs_or(10),
                      .max_steps = options.steps,
                      .validation = &held_out,
                      .save = name + ".safetensors",
                      .on_epoch = fl::print_epoch});
}

/// Runs a language model that maps text u8 [N, length] to the output "logits" [N, length, 256].
/// `record` records the model and its recipe.
inline int run(int argc, char** argv, const std::string& name, int64_t length,
               const std::function<void(fl::Program&)>& record) {
  return run_example(
      argc, argv,
      [&](const ExampleOptions& options) {
        fl::Program net(name);
        record(net);
        if (!options.save.empty()) net.save(options.save);
        std::string text = options.own_or("--prompt", "");
        const Sampling sampling{
            .temperature =
                parse_positive<double>("--temperature", options.own_or("--temperature", "0.8")),
            .top_k = parse_positive("--top-k", options.own_or("--top-k", "40"))};
        const int64_t bytes = parse_positive("--bytes", options.own_or("--bytes", "200"));
        const int64_t seed = parse_positive("--seed", options.own_or("--seed", "1"));
        if (options.data.empty() && text.empty()) return;
        fl::Trainer trainer(net, fl::cpu());
        const std::string parameters = options.own_or("--load", "");
        if (!parameters.empty()) trainer.load(parameters);
        if (!options.data.empty()) train(trainer, name, options);
        if (text.empty()) return;
        generate(trainer.executor(), text, bytes, length, sampling, static_cast<uint64_t>(seed));
        std::printf("%s\n", text.c_str());
      },
      {"--load FILE.safetensors", "--prompt TEXT", "--bytes N", "--temperature X", "--top-k N",
       "--seed N"});
}

}  // namespace text_model
