// Trains a small BERT on the bytes of a text (--data text:FILE). Each step masks a new random set
// of bytes.

#include "frontend/examples/bert_tiny.h"

#include "frontend/examples/example.h"
#include "frontend/examples/one_column.h"

namespace fl = fluid;

int main(int argc, char** argv) {
  return run_example(argc, argv, [](const ExampleOptions& options) {
    const BertConfig config;
    fl::Program net("bert_tiny");
    const auto text = net.data("text", {fl::kBatch, config.length}, fl::u8);
    const auto uniform = fl::random_uniform(text, {.type = fl::Type{fl::f32, text.shape(), {}}});
    const auto masked = fl::less(uniform, fl::scalar_like(uniform, config.mask_rate));
    fl::minimize(
        record_bert_tiny(net, text, masked, config), fl::AdamW{.lr = 1e-3},
        {.clip = {.global_norm = 1}, .schedule = fl::Cosine{.steps = 20000, .warmup = 500}});
    if (!options.save.empty()) net.save(options.save);
    if (options.data.empty()) return;

    fl::Reader train(one_column(options.data, "text"), {.batch = 32, .shuffle_seed = 1});
    fl::Reader held_out(one_column(options.data, "text", "val"), {.batch = 32});
    fl::Trainer trainer(net, fl::cpu());
    trainer.fit(train, {.epochs = options.epochs_or(1),
                        .max_steps = options.steps,
                        .validation = &held_out,
                        .on_epoch = fl::print_epoch});
  });
}
