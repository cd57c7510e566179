#pragma once

#include <string>

#include "frontend/examples/example.h"
#include "frontend/fluid.h"

/// Adds the feed "label", the cross-entropy loss, and the outputs "loss", "accuracy" and "prob" to
/// a classifier program. Returns the loss.
inline fluid::Value record_classifier(fluid::Program& net, fluid::Value logits) {
  const fluid::Value label = net.data("label", {fluid::kBatch}, fluid::i64);
  const fluid::Value loss = fluid::mean(fluid::softmax_cross_entropy(logits, label));
  net.output("loss", loss);
  net.output("accuracy", fluid::accuracy(logits, label));
  net.output("prob", fluid::softmax(logits));
  return loss;
}

/// Adds the feed "image" to a CIFAR-10 program. Images are normalised per channel by the mean and
/// standard deviation of the training set.
inline fluid::Value cifar10_images(fluid::Program& net, int64_t side = 32) {
  return net.data(
      "image", {fluid::kBatch, 3, side, side}, fluid::f32,
      {.scale = 1 / 255.f, .mean = {0.4914, 0.4822, 0.4465}, .std = {0.2470, 0.2435, 0.2616}});
}

/// Trains a program and prints a line per epoch.
inline void train_classifier(const fluid::Program& net, const ExampleOptions& options,
                             int64_t batch) {
  fluid::Reader train(fluid::open_data(options.data).source, {.batch = batch, .shuffle_seed = 1});
  fluid::Trainer trainer(net, fluid::cpu());
  trainer.fit(
      train,
      {.epochs = options.epochs_or(1), .max_steps = options.steps, .on_epoch = fluid::print_epoch});
}
