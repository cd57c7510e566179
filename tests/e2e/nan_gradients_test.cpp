// Gradients at NaN in compiled steps, as PyTorch has them: tests/golden/ops.json holds its results,
// which ops/torch_test.cpp compares op by op.

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "executor/executor.h"
#include "frontend/optimizers.h"
#include "ops/functions.h"
#include "ops/operators.h"
#include "ops/record.h"

namespace fluid::nan_gradients_test {
namespace {

/// Adds zeros, the parameter, to {NaN, 1, -1} and minimizes the sum of f with one step of SGD with
/// rate 1. Returns the new parameter: the negative gradients.
std::vector<double> stepped(const std::function<Value(Value)>& f) {
  Program net("nan");
  const Value x = net.data("x", {1, 3}, f32);
  const Value p = record_source(net.ir().main(), "param", "p", {f32, {3}, {}}, {}, {});
  minimize(sum(f(x + p)), SGD{.lr = 1});
  net.output("x", x);
  Executor exe(net, cpu(), {.batch = 1});
  const float numbers[] = {NAN, 1, -1};
  exe.run({.size = 1, .columns = {{"x", Tensor::of<float>({1, 3}, numbers)}}});
  const Tensor after = exe.parameter("p");
  return {after.at(0), after.at(1), after.at(2)};
}

TEST(NanGradients, PassRelu) {
  EXPECT_EQ(stepped([](Value v) { return relu(v); }), (std::vector<double>{-1, -1, 0}));
}

TEST(NanGradients, FillTheRowOfAMaximum) {
  for (const double g : stepped([](Value v) { return max(v, {.axes = 1}); })) {
    EXPECT_TRUE(std::isnan(g));
  }
}

TEST(NanGradients, GoToBothOperandsOfAMaximum) {
  const auto larger = [](Value v) { return maximum(v, scalar_like(v, 0)); };
  EXPECT_EQ(stepped(larger), (std::vector<double>{-1, -1, 0}));
}

}  // namespace
}  // namespace fluid::nan_gradients_test
