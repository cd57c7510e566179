// A step with library kernels computes what a step of generated kernels computes.

#include <gtest/gtest.h>

#include <cmath>

#include "frontend/layers.h"
#include "frontend/optimizers.h"
#include "tests/support/golden.h"
#include "tests/support/training.h"

namespace fluid::library_test {
namespace {

constexpr int64_t kImages = 16;

Program image_program() {
  Program net("images");
  const Value x = net.data("x", {kBatch, 1, 16, 16}, f32);
  const Value label = net.data("label", {kBatch}, i64);
  Value h = conv2d(x, {.filters = 32, .kernel = 3, .act = Act::relu});
  h = max_pool2d(h, {.kernel = 2});
  h = conv2d(h, {.filters = 64, .kernel = 5, .padding = 2, .act = Act::relu});
  const Value loss = mean(softmax_cross_entropy(linear(flatten(h), {.units = 10}), label));
  net.output("loss", loss);
  minimize(loss, SGD{.lr = 0.05});
  return net;
}

Batch image_batch() {
  Tensor x(f32, {kImages, 1, 16, 16}), label(i64, {kImages});
  const auto u = testing::golden_uniform(7, x.numel());
  for (size_t i = 0; i < u.size(); ++i) x.as<float>()[i] = static_cast<float>(u[i]);
  for (int64_t i = 0; i < kImages; ++i) label.as<int64_t>()[static_cast<size_t>(i)] = i % 10;
  return {kImages, {{"x", x}, {"label", label}}, 0};
}

struct Trained {
  std::vector<double> losses;
  std::vector<std::byte> parameters;
};

Trained train(const ExecutorOptions& options) {
  const Program net = image_program();
  const Batch batch = image_batch();
  Executor exe(net, cpu(), options);
  exe.prepare({.train = {kImages}});
  Trained result;
  for (int i = 0; i < 5; ++i) result.losses.push_back(exe.run(batch)["loss"].item());
  result.parameters = parameter_bytes(exe);
  return result;
}

TEST(Library, TrainsAsGeneratedKernelsDo) {
  const Trained generated = train({.debug = {.libraries = false}}), library = train({});
  for (size_t i = 0; i < generated.losses.size(); ++i) {
    EXPECT_NEAR(library.losses[i], generated.losses[i], 2e-5) << "step " << i;
  }
}

TEST(Library, ATrainingStepShowsANan) {
  const Program net = image_program();
  Batch batch = image_batch();
  batch.columns[0].second.as<float>()[17] = std::nanf("");
  Executor exe(net, cpu(), {.batch = kImages});
  EXPECT_TRUE(std::isnan(exe.run(batch)["loss"].item()));
}

TEST(Library, GivesTheSameBytesEachTimeAndWhileThePlanIsChecked) {
  const Trained once = train({});
  EXPECT_EQ(train({}).parameters, once.parameters);
  EXPECT_EQ(train({.debug = {.verify_plan = true}}).parameters, once.parameters);
}

}  // namespace
}  // namespace fluid::library_test
