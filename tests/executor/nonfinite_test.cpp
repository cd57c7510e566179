// A step that overflows is run again, and the op that did it is named.

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "frontend/layers.h"
#include "frontend/optimizers.h"
#include "ops/operators.h"
#include "ops/source_kind.h"
#include "passes/loss_scale.h"
#include "tests/support/errors.h"
#include "tests/support/training.h"

namespace fluid {
namespace {

constexpr int64_t kSamples = 8, kWidth = 16;
const AmpOptions kHalf{.dtype = f16, .loss_scale = {.initial = 1}};

/// Three layers with dropout; `middle` stands between the first and the second.
template <class Middle>
Program network(Middle middle) {
  Program net("net");
  const Value x = net.data("x", {kBatch, kWidth}, f32);
  const Value first =
      dropout(linear(x, {.units = kWidth, .weight_init = Init::constant(0.1)}), Dropout{});
  const Value second = linear(middle(first), {.units = kWidth, .name = "second"});
  const Value loss = mean(square(linear(tanh(second), {.units = 1})));
  net.output("loss", loss);
  minimize(loss, SGD{.lr = 0.01});
  return net;
}

Batch batch_of(float value) {
  Tensor x(f32, {kSamples, kWidth});
  for (int64_t i = 0; i < x.numel(); ++i) {
    x.as<float>()[static_cast<size_t>(i)] = value * static_cast<float>(1 + i % 3);
  }
  return {kSamples, {{"x", x}}, 0};
}

void expect_named(const std::string& text, int line, const std::string& what) {
  const std::string place = "nonfinite_test.cpp:" + std::to_string(line) + ": ";
  EXPECT_TRUE(text.starts_with(place + what)) << text << "; not " << place << what;
}

std::vector<std::byte> everything(Executor& exe) {
  std::vector<std::byte> bytes = parameter_bytes(exe);
  for (const std::string_view name : {kLossScale, kGoodSteps, kSkippedSteps, kRandomState}) {
    const Tensor t = exe.parameter(name);
    const auto* data = static_cast<const std::byte*>(t.data());
    bytes.insert(bytes.end(), data, data + t.bytes());
  }
  return bytes;
}

/// Runs a step on numbers that overflow and returns what is said of it, which costs the training
/// nothing: it goes on as without.
std::string said_of(const Program& net, int64_t micro_batches) {
  ExecutorOptions options{
      .batch = kSamples, .amp = kHalf, .micro_batches = micro_batches, .check_finite = true};
  Executor checked(net, cpu(), options);
  options.check_finite = false;
  Executor plain(net, cpu(), options);
  checked.run(batch_of(0.01F));
  plain.run(batch_of(0.01F));
  checked.run(batch_of(1000));
  plain.run(batch_of(1000));
  EXPECT_EQ(checked.parameter(kSkippedSteps).item(), 1);
  const std::string text = checked.first_nonfinite(batch_of(1000));
  EXPECT_EQ(everything(checked), everything(plain));
  EXPECT_EQ(checked.run(batch_of(0.02F))["loss"].item(), plain.run(batch_of(0.02F))["loss"].item());
  EXPECT_EQ(everything(checked), everything(plain));
  return text;
}

TEST(NonFinite, IsFoundForwardInAMiddleLayer) {
  int line = 0;
  const Program net = network([&](Value v) {
    line = __LINE__ + 1;
    return v * 300.0;
  });
  for (const int64_t micro_batches : {1, 3}) {
    const std::string text = said_of(net, micro_batches);
    expect_named(text, line, "mul: element ");
    EXPECT_NE(text.find(", 16] is inf"), std::string::npos) << text;
    EXPECT_NE(text.find("f16["), std::string::npos) << text;
  }
}

TEST(NonFinite, IsFoundBackwardInAMiddleLayer) {
  int line = 0;
  const Program net = network([&](Value v) {
    const Value zero = v * 0.0;
    line = __LINE__ + 1;
    const Value root = sqrt(zero);  // has no slope there
    return v + root;
  });
  Executor exe(net, cpu(), {.batch = kSamples, .amp = kHalf, .check_finite = true});
  EXPECT_TRUE(std::isfinite(exe.run(batch_of(0.01F))["loss"].item()));
  EXPECT_EQ(exe.parameter(kSkippedSteps).item(), 1);
  const std::string text = exe.first_nonfinite(batch_of(0.01F));
  expect_named(text, line, "");
  EXPECT_NE(text.find(" (backward): element "), std::string::npos) << text;
}

TEST(NonFinite, IsFoundWithinAKernelInF32) {
  int line = 0;
  const Program net = network([&](Value v) {
    line = __LINE__ + 1;
    const Value large = exp(v);
    return v + (large - large);
  });
  Executor exe(net, cpu(), {.batch = kSamples, .check_finite = true});
  EXPECT_TRUE(std::isfinite(exe.run(batch_of(0.01F))["loss"].item()));
  EXPECT_EQ(exe.first_nonfinite(batch_of(0.01F)), "");
  const std::vector<std::byte> before = parameter_bytes(exe);
  EXPECT_TRUE(std::isnan(exe.run(batch_of(1000))["loss"].item()));
  EXPECT_EQ(parameter_bytes(exe), before);
  const std::string text = exe.first_nonfinite(batch_of(1000));
  expect_named(text, line, "exp: element ");
  EXPECT_NE(text.find("f32[8, 16] is inf"), std::string::npos) << text;
}

TEST(NonFinite, InAnySliceKeepsTheStepFromBeingApplied) {
  const Program net = network([](Value v) { return v; });
  Executor exe(net, cpu(), {.batch = kSamples, .micro_batches = 3, .check_finite = true});
  const std::vector<std::byte> before = parameter_bytes(exe);
  Batch bad = batch_of(0.01F);  // in its first slice
  bad.columns[0].second.as<float>()[5] = std::numeric_limits<float>::quiet_NaN();
  exe.run(bad);
  EXPECT_EQ(parameter_bytes(exe), before);
  EXPECT_EQ(exe.first_nonfinite(bad), "element 5 of feed 'x' is nan");
}

TEST(NonFinite, IsLookedForInOneProcess) {
  const Program net = network([](Value v) { return v; });
  ExecutorOptions options{.check_finite = true};
  options.world.size = 2;
  expect_user_error([&] { Executor(net, cpu(), options); },
                    "check_finite runs a step again in one process, not in several");
}

TEST(NonFinite, IsFoundInWhatTheStepGets) {
  const Program net = network([](Value v) { return v; });
  Executor exe(net, cpu(), {.batch = kSamples, .check_finite = true});
  Batch bad = batch_of(0.01F);
  bad.columns[0].second.as<float>()[5] = std::numeric_limits<float>::quiet_NaN();
  exe.run(bad);
  EXPECT_EQ(exe.first_nonfinite(bad), "element 5 of feed 'x' is nan");
  Tensor weights = exe.parameter("second.b");
  weights.as<float>()[2] = std::numeric_limits<float>::quiet_NaN();
  exe.set_parameter("second.b", weights);
  exe.run(batch_of(0.01F));
  EXPECT_EQ(exe.first_nonfinite(batch_of(0.01F)),
            "element 2 of 'second.b' was nan before the step");
}

}  // namespace
}  // namespace fluid
