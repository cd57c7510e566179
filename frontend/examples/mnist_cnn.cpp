// Trains a small digit classifier with Adam. Shows Trainer::fit(), evaluate(), save(), load() and
// predict().

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

/// Predicts the classes of the first images of `data`, and prints them beside the labels.
void predict(fl::Trainer& trainer, const fl::Dataset& data) {
  constexpr int64_t kImages = 8, kClasses = 10;
  const fl::Dataset few = data.first(kImages);
  fl::Reader images({{{"image", *few.find("image")}}}, {.batch = kImages});
  const fl::Dataset predicted = trainer.predict(images);
  const auto prob = predicted.find("prob")->as<float>();
  for (int64_t i = 0; i < few.samples(); ++i) {
    const auto row = prob.subspan(static_cast<size_t>(i * kClasses), kClasses);
    const auto best = std::max_element(row.begin(), row.end());
    std::printf("image %lld is a %lld (%.2f); its label says %.0f\n", static_cast<long long>(i),
                static_cast<long long>(best - row.begin()), static_cast<double>(*best),
                few.find("label")->at(i));
  }
}

void train(const fl::Program& net, const ExampleOptions& options) {
  fl::Reader train(fl::open_data(options.data, "train").source, {.batch = 128, .shuffle_seed = 1});
  fl::Reader test(fl::open_data(options.data, "test").source, {.batch = 1000});
  fl::Trainer trainer(net, fl::cpu());
  trainer.fit(train, {.epochs = options.epochs_or(1),
                      .max_steps = options.steps,
                      .validation = &test,
                      .save = "mnist_cnn.safetensors",
                      .on_epoch = fl::print_epoch});

  fl::Trainer trained(net, fl::cpu());
  trained.load("mnist_cnn.safetensors");
  for (const auto& [name, value] : trained.evaluate(test)) {
    std::printf("loaded again: test %s %.4f\n", name.c_str(), value);
  }
  predict(trained, fl::open_data(options.data, "test").dataset());
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
