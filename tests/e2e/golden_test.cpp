// Training runs compared with PyTorch's (tests/golden/training.py).

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>

#include "frontend/examples/char_gpt.h"
#include "frontend/examples/lstm_text.h"
#include "frontend/fluid.h"
#include "tests/support/full_run.h"
#include "tests/support/single_steps.h"
#include "tests/support/training.h"

namespace fluid::golden_test {
namespace {

/// The golden has 50 steps.
uint64_t num_steps() { return testing::is_full_run() ? 50 : 12; }

struct Golden {
  std::vector<double> f64, f32;
};

Golden golden(const std::string& work) {
  std::ifstream file(std::string(FLUID_SOURCE_DIR) + "/tests/golden/training.json");
  const auto json = nlohmann::json::parse(file).at(work);
  return {json.at("f64").get<std::vector<double>>(), json.at("f32").get<std::vector<double>>()};
}

Executor executor(const Program& net, std::optional<DType> dtype, int64_t batch) {
  ExecutorOptions options;
  options.precision.dtype = dtype;
  options.batch = batch;
  Executor exe(net, cpu(), options);
  set_golden_parameters(exe, net);
  return exe;
}

struct Work {
  std::string name;
  Program net;
  int64_t batch;
  std::vector<std::string> states;  ///< optimizer states of a parameter
  std::function<Batch(uint64_t step)> data;
};

/// Three runs. In f64, the losses are PyTorch's in f64 to 1e-7. In f32 they are PyTorch's in f32 to
/// 2e-5 for ten steps. After that they are those in f64 to 5e-4, because rounding differs between
/// CPUs, and one pool that sends a gradient to another pixel moves a run by 1e-4. Where PyTorch's
/// own two runs have moved further apart, three times their distance is allowed. In f32 with f64's
/// variables before every step, which leaves no time to move apart, the losses are PyTorch's in f64
/// to 2e-6, and the variables change as in f64.
void expect_follows(const Work& work) {
  const Golden expected = golden(work.name);
  Executor exact = executor(work.net, f64, work.batch);
  Executor free = executor(work.net, {}, work.batch);
  testing::SingleSteps led(work.net, work.batch, work.states);
  double apart = 0;
  for (uint64_t i = 0; i < num_steps(); ++i) {
    const Batch batch = work.data(i);
    const auto [in_f64, in_f32] = led.run(exact, batch);
    const double truth = expected.f64[i];
    EXPECT_NEAR(in_f64, truth, 1e-7 * std::abs(truth)) << "f64, step " << i;
    EXPECT_NEAR(in_f32, truth, 2e-6 * std::abs(truth)) << "f32 from f64's values, step " << i;
    apart = std::max(apart, std::abs(expected.f32[i] - truth));
    const double allowed = std::max(3 * apart, (i < 10 ? 2e-5 : 5e-4) * std::abs(truth));
    EXPECT_NEAR(free.run(batch)["loss"].item(), i < 10 ? expected.f32[i] : truth, allowed)
        << "f32, step " << i;
  }
  led.expect_small_errors();
}

template <class Optimizer>
void compare_on_images(const std::string& name, Program net, int64_t batch, Optimizer optimizer,
                       std::vector<std::string> states) {
  minimize(net.ir().main().outputs[0].value, optimizer);
  expect_follows({name, std::move(net), batch, std::move(states),
                  [batch](uint64_t step) { return golden_images(step, batch); }});
}

TEST(Golden, LinearRegression) {
  const Batch batch = linear_batch(1000);
  expect_follows(
      {"linear_regression", linear_regression_program(), 1000, {"m", "v"}, [batch](uint64_t) {
         return batch;
       }});
}
TEST(Golden, MnistFluidSgd) {
  compare_on_images("mnist_fluid_sgd", mnist_fluid_program(), 100, SGD{.lr = 0.01}, {});
}
TEST(Golden, MnistFluidMomentum) {
  compare_on_images("mnist_fluid_momentum", mnist_fluid_program(), 100, Momentum{.lr = 0.01},
                    {"velocity"});
}
TEST(Golden, MnistFluidAdam) {
  compare_on_images("mnist_fluid_adam", mnist_fluid_program(), 100, Adam{.lr = 0.001}, {"m", "v"});
}
TEST(Golden, CharGptAdamW) {
  constexpr CharGptConfig kConfig{.layers = 2, .heads = 2, .width = 16, .length = 12};
  Program net("char_gpt");
  minimize(record_char_gpt(net, kConfig), AdamW{.lr = 0.003});
  expect_follows({"char_gpt_adamw", std::move(net), 4, {"m", "v"}, [](uint64_t step) {
                    return golden_texts(step, 4, kConfig.length);
                  }});
}
TEST(Golden, LstmTextAdam) {
  constexpr LstmTextConfig kConfig{.layers = 2, .width = 8, .length = 12};
  Program net("lstm_text");
  minimize(record_lstm_text(net, kConfig), Adam{.lr = 0.01});
  expect_follows({"lstm_text_adam", std::move(net), 4, {"m", "v"}, [](uint64_t step) {
                    return golden_texts(step, 4, kConfig.length);
                  }});
}
TEST(Golden, MnistCnnAdam) {
  compare_on_images("mnist_cnn_adam", mnist_cnn_program(), 128, Adam{.lr = 0.02}, {"m", "v"});
}

}  // namespace
}  // namespace fluid::golden_test
