// Trains DLRM. Each data row has 13 numbers, 26 categories and a click label. Run it with --data
// 'csv:FILE?label=click'.

#include "frontend/examples/dlrm.h"

#include "frontend/examples/classifier.h"

namespace fl = fluid;

int main(int argc, char** argv) {
  return run_example(argc, argv, [](const ExampleOptions& options) {
    fl::Program net("dlrm");
    fl::minimize(record_dlrm(net), fl::SGD{.lr = 0.1});
    if (!options.save.empty()) net.save(options.save);
    if (!options.data.empty()) train_classifier(net, options, 128);
  });
}
