// Trains a variational autoencoder on images of digits.

#include "frontend/examples/vae.h"

#include "frontend/examples/example.h"
#include "frontend/examples/one_column.h"

namespace fl = fluid;

int main(int argc, char** argv) {
  return run_example(argc, argv, [](const ExampleOptions& options) {
    fl::Program net("vae");
    const auto image = net.data("image", {fl::kBatch, 1, 28, 28}, fl::f32, {.scale = 1 / 255.f});
    const auto loss =
        record_vae(net, image, [](fl::Value like) { return fl::random_normal(like); });
    fl::minimize(loss, fl::Adam{.lr = 1e-3});
    if (!options.save.empty()) net.save(options.save);
    if (options.data.empty()) return;

    fl::Reader train(one_column(options.data, "image"), {.batch = 100, .shuffle_seed = 1});
    fl::Trainer trainer(net, fl::cpu());
    trainer.fit(
        train,
        {.epochs = options.epochs_or(10), .max_steps = options.steps, .on_epoch = fl::print_epoch});
  });
}
