// Trains MobileNetV3-Small on CIFAR-10 images, resized to 224 x 224. Run it with --data
// cifar10:DIR.

#include "frontend/examples/mobilenet_v3_small.h"

#include "frontend/examples/classifier.h"

namespace fl = fluid;

int main(int argc, char** argv) {
  return run_example(argc, argv, [](const ExampleOptions& options) {
    fl::Program net("mobilenet_v3_small");
    const fl::Value images =
        fl::resize2d(cifar10_images(net), {.output = {224}, .mode = "bilinear"});
    const fl::Value loss = record_classifier(net, mobilenet_v3_small(images));
    fl::minimize(loss, fl::Momentum{.lr = 0.1, .momentum = 0.9, .weight_decay = 1e-5});
    if (!options.save.empty()) net.save(options.save);
    if (!options.data.empty()) train_classifier(net, options, 64);
  });
}
