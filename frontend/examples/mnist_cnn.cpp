// A small digit network without padding, trained with Adam. Shows fit, evaluate, save, load,
// predict.

#include <algorithm>
#include <cstdio>

#include "frontend/examples/example.h"
#include "frontend/fluid.h"

namespace fl = fluid;

namespace {

void record(fl::Program& net) {
  auto image = net.data("image", {fl::kBatch, 1, 28, 28}, fl::f32, {.scale = 1 / 255.f});
  auto label = net.data("label", {fl::kBatch}, fl::i64);
  auto h = fl::conv2d(image, {.filters = 32, .kernel = 3});
  h = fl::max_pool2d(h, {.kernel = 2, .stride = 2});
  h = fl::conv2d(h, {.filters = 64, .kernel = 5});
  h = fl::max_pool2d(h, {.kernel = 2, .stride = 2});
  h = fl::dropout2d(h, {.p = 0.1});
  h = fl::flatten(fl::adaptive_max_pool2d(h, {.output = 1}));
  auto logits = fl::linear(fl::linear(h, {.units = 32, .act = fl::Act::relu}), {.units = 10});
  auto loss = fl::mean(fl::softmax_cross_entropy(logits, label));
  net.output("loss", loss);
  net.output("accuracy", fl::accuracy(logits, label));
  net.output("prob", fl::softmax(logits));
  fl::minimize(loss, fl::Adam{.lr = 0.02});
}

double accuracy(fl::Executor& exe, fl::Reader& data) {
  double sum = 0, weight = 0;
  for (const fl::Batch& batch : data) {
    const fl::Outputs out = exe.eval(batch);
    sum += out.find("accuracy").sum;
    weight += out.find("accuracy").weight;
  }
  return sum / weight;
}

/// Classifies the first images of `data`, without feeding labels.
void predict(fl::Executor& exe, const fl::Dataset& data) {
  constexpr int64_t kImages = 8, kClasses = 10;
  const fl::Dataset few = data.first(kImages);
  const fl::Outputs out = exe.predict({few.samples(), {{"image", *few.find("image")}}, 0});
  const auto prob = out["prob"].as<float>();
  for (int64_t i = 0; i < few.samples(); ++i) {
    const auto row = prob.subspan(static_cast<size_t>(i * kClasses), kClasses);
    const auto best = std::max_element(row.begin(), row.end());
    std::printf("image %lld is a %lld (%.2f); its label says %.0f\n", static_cast<long long>(i),
                static_cast<long long>(best - row.begin()), static_cast<double>(*best),
                few.find("label")->at(i));
  }
}

void train(const fl::Program& net, const ExampleOptions& options) {
  fl::Reader train(fl::open_data(options.data, "train").dataset, {.batch = 128, .shuffle_seed = 1});
  fl::Reader test(fl::open_data(options.data, "test").dataset, {.batch = 1000});
  fl::Executor exe(net, fl::cpu());
  exe.prepare({.train = train.batch_sizes(), .eval = test.batch_sizes()});
  int64_t steps = 0;
  const int64_t epochs = options.epochs > 0 ? options.epochs : 1;
  for (int64_t epoch = 1; epoch <= epochs; ++epoch) {
    for (const fl::Batch& batch : train) {
      exe.run(batch);
      if (++steps == options.steps) break;
    }
    std::printf("epoch %lld: test accuracy %.4f\n", static_cast<long long>(epoch),
                accuracy(exe, test));
    if (steps == options.steps) break;
  }
  exe.save("mnist_cnn.safetensors");

  fl::Executor trained(net, fl::cpu(), {.any_batch = true});
  trained.load("mnist_cnn.safetensors");
  trained.prepare({.eval = test.batch_sizes()});
  std::printf("loaded again: test accuracy %.4f\n", accuracy(trained, test));
  predict(trained, test.dataset());
}

}  // namespace

int main(int argc, char** argv) {
  return run_example(argc, argv, [](const ExampleOptions& options) {
    fl::Program net("mnist_cnn");
    record(net);
    if (!options.save.empty()) net.save(options.save);
    if (!options.data.empty()) train(net, options);
  });
}
