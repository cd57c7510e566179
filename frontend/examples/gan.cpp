// Trains a generative adversarial network on images of digits. The program has a training recipe
// for each of the two networks.

#include "frontend/examples/gan.h"

#include "frontend/examples/example.h"
#include "frontend/examples/one_column.h"
#include "frontend/files/npy.h"

namespace fl = fluid;

int main(int argc, char** argv) {
  return run_example(
      argc, argv,
      [](const ExampleOptions& options) {
        const GanConfig config;
        fl::Program net("gan");
        const auto image =
            net.data("image", {fl::kBatch, 1, 28, 28}, fl::f32, {.scale = 1 / 255.f});
        const fl::Type noise{fl::f32, {fl::kBatch, config.latent}, {}};
        const auto losses =
            record_gan(net, image, fl::random_normal(image, {.type = noise}), config);
        fl::minimize(losses.discriminator, fl::Adam{.lr = 2e-4, .beta1 = 0.5},
                     {.name = "discriminator", .parameters = {"discriminator"}});
        fl::minimize(losses.generator, fl::Adam{.lr = 4e-4, .beta1 = 0.5},
                     {.name = "generator", .parameters = {"generator"}});
        if (!options.save.empty()) net.save(options.save);
        if (options.data.empty()) return;

        fl::Reader train(one_column(options.data, "image"), {.batch = 100, .shuffle_seed = 1});
        fl::Trainer trainer(net, fl::cpu());
        trainer.fit(train, {.recipes = {{"discriminator", 1}, {"generator", 1}},
                            .epochs = options.epochs_or(20),
                            .max_steps = options.steps,
                            .on_epoch = fl::print_epoch});
        const std::string samples = options.flag_or("--samples", "");
        if (samples.empty()) return;
        fl::Reader shown(one_column(options.data, "image"), {.batch = 16});
        fl::write_npy(samples, trainer.executor().eval(*shown.next())["image"]);
      },
      {"--samples FILE.npy"});
}
