// Trains the digit classifier of the PaddlePaddle Fluid tutorial: two convolutions with pooling,
// and a linear layer with softmax.

#include "frontend/examples/classifier.h"

namespace fl = fluid;

int main(int argc, char** argv) {
  return run_example(argc, argv, [](const ExampleOptions& options) {
    fl::Program net("mnist_fluid");
    auto image = net.data("image", {fl::kBatch, 1, 28, 28}, fl::f32, {.scale = 1 / 255.f});
    auto label = net.data("label", {fl::kBatch}, fl::i64);
    auto h = fl::conv2d(image, {.filters = 20, .kernel = 5, .padding = 2, .act = fl::Act::relu});
    h = fl::max_pool2d(h, {.kernel = 2, .stride = 2});
    h = fl::conv2d(h, {.filters = 20, .kernel = 5, .padding = 2, .act = fl::Act::relu});
    h = fl::max_pool2d(h, {.kernel = 2, .stride = 2});
    auto logits = fl::linear(fl::flatten(h), {.units = 10});
    auto loss = fl::mean(fl::softmax_cross_entropy(logits, label));
    net.output("loss", loss);
    net.output("accuracy", fl::accuracy(logits, label));
    net.output("prob", fl::softmax(logits));
    fl::minimize(loss, fl::SGD{.lr = 0.01});
    if (!options.save.empty()) net.save(options.save);
    if (!options.data.empty()) train_classifier(net, options, 100);
  });
}
