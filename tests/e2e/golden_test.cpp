// Training runs compared with PyTorch's (tests/golden/training.py).

#include "tests/support/golden.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "frontend/fluid.h"
#include "tests/support/training.h"

namespace fluid {
namespace {

constexpr int kSteps = 50;

struct Golden {
  std::vector<double> f64, f32;
};

Golden golden(const std::string& work) {
  std::ifstream file(std::string(FLUID_SOURCE_DIR) + "/tests/golden/training.json");
  const auto json = nlohmann::json::parse(file).at(work);
  return {json.at("f64").get<std::vector<double>>(), json.at("f32").get<std::vector<double>>()};
}

/// Parameter k of the golden runs, in the order of recording. The fan in is that of its layer.
void set_parameters(Executor& exe, DType dtype) {
  double fan_in = 1;
  uint64_t k = 0;
  for (const std::string& name : exe.parameters()) {
    const std::vector<int64_t> shape = exe.parameter(name).shape();
    if (name.ends_with(".w")) {
      fan_in = static_cast<double>(shape.size() == 4 ? shape[1] * shape[2] * shape[3] : shape[0]);
    }
    Tensor value(f64, shape);
    const std::vector<double> numbers = testing::golden_parameter(k++, value.numel(), fan_in);
    std::copy(numbers.begin(), numbers.end(), value.as<double>().begin());
    exe.set_parameter(name, value.cast(dtype));
  }
}

/// The losses of 50 steps on the batches that `next` gives.
template <class Next>
std::vector<double> losses(const Program& net, DType dtype, int64_t batch, Next next) {
  ExecutorOptions options;
  if (dtype == f64) options.dtype = f64;
  options.batch = batch;
  Executor exe(net, cpu(), options);
  set_parameters(exe, dtype);
  std::vector<double> seen;
  for (int i = 0; i < kSteps; ++i) seen.push_back(exe.run(next())["loss"].item());
  return seen;
}

/// f64 follows PyTorch's f64 to 1e-7. f32 follows its f32 for ten steps to 2e-5, and its f64 after
/// them; where PyTorch's own two runs have moved further apart, three times their distance is
/// allowed.
void expect_follows(const std::string& work, const std::vector<double>& in_f64,
                    const std::vector<double>& in_f32) {
  const Golden expected = golden(work);
  double distance = 0;
  for (size_t i = 0; i < kSteps; ++i) {
    EXPECT_NEAR(in_f64[i], expected.f64[i], 1e-7 * std::abs(expected.f64[i])) << "f64, step " << i;
    distance = std::max(distance, std::abs(expected.f32[i] - expected.f64[i]));
    const double allowed = std::max(3 * distance, 2e-5 * std::abs(expected.f64[i]));
    const double reference = i < 10 ? expected.f32[i] : expected.f64[i];
    EXPECT_NEAR(in_f32[i], reference, allowed) << "f32, step " << i;
  }
}

template <class Optimizer>
void compare_on_mnist(const std::string& work, Program net, int64_t batch, Optimizer optimizer) {
  if (!std::filesystem::exists(mnist_directory())) {
    GTEST_SKIP() << "no MNIST files in " << mnist_directory() << "; set FLUID_DATA";
  }
  minimize(net.ir().main().outputs[0].value, optimizer);
  auto run = [&](DType dtype) {
    Reader reader(read_mnist(mnist_directory()), {.batch = batch});
    return losses(net, dtype, batch, [&]() -> const Batch& { return *reader.next(); });
  };
  expect_follows(work, run(f64), run(f32));
}

TEST(Golden, LinearRegression) {
  const Program net = linear_regression_program();
  const Batch batch = linear_batch(1000);
  auto run = [&](DType dtype) {
    return losses(net, dtype, 1000, [&]() -> const Batch& { return batch; });
  };
  expect_follows("linear_regression", run(f64), run(f32));
}

TEST(Golden, MnistFluidSgd) {
  compare_on_mnist("mnist_fluid_sgd", mnist_fluid_program(), 100, SGD{.lr = 0.01});
}
TEST(Golden, MnistFluidMomentum) {
  compare_on_mnist("mnist_fluid_momentum", mnist_fluid_program(), 100, Momentum{.lr = 0.01});
}
TEST(Golden, MnistFluidAdam) {
  compare_on_mnist("mnist_fluid_adam", mnist_fluid_program(), 100, Adam{.lr = 0.001});
}
TEST(Golden, MnistCnnAdam) {
  compare_on_mnist("mnist_cnn_adam", mnist_cnn_program(), 128, Adam{.lr = 0.02});
}

}  // namespace
}  // namespace fluid
