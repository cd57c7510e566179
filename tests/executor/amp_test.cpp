// Mixed precision computes what f32 does, but for rounding, in less memory.

#include <gtest/gtest.h>

#include <cmath>
#include <optional>
#include <sstream>

#include "executor/cpu/cpu_device.h"
#include "executor/device/device.h"
#include "executor/host/parallel.h"
#include "executor/tuning/amp_choice.h"
#include "frontend/layers.h"
#include "frontend/optimizers.h"
#include "ops/no_amp.h"
#include "ops/operators.h"
#include "tests/support/cpu_features.h"
#include "tests/support/errors.h"
#include "tests/support/temp_dir.h"
#include "tests/support/training.h"

namespace fluid::amp_test {
namespace {

constexpr int64_t kSamples = 32;

struct Step {
  double loss = 0;
  std::map<std::string, std::vector<double>> gradients;  ///< by parameter
  int64_t transient = 0;                                 ///< bytes
  std::string text;                                      ///< the final program
};

/// One step of SGD with rate 1: what it takes off a parameter is the gradient.
Step step_with(std::optional<AmpOptions> amp, std::unique_ptr<Device> device = cpu_device({})) {
  Program net = mnist_fluid_program();
  const Value loss = net.ir().main().outputs[0].value;
  minimize(loss, SGD{.lr = 1});
  Executor exe(net, std::move(device), {.batch = kSamples, .seed = 3, .precision = {.amp = amp}});
  std::map<std::string, Tensor> before;
  for (const std::string& name : exe.parameters()) before.emplace(name, exe.parameter(name));
  Step step;
  step.loss = exe.run(golden_images(0, kSamples))["loss"].item();
  step.transient = exe.memory().transient;
  step.text = exe.text(Mode::train, kSamples);
  for (const auto& [name, old] : before) {
    const Tensor now = exe.parameter(name);
    for (int64_t i = 0; i < old.numel(); ++i) {
      step.gradients[name].push_back(old.at(i) - now.at(i));
    }
  }
  return step;
}

double distance(const std::vector<double>& a, const std::vector<double>& b) {
  double difference = 0, norm = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    difference += (a[i] - b[i]) * (a[i] - b[i]);
    norm += b[i] * b[i];
  }
  return std::sqrt(difference / norm);
}

/// PyTorch 2.15's autocast on these images, from other initial values: the gradient that is
/// farthest off, conv0.w's, has a distance of 0.080 in bf16 and 0.026 in f16.
void expect_close_to_f32(const AmpOptions& amp, double most, double memory) {
  const Step exact = step_with(std::nullopt), half = step_with(amp);
  EXPECT_NEAR(half.loss, exact.loss, 1e-3 * exact.loss);
  for (const auto& [name, gradient] : exact.gradients) {
    EXPECT_LE(distance(half.gradients.at(name), gradient), most) << name;
  }
  EXPECT_LT(static_cast<double>(half.transient), memory * static_cast<double>(exact.transient));
}

/// Without AVX-512, libraries compute bf16 in f32, on temporary copies.
TEST(Amp, InBf16GradientsAreThoseOfF32) {
#if defined(__x86_64__)
  const bool libraries_compute_bf16 = testing::onednn_computes_bf16();
#else
  const bool libraries_compute_bf16 = false;
#endif
  expect_close_to_f32({.dtype = bf16}, 0.08, libraries_compute_bf16 ? 0.75 : 1);
}

/// Libraries compute in f32: what one kernel reads and writes is there in both.
TEST(Amp, InF16GradientsAreThoseOfF32) { expect_close_to_f32({.dtype = f16}, 0.027, 0.95); }

/// Compares a half-precision step on this CPU with one on a CPU without AVX and half-precision
/// instructions, which uses no library and converts the values. Both compute in f32, so stored
/// values differ by at most one rounding: relative 2^-8 in bf16, 2^-11 in f16.
void expect_same_on_lesser_cpu(const AmpOptions& amp, double rounding) {
#if !defined(__x86_64__)
  GTEST_SKIP() << "this CPU is no x86-64";
#endif
  TargetDescription baseline_cpu = describe_host(2);
  baseline_cpu.vector_bits = 128;
  baseline_cpu.gops = {{"f32_sse", {30, 60}}};
  const Step here = step_with(amp);
  const Step there =
      step_with(amp, cpu_device({.threads = 2, .baseline_cpu = {{baseline_cpu, "x86-64-v2"}}}));
  EXPECT_EQ(there.text.find("kernel = \""), std::string::npos) << "a library knows only this CPU";
  EXPECT_NEAR(there.loss, here.loss, rounding * here.loss);
  for (const auto& [name, gradient] : here.gradients) {
    EXPECT_LE(distance(there.gradients.at(name), gradient), 2 * rounding) << name;
  }
}

TEST(Amp, OnACpuWithoutInstructionsForBf16IsTheSame) {
  expect_same_on_lesser_cpu({.dtype = bf16}, 0x1p-8);
}

/// With a loss scale that keeps gradients out of f16's subnormal numbers, which round by more.
TEST(Amp, OnACpuWithoutInstructionsForF16IsTheSame) {
  expect_same_on_lesser_cpu({.dtype = f16, .loss_scale = {.initial = 1024}}, 0x1p-11);
}

/// The program of a training step as it runs in f16, with the second of two layers in a scope.
std::string step_text(bool no_amp) {
  Program net("net");
  const Value x = net.data("x", {kBatch, 4}, f32);
  const Value h = linear(x, {.units = 4, .name = "first"});
  std::optional<NoAmp> guard;
  if (no_amp) guard.emplace();
  const Value y = linear(h, {.units = 4, .name = "last"});
  const Value loss = mean(y);
  net.output("loss", loss);
  minimize(loss, SGD{});
  Executor exe(net, cpu(), {.precision = {.amp = AmpOptions{.dtype = f16}}});
  return exe.text(Mode::train, 8);
}

int products_in(DType dtype, const std::string& text) {
  std::istringstream lines(text);
  int products = 0;
  for (std::string line; std::getline(lines, line);) {
    const bool product = line.find("= matmul(") != std::string::npos;
    products += product && line.find(" : " + std::string(name_of(dtype))) != std::string::npos;
  }
  return products;
}

TEST(Amp, LeavesAScopeAndItsGradientsInF32) {
  const std::string all = step_text(false), scoped = step_text(true);
  const int products = products_in(f16, all);
  EXPECT_GE(products, 4);
  EXPECT_EQ(products_in(f32, all), 0) << all;
  EXPECT_EQ(products_in(f16, scoped), 2) << scoped;  // y and the weight gradient of the first layer
  EXPECT_EQ(products_in(f32, scoped), products - 2) << scoped;
}

void expect_rejection(const ExecutorOptions& options, const std::string& message) {
  const Program net = mnist_fluid_program();
  expect_user_error([&] { Executor(net, cpu(), options); }, message);
}

TEST(Amp, RejectsOtherDtypes) {
  expect_rejection({.precision = {.amp = AmpOptions{.dtype = f32}}},
                   "mixed precision needs bf16 or f16, not f32");
  expect_rejection({.precision = {.dtype = f64, .amp = AmpOptions{}}},
                   "mixed precision and a whole program in f64 exclude each other");
}

TEST(Amp, AChoiceGoesByTimeThenByMemory) {
  const StepCost never{.ms = HUGE_VAL, .arena_bytes = 0};
  const struct {
    StepCosts costs;
    Precision best;
    std::string text;
  } cases[] = {
      {{{{10, 1000}, {9, 2000}, {12, 500}}}, Precision::o1, "bf16 o1, the fastest: "},
      {{{{9, 2000}, {10, 1000}, {10, 1000}}}, Precision::f32, "f32, the fastest: "},
      {{{{10, 1000}, {10.1, 800}, {9.9, 700}}},
       Precision::o2,
       "bf16 o2, the smallest of those as fast: "},
      {{{{10, 1000}, {9.9, 999}, {10.1, 980}}},
       Precision::f32,
       "f32, the simplest of those as fast and as small: "},
      {{{{20, 1000}, {9.9, 999}, {10.1, 980}}},
       Precision::o1,
       "bf16 o1, the simplest of those as fast and as small: "},
      {{{never, {9, 1000}, {12, 500}}}, Precision::o1, "bf16 o1, the fastest: f32 does not fit, "},
      {{{never, {9, 1024}, never}},
       Precision::o1,
       "bf16 o1, the only one that fits: f32 does not fit, o1 9 ms in 1.00 KiB, o2 does not fit"},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(choose_precision(c.costs), c.best) << c.text;
    const AmpChoice choice{.precision = c.best, .costs = c.costs};
    EXPECT_TRUE(choice.text().starts_with(c.text)) << choice.text();
  }
}

TEST(Amp, IsChosenByTimingSteps) {
  const Program net = mnist_fluid_program();
  const Executor exe(net, cpu(), {.batch = 4, .precision = {.choose_amp = true}});
  const AmpChoice& choice = exe.amp_choice().value();
  EXPECT_EQ(choice.precision, parse_precision(amp_text(exe.amp())));
  EXPECT_EQ(choice.precision, choose_precision(choice.costs));
  for (const StepCost& cost : choice.costs) EXPECT_GT(cost.ms, 0);
  EXPECT_FALSE(choice.cached);
  expect_rejection({.precision = {.choose_amp = true}},
                   "choose_amp times training steps: it needs a batch");
}

TEST(Amp, AChoiceIsKeptForItsQuestionAlone) {
  const TempDir dir;
  const Program net = mnist_fluid_program();
  const ExecutorOptions asked{.batch = 2, .cache_dir = dir.path()};
  EXPECT_FALSE(cached_amp_choice(net, cpu(), asked));
  const AmpChoice chosen = choose_amp(net, cpu(), asked);
  const std::optional<AmpChoice> kept = cached_amp_choice(net, cpu(), asked);
  ASSERT_TRUE(kept);
  EXPECT_TRUE(kept->cached);
  EXPECT_EQ(kept->precision, chosen.precision);
  EXPECT_EQ(kept->text(), chosen.text() + " (measured before)");
  ExecutorOptions other = asked;
  other.precision.amp = AmpOptions{.dtype = bf16, .level = AmpLevel::o2};
  EXPECT_TRUE(cached_amp_choice(net, cpu(), other)) << "both levels are tried";
  other.precision.amp->dtype = f16;
  EXPECT_FALSE(cached_amp_choice(net, cpu(), other));
  other = asked;
  other.batch = 3;
  EXPECT_FALSE(cached_amp_choice(net, cpu(), other));
  other = asked;
  other.gpu.prefetch = false;  // on a GPU it takes less memory
  EXPECT_FALSE(cached_amp_choice(net, cpu(), other));
  other = asked;
  other.threads = thread_count(0);  // the value that 0 selects
  EXPECT_TRUE(cached_amp_choice(net, cpu(), other));
  ++other.threads;
  EXPECT_FALSE(cached_amp_choice(net, cpu(), other));
}

TEST(Amp, APrecisionIsReadFromItsText) {
  const AmpOptions o2{.dtype = f16, .level = AmpLevel::o2, .in_f32 = {"o2"}};
  const AmpOptions o1{.dtype = f16, .in_f32 = {"o2"}};
  EXPECT_EQ(parse_precision(amp_text(std::nullopt)), Precision::f32);
  EXPECT_EQ(parse_precision(amp_text(o1)), Precision::o1);
  EXPECT_EQ(parse_precision(amp_text(o2)), Precision::o2);
}

TEST(Amp, TakesThePrecisionThatFits) {
  ExecutorOptions options = {
      .batch = 128, .memory_limit = int64_t{8} << 20, .precision = {.choose_amp = true}};
  options.debug.libraries = false;  // the memory that libraries need depends on the CPU
  const Executor exe(mnist_fluid_program(), cpu(), options);
  EXPECT_TRUE(exe.amp().has_value());
  EXPECT_NE(exe.amp_choice()->text().find(": f32 does not fit, o1 "), std::string::npos)
      << exe.amp_choice()->text();
  EXPECT_THROW(Executor(mnist_fluid_program(), cpu(),
                        {.batch = 128, .memory_limit = 1 << 20, .precision = {.choose_amp = true}}),
               UserError);
}

TEST(Amp, RejectsALossScaleThatCannotMove) {
  for (const LossScale& scale :
       {LossScale{.initial = 0.5}, LossScale{.initial = 0x1p25}, LossScale{.growth = 0.5},
        LossScale{.backoff = 2}, LossScale{.interval = 0}, LossScale{.floor = 0},
        LossScale{.ceiling = 1e39}}) {
    expect_rejection({.precision = {.amp = AmpOptions{.dtype = f16, .loss_scale = scale}}},
                     "after a bad one, needs 0 < floor <= initial <= ceiling within the range of "
                     "f32, growth >= 1, 0 < backoff <= 1 and an interval above 0");
  }
  for (const double scale : {0.0, 1e39}) {
    expect_rejection(
        {.precision = {.amp = AmpOptions{.dtype = f16,
                                         .loss_scale = {.initial = scale, .dynamic = false}}}},
        " is outside the range of f32");
  }
}

}  // namespace
}  // namespace fluid::amp_test
