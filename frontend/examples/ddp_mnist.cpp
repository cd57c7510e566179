// Data-parallel training of a digit classifier. Runs as a single process, or with `fluidrun launch
// --nproc 2 -- ddp_mnist --data digits`, torchrun or Slurm. If 96 is a multiple of the number of
// ranks, the global batch has 96 samples. The losses then do not depend on the number of ranks.

#include "frontend/examples/classifier.h"

namespace fl = fluid;

int main(int argc, char** argv) {
  return run_example(argc, argv, [](const ExampleOptions& options) {
    fl::Program net("ddp_mnist");
    auto image = net.data("image", {fl::kBatch, 1, 28, 28}, fl::f32, {.scale = 1 / 255.f});
    auto h = fl::conv2d(image, {.filters = 16, .kernel = 5, .stride = 2, .act = fl::Act::relu});
    h = fl::max_pool2d(h, {.kernel = 2, .stride = 2});
    h = fl::dropout(fl::flatten(h), {.p = 0.25});
    auto loss = record_classifier(net, fl::linear(h, {.units = 10}));
    fl::minimize(loss, fl::Adam{.lr = 0.003});
    if (!options.save.empty()) net.save(options.save);
    if (options.data.empty()) return;

    const fl::World world = fl::World::from_env();
    fl::Reader data(
        fl::open_data(options.data).source,
        {.batch = 96 / world.size, .shuffle_seed = 1, .rank = world.rank, .world = world.size});
    fl::Trainer trainer(net, fl::cpu(), {.distributed = {.world = world}});
    trainer.fit(
        data,
        {.epochs = options.epochs_or(1), .max_steps = options.steps, .on_epoch = fl::print_epoch});
  });
}
