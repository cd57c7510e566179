// Trains AlexNet on CIFAR-10 images, resized to 227 x 227. Usage: --data cifar10:DIR.

#include "frontend/examples/alexnet.h"
#include "frontend/examples/classifier.h"

namespace fl = fluid;

int main(int argc, char** argv) {
  return run_example(argc, argv, [](const ExampleOptions& options) {
    fl::Program net("alexnet_cifar10");
    const fl::Value images =
        fl::resize2d(cifar10_images(net), {.output = {227}, .mode = "bilinear"});
    const fl::Value loss = record_classifier(net, alexnet(images));
    fl::minimize(loss, fl::AdamW{.lr = 1e-4}, {.schedule = fl::Plateau{.patience = 3}});
    if (!options.save.empty()) net.save(options.save);
    if (!options.data.empty()) train_classifier(net, options, 64);
  });
}
