// Trains ResNet-18 on CIFAR-10 images. Run it with --data cifar10:DIR.

#include "frontend/examples/classifier.h"
#include "frontend/examples/resnet.h"

namespace fl = fluid;

int main(int argc, char** argv) {
  return run_example(argc, argv, [](const ExampleOptions& options) {
    fl::Program net("resnet18");
    const fl::Value loss = record_classifier(net, resnet18(cifar10_images(net)));
    fl::minimize(loss, fl::Momentum{.lr = 0.1, .momentum = 0.9, .weight_decay = 5e-4});
    if (!options.save.empty()) net.save(options.save);
    if (!options.data.empty()) train_classifier(net, options, 128);
  });
}
