// Predicts the median house value of Californian districts with a multilayer perceptron. Run it
// with --data 'csv:california_housing.csv?label=median_house_value&val=0.2'.

#include "frontend/examples/california_housing.h"

#include "frontend/examples/example.h"

namespace fl = fluid;

int main(int argc, char** argv) {
  return run_example(argc, argv, [](const ExampleOptions& options) {
    fl::Program net("california_housing");
    fl::minimize(record_california_housing(net), fl::Adam{.lr = 2e-3},
                 {.schedule = fl::StepDecay{.every = 2500, .factor = 0.3}});
    if (!options.save.empty()) net.save(options.save);
    if (options.data.empty()) return;

    fl::Reader train(fl::open_data(options.data).source, {.batch = 64, .shuffle_seed = 1});
    fl::Reader held_out(fl::open_data(options.data, "val").source, {.batch = 1000});
    fl::Trainer trainer(net, fl::cpu());
    trainer.fit(train, {.epochs = options.epochs_or(40),
                        .max_steps = options.steps,
                        .validation = &held_out,
                        .best = "error:min",
                        .on_epoch = fl::print_epoch});
  });
}
