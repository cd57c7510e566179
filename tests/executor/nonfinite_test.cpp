// A step that overflows is run again, and the op that did it is named.

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "executor/comm/process_group.h"
#include "frontend/layers.h"
#include "frontend/optimizers.h"
#include "ops/operators.h"
#include "ops/source_kind.h"
#include "passes/loss_scale.h"
#include "tests/support/errors.h"
#include "tests/support/processes.h"
#include "tests/support/training.h"

namespace fluid::nonfinite_test {
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

/// Runs a step whose values overflow, and returns the message about it. Expects that the check does
/// not affect training.
std::string nonfinite_message(const Program& net, int64_t micro_batches) {
  ExecutorOptions options{.batch = kSamples,
                          .micro_batches = micro_batches,
                          .precision = {.amp = kHalf},
                          .debug = {.check_finite = true}};
  Executor checked(net, cpu(), options);
  options.debug.check_finite = false;
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
    const std::string text = nonfinite_message(net, micro_batches);
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
  Executor exe(net, cpu(),
               {.batch = kSamples, .precision = {.amp = kHalf}, .debug = {.check_finite = true}});
  EXPECT_TRUE(std::isfinite(exe.run(batch_of(0.01F))["loss"].item()));
  EXPECT_EQ(exe.parameter(kSkippedSteps).item(), 1);
  const std::string text = exe.first_nonfinite(batch_of(0.01F));
  expect_named(text, line, "");
  EXPECT_NE(text.find(" (backward): element "), std::string::npos) << text;
}

/// With loss scaling, a step checks its gradients anyway. check_finite therefore does not change
/// the program or its memory, and compiles nothing more. A step in f32 checks its loss.
TEST(NonFinite, CostsAStepThatIsAppliedNothing) {
  const Program net = network([](Value v) { return v; });
  for (const auto& [level, micro_batches] : {std::pair(AmpLevel::o1, 1), {AmpLevel::o2, 3}}) {
    ExecutorOptions options{.batch = kSamples,
                            .micro_batches = micro_batches,
                            .precision = {.amp = AmpOptions{.dtype = f16, .level = level}}};
    const Executor plain(net, cpu(), options);
    options.debug.check_finite = true;
    const Executor checked(net, cpu(), options);
    EXPECT_EQ(checked.text(Mode::train, kSamples), plain.text(Mode::train, kSamples));
    EXPECT_EQ(checked.memory().total, plain.memory().total);
    EXPECT_EQ(num_kernels(checked), num_kernels(plain));
  }
  const Executor f32(net, cpu(), {.batch = kSamples, .debug = {.check_finite = true}});
  EXPECT_NE(f32.text(Mode::train, kSamples).find("is_finite("), std::string::npos);
}

TEST(NonFinite, IsFoundWithinAKernelInF32) {
  int line = 0;
  const Program net = network([&](Value v) {
    line = __LINE__ + 1;
    const Value large = exp(v);
    return v + (large - large);
  });
  Executor exe(net, cpu(), {.batch = kSamples, .debug = {.check_finite = true}});
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
  Executor exe(net, cpu(),
               {.batch = kSamples, .micro_batches = 3, .debug = {.check_finite = true}});
  const std::vector<std::byte> before = parameter_bytes(exe);
  Batch bad = batch_of(0.01F);  // in its first micro-batch
  bad.columns[0].second.as<float>()[5] = std::numeric_limits<float>::quiet_NaN();
  exe.run(bad);
  EXPECT_EQ(parameter_bytes(exe), before);
  EXPECT_EQ(exe.first_nonfinite(bad), "element 5 of feed 'x' is nan");
}

TEST(NonFinite, IsLookedForInTheLastStepAlone) {
  const Program net = network([](Value v) { return v; });
  Executor unchecked(net, cpu(), {.batch = kSamples});
  unchecked.run(batch_of(0.01F));
  expect_user_error([&] { unchecked.first_nonfinite(batch_of(0.01F)); },
                    "first_nonfinite() needs the option check_finite");
  Executor exe(net, cpu(), {.batch = kSamples, .debug = {.check_finite = true}});
  exe.run(batch_of(0.01F));
  Batch other = batch_of(0.01F);
  other.size = kSamples + 1;
  expect_user_error(
      [&] { exe.first_nonfinite(other); },
      "first_nonfinite() got a batch of " + std::to_string(kSamples + 1) +
          " samples, but no step of this size was prepared: pass the batch of the last step");
  Batch without = batch_of(0.01F);
  without.columns.clear();
  expect_user_error([&] { exe.first_nonfinite(without); }, "feed 'x' is missing");
}

/// Returns the message of each rank for a step with the sample values `values`, one per rank.
/// Expects that no rank applies the step, and that training continues. A rank with value 0 has no
/// samples.
std::vector<std::string> told(const Program& net, ExecutorOptions options,
                              const std::vector<float>& values) {
  const auto share = [](const std::vector<float>& of, const World& world) {
    Batch batch = batch_of(of[static_cast<size_t>(world.rank)]);
    for (int rank = 0; rank < world.size; ++rank) {
      if (of[static_cast<size_t>(rank)] == 0) continue;
      if (rank < world.rank) batch.first += kSamples;
      batch.global_batch_size += kSamples;
    }
    if (of[static_cast<size_t>(world.rank)] == 0) batch.size = 0;
    if (batch.size == 0) batch.columns[0].second = Tensor(f32, {0, kWidth});
    return batch;
  };
  return testing::Ranks(
             static_cast<int>(values.size()),
             [&](const World& world) {
               options.distributed.world = world;
               options.threads = 1;
               options.debug.check_finite = true;
               Executor exe(net, cpu(), options);
               exe.prepare({.train = {kSamples, 0}});
               const std::vector<float> good(values.size(), 0.01F);
               exe.run(share(good, world));
               const std::vector<std::byte> before = parameter_bytes(exe);
               exe.run(share(values, world));
               std::string text = exe.first_nonfinite(share(values, world));
               if (parameter_bytes(exe) != before) text += ", but parameters have changed";
               exe.run(share(good, world));
               if (parameter_bytes(exe) == before) text += ", but training does not go on";
               const std::vector<std::byte> after = parameter_bytes(exe);
               exe.process_group().check_equal(
                   "set of parameters",
                   std::string(reinterpret_cast<const char*>(after.data()), after.size()));
               return text;
             })
      .results();
}

void expect_mismatch_error(const std::vector<std::string>& texts, const std::string& rank, int line,
                           const std::string& what) {
  for (const std::string& text : texts) {
    EXPECT_EQ(text, texts[0]);
    ASSERT_TRUE(text.starts_with(rank)) << text;
    EXPECT_EQ(text.find(", but"), std::string::npos) << text;
    if (line > 0) expect_named(text.substr(rank.size()), line, what);
  }
}

TEST(NonFinite, OfOneRankIsToldToAll) {
  int line = 0;
  const Program net = network([&](Value v) {
    line = __LINE__ + 1;
    return v * 300.0;
  });
  const Program plain = network([](Value v) { return v; });
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const ExecutorOptions half{.precision = {.amp = kHalf}},
      sliced{.micro_batches = 3, .precision = {.amp = kHalf}};
  expect_mismatch_error(told(net, half, {0.01F, 1000}), "rank 1: ", line, "mul: element ");
  expect_mismatch_error(told(net, sliced, {1000, 0}), "rank 0: ", line, "mul: element ");
  expect_mismatch_error(told(net, {}, {1e37F, 0.01F}), "rank 0: ", line, "mul: element ");
  expect_mismatch_error(told(plain, {.micro_batches = 3}, {0, nan}),
                        "rank 1: element 0 of feed 'x' is nan", 0, "");
}

TEST(NonFinite, OfOneRanksBackwardIsToldToAll) {
  Program net("net");
  const Value x = net.data("x", {kBatch, kWidth}, f32);
  const Value first =
      linear(x, {.units = kWidth, .bias = false, .weight_init = Init::constant(0.1)});
  const int line = __LINE__ + 1;
  const Value root = sqrt(first);  // has no slope at 0, which a small number is in f16
  const Value loss = mean(square(linear(root, {.units = 1})));
  net.output("loss", loss);
  minimize(loss, SGD{.lr = 1e-4});
  expect_mismatch_error(told(net, {.precision = {.amp = kHalf}}, {0.01F, 1e-30F}), "rank 1: ", line,
                        "");
}

TEST(NonFinite, ASumOverRanksIsOfNoRank) {
  Program net("sum");
  const Value x = net.data("x", {kBatch, kWidth}, f32);
  const Value loss = mean(square(linear(x, {.units = 1, .weight_init = Init::constant(1)})));
  net.output("loss", loss);
  minimize(loss, SGD{.lr = 0.01});
  const ExecutorOptions options{.precision = {.amp = kHalf},
                                .distributed = {.buckets = {.dtype = f16}}};
  expect_mismatch_error(told(net, options, {30, 0.01F, 30}), "", 0, "");
}

/// The gradients of such a step are finite, so that it was applied; it is not once more.
TEST(NonFinite, IsFoundInALossWhoseStepWasApplied) {
  Program net("net");
  const Value x = net.data("x", {kBatch, kWidth}, f32), y = net.data("y", {kBatch, 1}, f32);
  const Value out = linear(x, {.units = 1, .bias = false, .weight_init = Init::constant(0.5)});
  const Value distance = abs(out - y);
  const int line = __LINE__ + 1;
  const Value loss = mean(distance);
  net.output("loss", loss);
  minimize(loss, SGD{.lr = 0.01});
  Batch batch = batch_of(1);
  Tensor far(f32, {kSamples, 1});
  for (float& v : far.as<float>()) v = 3e38F;
  batch.columns.emplace_back("y", far);
  for (const AmpLevel level : {AmpLevel::o1, AmpLevel::o2}) {
    AmpOptions amp = kHalf;
    amp.level = level;
    Executor exe(net, cpu(),
                 {.batch = kSamples, .precision = {.amp = amp}, .debug = {.check_finite = true}});
    const std::vector<std::byte> before = parameter_bytes(exe);
    EXPECT_TRUE(std::isinf(exe.run(batch)["loss"].item()));
    EXPECT_EQ(exe.parameter(kSkippedSteps).item(), 0);
    EXPECT_NE(parameter_bytes(exe), before);
    const std::vector<std::byte> after = parameter_bytes(exe);
    expect_named(exe.first_nonfinite(batch), line, "");
    EXPECT_EQ(parameter_bytes(exe), after);
  }
}

TEST(NonFinite, IsFoundInWhatTheStepGets) {
  const Program net = network([](Value v) { return v; });
  Executor exe(net, cpu(), {.batch = kSamples, .debug = {.check_finite = true}});
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
}  // namespace fluid::nonfinite_test
