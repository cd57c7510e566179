// Trains one network for two tasks: the class of a digit, and whether it is odd.

#include "frontend/examples/multi_task.h"

#include "frontend/examples/classifier.h"

namespace fl = fluid;

int main(int argc, char** argv) {
  return run_example(argc, argv, [](const ExampleOptions& options) {
    fl::Program net("multi_task");
    fl::minimize(record_multi_task(net), fl::Adam{.lr = 1e-3});
    if (!options.save.empty()) net.save(options.save);
    if (!options.data.empty()) train_classifier(net, options, 64);
  });
}
