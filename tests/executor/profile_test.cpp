// Where the time of steps goes: what is recorded of them, and how it is shown.

#include <gtest/gtest.h>

#include <algorithm>

#include "executor/executor.h"
#include "frontend/optimizers.h"
#include "tests/support/errors.h"
#include "tests/support/trace_check.h"
#include "tests/support/training.h"

namespace fluid::profile_test {
namespace {

constexpr ProfileOptions kFew = {.warm_up = 2, .steps = 3};

Program digits() {
  Program net = mnist_cnn_program();
  minimize(net.ir().main().outputs[0].value, Adam{.lr = 0.01});
  return net;
}

/// All calls of one kind of step.
std::vector<CallInfo> calls_of(const ProfiledStep& step) {
  std::vector<CallInfo> all;
  for (const auto& run : step.runs) all.insert(all.end(), run.begin(), run.end());
  return all;
}

const CallInfo* find(const std::vector<CallInfo>& calls, const std::string& ops) {
  const auto found = std::ranges::find_if(
      calls, [&](const CallInfo& c) { return c.ops.find(ops) != std::string::npos; });
  return found == calls.end() ? nullptr : &*found;
}

TEST(Profile, RecordsSomeStepsAfterWarmUp) {
  const Program net = digits();
  Executor exe(net, cpu(), {.batch = 8, .threads = 2, .profile = kFew});
  EXPECT_TRUE(exe.profile().empty());
  const Batch batch = digit_batch(8);
  for (int i = 0; i < 2; ++i) exe.run(batch);
  EXPECT_TRUE(exe.profile().empty()) << "these warm up";
  exe.run(batch);
  EXPECT_EQ(exe.profile().steps.at(0).times.size(), 1U);
  for (int i = 0; i < 9; ++i) exe.run(batch);
  const Profile profile = exe.profile();
  ASSERT_EQ(profile.steps.size(), 1U);
  EXPECT_EQ(profile.threads, 2);
  EXPECT_EQ(profile.steps[0].name(), "training step of 8 samples");
  EXPECT_EQ(profile.steps[0].times.size(), 3U);
}

TEST(Profile, SpansLieInTheirStepOneAfterTheOther) {
  const Program net = digits();
  Executor exe(net, cpu(), {.batch = 8, .profile = kFew});
  for (int i = 0; i < 4; ++i) exe.run(digit_batch(8));
  const ProfiledStep step = exe.profile().steps.at(0);
  int64_t now = 0;
  for (const StepTimes& times : step.times) {
    EXPECT_GE(times.step.begin, now);
    now = times.step.begin;
    for (const RunTimes& run : times.runs) {
      EXPECT_GE(run.feeds.begin, now);
      now = run.feeds.end;
      ASSERT_EQ(run.calls.size(), step.runs.at(0).size());
      for (const CallTimes& c : run.calls) {
        EXPECT_GE(c.call.begin, now);
        EXPECT_GE(c.call.end, c.call.begin);
        now = c.call.end;
        EXPECT_EQ(c.wait.ns() + c.collective.ns(), 0) << "there is no other process";
      }
    }
    EXPECT_GE(times.step.end, now);
    now = times.step.end;
  }
}

TEST(Profile, SaysWhatCallsDo) {
  const Program net = digits();
  Executor exe(net, cpu(), {.batch = 8, .profile = kFew});
  for (int i = 0; i < 3; ++i) exe.run(digit_batch(8));
  const auto calls = calls_of(exe.profile().steps.at(0));
  const CallInfo* conv = find(calls, "conv2d, add");
  ASSERT_NE(conv, nullptr);
  EXPECT_EQ(conv->layer, "conv0");
  EXPECT_EQ(conv->role, ir::Role::forward);
  EXPECT_NE(conv->line.find("training.cpp:"), std::string::npos) << conv->line;
  // 28 x 28 images, 3 x 3 filters: 26 x 26 places, 32 channels; then the bias.
  EXPECT_EQ(conv->flops, 8.0 * 26 * 26 * 32 * (2 * 9 + 1));
  const CallInfo* update = find(calls, "adam");
  ASSERT_NE(update, nullptr);
  EXPECT_FALSE(update->layer.empty());
  const CallInfo* dense = find(calls, "matmul");
  ASSERT_NE(dense, nullptr);
  EXPECT_GT(dense->predicted_ms, 0) << "a library might have had it";
  const CallInfo* pool = find(calls, "max_pool2d_grad");
  ASSERT_NE(pool, nullptr);
  EXPECT_EQ(pool->role, ir::Role::backward);
  EXPECT_EQ(pool->kernel, "generated");
  EXPECT_EQ(pool->kind, "adaptive_max_pool2d_grad");
  EXPECT_EQ(pool->largest_dtype, f32);
  EXPECT_LT(pool->predicted_ms, 0);
  EXPECT_EQ(pool->layer, pool->line) << "it was recorded outside of layers";
}

TEST(Profile, LeavesTheBitsOfAStepAlone) {
  const Program net = digits();
  Executor plain(net, cpu(), {.batch = 8}), profiled(net, cpu(), {.batch = 8, .profile = kFew});
  for (int i = 0; i < 4; ++i) {
    plain.run(digit_batch(8));
    profiled.run(digit_batch(8));
  }
  EXPECT_EQ(parameter_bytes(plain), parameter_bytes(profiled));
}

TEST(Profile, KnowsSlicesAndModes) {
  const Program net = digits();
  Executor exe(net, cpu(), {.micro_batches = 3, .profile = kFew});
  exe.prepare({.train = {8}, .eval = {5}});
  for (int i = 0; i < 3; ++i) {
    exe.run(digit_batch(8));
    exe.eval(digit_batch(5));
  }
  const Profile profile = exe.profile();
  ASSERT_EQ(profile.steps.size(), 2U);
  EXPECT_EQ(profile.steps[0].runs.size(), 3U);
  EXPECT_EQ(profile.steps[1].name(), "eval step of 5 samples");
  EXPECT_EQ(profile.steps[1].runs.size(), 1U);
  // Micro-batches of 3, 3 and 2 samples.
  const double whole = 8.0 * 26 * 26 * 32 * (2 * 9 + 1);
  double flops = 0;
  for (const CallInfo& c : calls_of(profile.steps[0])) {
    if (c.layer == "conv0" && c.role == ir::Role::forward) flops += c.flops;
  }
  EXPECT_EQ(flops, whole);
}

TEST(Profile, RejectsToRecordNothing) {
  const Program net = digits();
  expect_user_error([&] { Executor(net, cpu(), {.profile = ProfileOptions{.steps = 0}}); },
                    "a profile of 0 steps after 3 others: it has 1 to 10000");
  expect_user_error([&] { Executor(net, cpu(), {.profile = ProfileOptions{.warm_up = -1}}); },
                    "a profile of 20 steps after -1 others");
}

TEST(Profile, LimitsAreThoseOfAMachine) {
  const Program net = digits();
  const Executor one(net, cpu(), {.threads = 1}), two(net, cpu(), {.threads = 2});
  const PeakRates rates = one.peak_rates();
  EXPECT_GT(rates.bytes_per_second, 1e8);
  EXPECT_LT(rates.bytes_per_second, 1e12);
  EXPECT_GE(rates.flops_bf16, rates.flops_f32);
  EXPECT_EQ(2 * rates.flops_f64, rates.flops_f32);
  EXPECT_GE(two.peak_rates().flops_f32, rates.flops_f32);
}

constexpr int64_t kMs = 1'000'000;
constexpr PeakRates kPeakRates = {.flops_f64 = 1e11,
                                  .flops_f32 = 2e11,
                                  .flops_f16 = 2e11,
                                  .flops_bf16 = 4e11,
                                  .bytes_per_second = 1e10};

/// A profile of two steps, the faster of which takes 10 ms, and a concurrent collective of 6 MB.
Profile made_up_profile() {
  const CallInfo conv = {.layer = "conv0",
                         .ops = "conv2d",
                         .kernel = "onednn.conv2d",
                         .line = "a.cpp:1",
                         .role = ir::Role::forward,
                         .flops = 4e8,
                         .bytes = 2e6,
                         .dtype = f32,
                         .predicted_ms = 5};
  const CallInfo pool = {.layer = "a.cpp:2",
                         .ops = "max_pool2d",
                         .kernel = "generated",
                         .line = "a.cpp:2",
                         .role = ir::Role::backward,
                         .flops = 1e6,
                         .bytes = 3e6};
  const CallInfo sum = {.layer = "conv0",
                        .ops = "all_reduce",
                        .kernel = "all_reduce",
                        .role = ir::Role::comm,
                        .bytes = 6e6,
                        .is_collective = true};
  const auto step = [](int64_t begin, int64_t more) {
    const auto span = [&](int64_t from, int64_t to) {
      return TimeSpan{begin + from * kMs, begin + to * kMs};
    };
    const RunTimes run{.feeds = span(0, 1),
                       .final_wait = span(9, 10),
                       .calls = {{.wait = {}, .call = span(1, 5), .collective = {}},
                                 {.wait = {}, .call = span(5, 5), .collective = span(5, 8)},
                                 {.wait = span(5, 6), .call = span(6, 8), .collective = {}}}};
    return StepTimes{{begin, begin + (10 + more) * kMs}, {run}};
  };
  ProfiledStep train{.mode = Mode::train, .batch = 7, .runs = {{conv, sum, pool}}, .times = {}};
  train.times = {step(0, 5), step(17 * kMs, 0)};
  return {.program = "net", .rank = 3, .threads = 2, .warm_up = 3, .steps = {train}};
}

TEST(Profile, TableAddsUpToTheStep) {
  const std::string table = made_up_profile().table(kPeakRates);
  const std::string head =
      "profile of net on 2 threads; at most 200 GFLOP/s in f32, 400 in bf16, and 10.0 GB/s of "
      "memory\n\n"
      "training step of 7 samples: 10.000 ms (mean of the faster 1 of 2 steps, after 3 "
      "unrecorded)\n"
      "  share        ms  calls  GFLOP/s    %    GB/s    % predicted  ratio  ";
  EXPECT_TRUE(table.starts_with(head)) << table;
  for (const std::string line :
       {" 40.0 %     4.000      1    100.0   50     0.5    5     5.000   0.80  "
        "forward   onednn.conv2d                conv0            conv2d, a.cpp:1\n",
        " 20.0 %     2.000      1      0.5    0     1.5   15                   "
        "backward  generated                    a.cpp:2          max_pool2d\n",
        "  0.0 %     0.000      1                                              comm      "
        "all_reduce                   conv0            all_reduce\n",
        " 10.0 %     1.000                                                     feeds: copied in\n",
        " 20.0 %     2.000                                                     "
        "waiting for other processes\n",
        " 10.0 %     1.000                                                     between calls\n",
        "100.0 %    10.000      3     40.1   20     0.5    5                   total\n"
        "concurrent: 1 collectives of 6.00 MB, 3.000 ms, 2.00 GB/s\n"
        "between two steps: 2.000 ms (median)\n",
        "by layer\n 40.0 %     4.000      2    100.0   50     0.5    5     5.000   0.80  conv0\n",
        "by kernel\n 40.0 %", "by role\n 40.0 %"}) {
    EXPECT_NE(table.find(line), std::string::npos) << line << "\nis not in\n" << table;
  }
}

TEST(Profile, OfAGpuSaysSo) {
  Profile profile = made_up_profile();
  profile.threads = 0;
  EXPECT_TRUE(
      profile.table(kPeakRates).starts_with("profile of net on a GPU; at most 200 GFLOP/s"));
  EXPECT_NE(profile.trace(kPeakRates).find("steps, on a GPU"), std::string::npos);
}

TEST(Profile, ATraceWithoutLimitsHasNone) {
  const std::string trace = made_up_profile().trace({});
  testing::checked_trace(trace);
  EXPECT_EQ(trace.find("at most"), std::string::npos);
  EXPECT_EQ(trace.find("% of"), std::string::npos);
}

TEST(Profile, TraceIsOneOfChromes) {
  const auto trace = testing::checked_trace(made_up_profile().trace(kPeakRates));
  EXPECT_EQ(trace.at("otherData").at("at most, GB/s of memory"), 10);
  std::vector<std::string> names;
  for (const auto& event : trace.at("traceEvents")) {
    EXPECT_EQ(event.at("pid"), 3);
    if (event.at("ph") == "M") continue;
    EXPECT_EQ(event.at("ph"), "X");
    EXPECT_GT(event.at("dur").get<double>(), 0);
    if (event.at("ts").get<double>() < 17'000) continue;
    const bool communicates = event.at("name") == "conv0: all_reduce";
    EXPECT_EQ(event.at("tid"), communicates ? 2 : 1);
    names.push_back(event.at("name"));
    if (names.size() != 3) continue;
    EXPECT_EQ(event.at("ts"), 18'000);
    EXPECT_EQ(event.at("dur"), 4'000);
    EXPECT_EQ(event.at("args").at("GFLOP/s"), 100);
    EXPECT_EQ(event.at("args").at("% of GFLOP/s"), 50);
    EXPECT_EQ(event.at("args").at("GB/s"), 0.5);
    EXPECT_EQ(event.at("args").at("% of GB/s"), 5);
  }
  const std::vector<std::string> expected = {
      "training step of 7 samples", "copy feeds",          "conv0: conv2d",     "conv0: all_reduce",
      "wait for processes",         "a.cpp:2: max_pool2d", "wait for processes"};
  EXPECT_EQ(names, expected);
}

}  // namespace
}  // namespace fluid::profile_test
