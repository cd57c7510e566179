// Initialisers of a running program: arrays, .npy files, fan modes and gains.

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "frontend/files/npy.h"
#include "frontend/fluid.h"
#include "tests/support/errors.h"
#include "tests/support/temp_dir.h"

namespace fluid::initial_values_test {
namespace {

Tensor matrix() { return Tensor::of<float>({2, 3}, std::vector<float>{1, -2, 3, 0.5f, 7, 0}); }

Program program_with(const Init& init, const Shape& shape = {2, 3}) {
  Program net("initial");
  const Value x = net.data("x", {kBatch}, f32);
  const Value w = net.parameter("w", shape, init);
  const Value loss = mean(x) * sum(square(w));
  net.output("loss", loss);
  minimize(loss, SGD{.lr = 0.5});
  return net;
}

const Batch kOnes = {1, {{"x", Tensor::of<float>({1}, std::vector<float>{1})}}, 0};

std::vector<double> initial(const Program& net, const ExecutorOptions& options = {}) {
  Executor exe(net, cpu(), options);
  exe.prepare({.train = {1}});
  const Tensor w = exe.parameter("w");
  std::vector<double> values;
  for (int64_t i = 0; i < w.numel(); ++i) values.push_back(w.at(i));
  return values;
}

const std::vector<double> kValues = {1, -2, 3, 0.5, 7, 0};

TEST(InitialValues, AreThoseOfAnArray) {
  EXPECT_EQ(initial(program_with(Init::array(matrix()))), kValues);
  EXPECT_EQ(initial(program_with(Init::array(matrix().cast(f64)), {3, 2})), kValues);
  EXPECT_EQ(initial(program_with(Init::array(matrix())), {.precision = {.dtype = f64}}), kValues);
}

TEST(InitialValues, AreThoseOfAnNpyFile) {
  const TempDir dir;
  const std::string path = dir.file("w.npy");
  write_npy(path, matrix());
  EXPECT_EQ(initial(program_with(Init::npy(path))), kValues);
  expect_user_error([&] { Init::npy(dir.file("none.npy")); }, "none.npy");
}

TEST(InitialValues, AreKeptInTheProgramFileAndLeftByTraining) {
  const TempDir dir;
  const std::string path = dir.file("net.fluid");
  program_with(Init::array(matrix())).save(path);
  const Program net = Program::load(path);
  EXPECT_EQ(initial(net), kValues);
  Executor exe(net, cpu());
  exe.run(kOnes);
  EXPECT_EQ(exe.parameter("w").at(1), 0) << "w - 0.5 * 2 w";
}

/// A value that is set before the first step wins.
TEST(InitialValues, AreReplacedByParametersThatAreSet) {
  Executor exe(program_with(Init::array(matrix())), cpu());
  exe.set_parameter("w", Tensor(f32, {2, 3}));
  exe.prepare({.train = {1}});
  EXPECT_EQ(exe.parameter("w").at(0), 0);
}

TEST(InitialValues, TrainInMixedPrecision) {
  Executor exe(program_with(Init::array(matrix())), cpu(),
               {.precision = {.amp = AmpOptions{.dtype = bf16, .level = AmpLevel::o2}}});
  exe.run(kOnes);
  EXPECT_NEAR(exe.parameter("w").at(4), 0, 0.05);
}

TEST(InitialValues, RejectWrongArrays) {
  expect_user_error(
      [] {
        program_with(Init::array(matrix()), {2, 2});
      },
      "initialiser 'array' of 'w' has 6 values for f32[2, 2]");
  expect_user_error([] { Init::array(Tensor(i64, {2})); },
                    "Init::array: the values are i64[2], not floats");
}

double bound_of(const Init& init) {
  double bound = 0;
  for (const double v : initial(program_with(init, {50, 200}))) {
    bound = std::max(bound, std::abs(v));
  }
  return bound;
}

TEST(InitialValues, HaveFanModesAndGains) {
  EXPECT_NEAR(bound_of(Init::kaiming_uniform()), std::sqrt(6.0 / 50), 2e-3);
  EXPECT_NEAR(bound_of(Init::kaiming_uniform(0, FanMode::out)), std::sqrt(6.0 / 200), 2e-3);
  EXPECT_NEAR(bound_of(Init::xavier_uniform(calculate_gain("tanh"))),
              5.0 / 3 * std::sqrt(6.0 / 250), 2e-3);
  EXPECT_LE(bound_of(Init::truncated_normal(0.25)), 0.5);
  // torch.nn.init.calculate_gain
  EXPECT_NEAR(calculate_gain("relu"), 1.4142135623730951, 1e-15);
  EXPECT_NEAR(calculate_gain("leaky_relu", 0.2), 1.3867504905630728, 1e-15);
  EXPECT_EQ(calculate_gain("selu"), 0.75);
  EXPECT_EQ(calculate_gain("linear"), 1);
  expect_user_error([] { calculate_gain("rleu"); },
                    "calculate_gain: unknown nonlinearity 'rleu' (did you mean 'relu'?)");
}

/// A 1-d convolution with a dirac filter and padding keeps its input.
TEST(InitialValues, DiracKeepsTheInputOfAConvolution) {
  Program net("dirac");
  const Value x = net.data("x", {kBatch, 2, 5}, f32);
  const Value y = conv1d(
      x, {.filters = 2, .kernel = 3, .padding = 1, .bias = false, .weight_init = Init::dirac()});
  net.output("y", y);
  Tensor values(f32, {1, 2, 5});
  for (int64_t i = 0; i < 10; ++i) values.as<float>()[static_cast<size_t>(i)] = float(i) - 4;
  Executor exe(net, cpu());
  const auto outputs = exe.predict({{"x", values}});
  for (int64_t i = 0; i < 10; ++i) EXPECT_EQ(outputs["y"].at(i), values.at(i));
}

}  // namespace
}  // namespace fluid::initial_values_test
