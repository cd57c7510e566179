// Equal programs, options and seeds give bitwise equal results with any number of threads.

#include <gtest/gtest.h>

#include "frontend/fluid.h"
#include "frontend/readers/digits.h"
#include "tests/support/training.h"

namespace fluid::determinism_test {
namespace {

Program small_cnn() {
  Program net("small_cnn");
  const Value image = net.data("image", {kBatch, 1, 28, 28}, f32, {.scale = 1 / 255.f});
  const Value label = net.data("label", {kBatch}, i64);
  Value h = conv2d(image, {.filters = 5, .kernel = 5, .padding = 2, .act = Act::relu});
  h = dropout(max_pool2d(h, {.kernel = 2, .stride = 2}), {.p = 0.2});
  const Value logits = linear(flatten(h), {.units = 10});
  const Value loss = mean(softmax_cross_entropy(logits, label));
  net.output("loss", loss);
  net.output("accuracy", accuracy(logits, label));
  minimize(loss, Adam{});
  return net;
}

std::vector<std::byte> trained(const ExecutorOptions& options) {
  const Program net = small_cnn();
  Reader reader(generate_digits(70, 3), {.batch = 32, .shuffle_seed = 1});
  Executor exe(net, cpu(), options);
  exe.prepare({.train = reader.batch_sizes()});
  for (int epoch = 0; epoch < 2; ++epoch) {
    for (const Batch& batch : reader) exe.run(batch);
  }
  return parameter_bytes(exe);
}

TEST(Determinism, OneAndTwoThreadsAndARepeatGiveTheSameBits) {
  const ExecutorOptions one{.threads = 1, .debug = {.libraries = false}};
  const ExecutorOptions two{.threads = 2, .debug = {.libraries = false}};
  const auto expected = trained(one);
  EXPECT_EQ(trained(two), expected);
  EXPECT_EQ(trained(two), expected);
}

TEST(Determinism, CheckingThePlanChangesNothing) {
  EXPECT_EQ(trained({.threads = 1, .debug = {.verify_plan = true}}), trained({.threads = 1}));
}

}  // namespace
}  // namespace fluid::determinism_test
