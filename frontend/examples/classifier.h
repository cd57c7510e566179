#pragma once

#include <cstdio>
#include <string>

#include "frontend/examples/example.h"
#include "frontend/fluid.h"

/// Records the label feed and the loss of a classifier of 10 classes, and the outputs loss,
/// accuracy and prob.
inline fluid::Value record_classifier(fluid::Program& net, fluid::Value logits) {
  const fluid::Value label = net.data("label", {fluid::kBatch}, fluid::i64);
  const fluid::Value loss = fluid::mean(fluid::softmax_cross_entropy(logits, label));
  net.output("loss", loss);
  net.output("accuracy", fluid::accuracy(logits, label));
  net.output("prob", fluid::softmax(logits));
  return loss;
}

/// The image feed for cifar10:DIR, normalised by the training set's mean and standard deviation per
/// channel.
inline fluid::Value cifar10_images(fluid::Program& net, int64_t side = 32) {
  return net.data(
      "image", {fluid::kBatch, 3, side, side}, fluid::f32,
      {.scale = 1 / 255.f, .mean = {0.4914, 0.4822, 0.4465}, .std = {0.2470, 0.2435, 0.2616}});
}

/// Trains a program with outputs loss and accuracy. Prints one line per epoch.
inline void train_classifier(const fluid::Program& net, const ExampleOptions& options,
                             int64_t batch) {
  fluid::Reader train(fluid::open_data(options.data).dataset, {.batch = batch, .shuffle_seed = 1});
  fluid::Executor exe(net, fluid::cpu());
  exe.prepare({.train = train.batch_sizes()});
  const int64_t epochs = options.epochs > 0 ? options.epochs : 1;
  int64_t steps = 0;
  for (int64_t epoch = 1; epoch <= epochs; ++epoch) {
    double sum = 0, weight = 0, last = 0, losses = 0;
    for (const fluid::Batch& images : train) {
      const fluid::Outputs out = exe.run(images);
      last = out["loss"].item();
      losses += last * static_cast<double>(images.size);
      sum += out.find("accuracy").sum;
      weight += out.find("accuracy").weight;
      if (++steps == options.steps) break;
    }
    std::printf("epoch %lld: loss %.4f, training accuracy %.4f\n", static_cast<long long>(epoch),
                last, sum / weight);
    if (steps == options.steps) break;
    exe.reduce_on_plateau(losses / static_cast<double>(train.samples()));
  }
}
