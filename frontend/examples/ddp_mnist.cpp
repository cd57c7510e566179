// Data-parallel training of a digit network. The same program runs as a single process, with
// `fluidrun launch --nproc 2 -- ddp_mnist --data digits`, or with torchrun or Slurm. The global
// batch is 96 samples if the ranks divide it evenly, so the losses are the same for any number of
// ranks.

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
        fl::open_data(options.data).dataset,
        {.batch = 96 / world.size, .shuffle_seed = 1, .rank = world.rank, .world = world.size});
    fl::Executor exe(net, fl::cpu(), {.world = world});
    exe.prepare({.train = data.batch_sizes()});
    int64_t steps = 0;
    for (int64_t epoch = 1; epoch <= std::max<int64_t>(1, options.epochs); ++epoch) {
      double lost = 0, hits = 0, samples = 0;
      for (const fl::Batch& batch : data) {
        const fl::Outputs outputs = exe.run(batch);  // outputs cover the samples of all ranks
        const fl::Output& accuracy = outputs.find("accuracy");
        // The loss is a mean over `weight` samples.
        lost += outputs["loss"].item() * accuracy.weight;
        hits += accuracy.sum;
        samples += accuracy.weight;
        if (++steps == options.steps) break;
      }
      if (world.rank == 0) {
        std::printf("epoch %ld: loss %.4f, accuracy %.4f\n", epoch, lost / samples, hits / samples);
      }
      if (options.steps > 0 && steps >= options.steps) break;
    }
  });
}
