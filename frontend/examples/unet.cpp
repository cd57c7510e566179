// Trains a U-Net to segment images of digits. The class of a pixel is its digit, or background.

#include "frontend/examples/unet.h"

#include "frontend/examples/classifier.h"

namespace fl = fluid;

int main(int argc, char** argv) {
  return run_example(argc, argv, [](const ExampleOptions& options) {
    fl::Program net("unet");
    const auto image = net.data("image", {fl::kBatch, 1, 28, 28}, fl::f32, {.scale = 1 / 255.f});
    const auto label = net.data("label", {fl::kBatch}, fl::i64);
    const auto padded = fl::pad(image, {.low = {0, 0, 2, 2}, .high = {0, 0, 2, 2}});
    fl::minimize(record_unet(net, padded, label), fl::Adam{.lr = 1e-3});
    if (!options.save.empty()) net.save(options.save);
    if (!options.data.empty()) train_classifier(net, options, 16);
  });
}
