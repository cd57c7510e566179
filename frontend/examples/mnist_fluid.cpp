// The digit network of the PaddlePaddle Fluid tutorial: two convolutions with pooling, softmax.

#include <cstdio>

#include "frontend/examples/example.h"
#include "frontend/fluid.h"

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
    if (options.data.empty()) return;

    fl::Reader train(fl::open_data(options.data).dataset, {.batch = 100, .shuffle_seed = 1});
    fl::Executor exe(net, fl::cpu());
    exe.prepare({.train = train.batch_sizes()});
    const int64_t epochs = options.epochs > 0 ? options.epochs : 1;
    int64_t steps = 0;
    for (int64_t epoch = 1; epoch <= epochs; ++epoch) {
      double sum = 0, weight = 0, last = 0;
      for (const fl::Batch& batch : train) {
        const fl::Outputs out = exe.run(batch);
        last = out["loss"].item();
        sum += out.find("accuracy").sum;
        weight += out.find("accuracy").weight;
        if (++steps == options.steps) break;
      }
      std::printf("epoch %lld: loss %.4f, training accuracy %.4f\n", static_cast<long long>(epoch),
                  last, sum / weight);
      if (steps == options.steps) break;
    }
  });
}
