// Trains a small vision transformer on CIFAR-10 images. Run it with --data cifar10:DIR.

#include "frontend/examples/vit_tiny.h"

#include "frontend/examples/classifier.h"

namespace fl = fluid;

int main(int argc, char** argv) {
  return run_example(argc, argv, [](const ExampleOptions& options) {
    fl::Program net("vit_tiny");
    const fl::Value loss = record_classifier(net, vit_tiny(net, cifar10_images(net)));
    fl::minimize(
        loss, fl::AdamW{.lr = 1e-3, .weight_decay = 0.05},
        {.clip = {.global_norm = 1}, .schedule = fl::Cosine{.steps = 20000, .warmup = 500}});
    if (!options.save.empty()) net.save(options.save);
    if (!options.data.empty()) train_classifier(net, options, 64);
  });
}
