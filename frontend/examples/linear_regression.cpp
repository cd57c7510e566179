// Fits y = w x + b with Adam. Every step uses the whole dataset. The compiler fuses a training step
// into a single pass over the data.

#include <cstdio>

#include "frontend/examples/example.h"
#include "frontend/fluid.h"

namespace fl = fluid;

int main(int argc, char** argv) {
  return run_example(argc, argv, [](const ExampleOptions& options) {
    fl::Program net("linear_regression");
    auto x = net.data("x", {fl::kBatch, 2}, fl::f32);
    auto y = net.data("y", {fl::kBatch, 1}, fl::f32);
    auto predicted = fl::linear(x, {.units = 1});
    auto loss = fl::mean(fl::mse_loss(predicted, y));
    net.output("loss", loss);
    net.output("prediction", predicted);
    fl::minimize(loss, fl::Adam{.lr = 0.1});
    if (!options.save.empty()) net.save(options.save);
    if (options.data.empty()) return;

    fl::Reader data(fl::open_data(options.data).source, {.batch = 0});
    fl::Trainer trainer(net, fl::cpu());
    // Each batch holds the whole dataset, so an epoch is one step.
    const fl::History history =
        trainer.fit(data, {.epochs = options.epochs_or(500), .max_steps = options.steps});
    const double loss_now = history.epochs.back().training.front().second;
    fl::Executor& exe = trainer.executor();
    const fl::Tensor w = exe.parameter("fc0.w");
    std::printf("loss %.4f, w = (%.3f, %.3f), b = %.3f\n", loss_now, w.at(0), w.at(1),
                exe.parameter("fc0.b").item());
  });
}
