// Networks of many equal layers: what is analysed and compiled does not grow with them.

#include <gtest/gtest.h>

#include "executor/executor.h"
#include "frontend/layers.h"
#include "frontend/optimizers.h"
#include "ops/operators.h"
#include "tests/support/training.h"

namespace fluid::deep_networks_test {
namespace {

constexpr int64_t kWide = 24;

Program deep_net(int layers) {
  Program net("deep");
  Value h = net.data("x", {kBatch, kWide}, f32);
  for (int i = 0; i < layers; ++i) {
    const std::string name = "fc" + std::to_string(i);
    h = linear(h, {.units = kWide, .act = Act::relu, .name = name});
    h = dropout(h, Dropout{.p = 0.25});
  }
  const Value loss = mean(square(h));
  net.output("loss", loss);
  net.output("last", h);
  minimize(loss, SGD{.lr = 1e-3});
  return net;
}

int kernels_of(int layers) {
  Executor exe(deep_net(layers), cpu(), {.threads = 1});
  exe.prepare({.train = {4}});
  return num_kernels(exe);
}

TEST(DeepNetworks, CompileAsManyKernelsAsShallowOnes) {
  EXPECT_LE(kernels_of(24), kernels_of(12) + 4);  // one kernel updates many parameters
}

/// Layers share the kernels that draw, not what these draw.
TEST(DeepNetworks, DrawForEachLayerAnew) {
  const Program net = deep_net(2);
  Executor exe(net, cpu());
  const Tensor first = exe.parameter("fc0.w"), second = exe.parameter("fc1.w");
  int equal = 0;
  for (int64_t i = 0; i < first.numel(); ++i) equal += first.at(i) == second.at(i);
  EXPECT_LT(equal, first.numel() / 20);
}

TEST(DeepNetworks, DropOtherElementsInEachLayer) {
  Program net("drops");
  const Value x = net.data("x", {kBatch, 1000}, f32);
  net.output("a", dropout(x, Dropout{.p = 0.5}));
  net.output("b", dropout(x, Dropout{.p = 0.5}));
  minimize(mean(linear(x, {.units = 1, .name = "fc"})), SGD{.lr = 1});
  Executor exe(net, cpu(), {.debug = {.fuse = false}});
  exe.prepare({.train = {1}});
  Tensor ones(f32, {1, 1000});
  for (float& v : ones.as<float>()) v = 1;
  const OutputViews outputs = exe.run(Batch{1, {{"x", ones}}});
  int64_t both = 0, one = 0;
  for (int64_t i = 0; i < 1000; ++i) {
    const bool a = outputs["a"].at(i) > 0, b = outputs["b"].at(i) > 0;
    both += a && b;
    one += a != b;
  }
  EXPECT_NEAR(static_cast<double>(both), 250, 60);
  EXPECT_NEAR(static_cast<double>(one), 500, 80);
}

}  // namespace
}  // namespace fluid::deep_networks_test
