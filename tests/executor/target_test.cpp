#include <gtest/gtest.h>

#include <algorithm>

#include "executor/cpu/cpu_target.h"
#include "executor/executor.h"
#include "executor/host/parallel.h"
#include "ir/print.h"
#include "passes/memory_plan.h"
#include "passes/pass.h"
#include "tests/support/errors.h"
#include "tests/support/small_programs.h"

namespace fluid::target_test {
namespace {

TEST(TargetDescription, IsTheSameAfterItsJson) {
  const TargetDescription host = describe_host(3);
  const TargetDescription read = target_from_json(to_json(host), "t.json");
  EXPECT_EQ(to_json(read), to_json(host));
  EXPECT_EQ(read.threads, 3);
  EXPECT_GE(read.vector_bits, 128);
  EXPECT_TRUE(read.has_same_isa(host));
}

TEST(TargetDescription, RatesAreThoseOfItsThreads) {
  TargetDescription cpu{.threads = 2,
                        .cores = 4,
                        .l1_bytes = 32 << 10,
                        .l2_bytes = 1 << 20,
                        .l3_bytes = 8 << 20,
                        .gops = {{"f32_avx2", {50, 190}},
                                 {"f32_avx512", {100, 300}},
                                 {"bf16_avx512", {200, 700}},
                                 {"bf16_amx", {1500, 5000}}},
                        .gbs = {{"l1", {200, 800}}, {"l2", {100, 400}}, {"memory", {12, 30}}}};
  EXPECT_EQ(cpu.ops_per_second(f32), 200e9);
  EXPECT_EQ(cpu.ops_per_second(f64), 100e9);
  EXPECT_EQ(cpu.ops_per_second(bf16), 3000e9);
  EXPECT_EQ(cpu.ops_per_second(f16), 200e9) << "it has no instruction for f16";
  EXPECT_EQ(cpu.bytes_per_second(60e3), 400e9);
  EXPECT_EQ(cpu.bytes_per_second(2e6), 200e9);
  EXPECT_EQ(cpu.bytes_per_second(4e6), 24e9) << "its L3 cache has no rate";
  EXPECT_EQ(cpu.bytes_per_second(1e9), 24e9);
  cpu.threads = 4;
  EXPECT_EQ(cpu.ops_per_second(f32), 300e9);
  EXPECT_EQ(cpu.bytes_per_second(1e9), 30e9) << "one core takes almost half of the bandwidth";
}

TEST(TargetDescription, GivesTheCostModelItsRates) {
  const auto program = testing::conv_net({.size = 20});
  const auto& ops = program->main().ops;
  const auto conv = std::ranges::find(ops, "conv2d", [](const auto& op) { return op->name; });
  ASSERT_NE(conv, ops.end());
  TargetDescription slow, fast;
  fast.gops = {{"f32_avx2", {6000, 6000}}};
  for (const char* level : {"l1", "l2", "l3", "memory"}) fast.gbs[level] = {6000, 6000};
  EXPECT_LT(CpuTarget(fast).generated_seconds(**conv), CpuTarget(slow).generated_seconds(**conv));
}

TEST(TargetDescription, MessagesNameFileAndEntry) {
  const std::string good = to_json(TargetDescription());
  auto reading = [](const std::string& text) {
    return [text] { target_from_json(text, "t.json"); };
  };
  auto changed = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    return text.replace(text.find(from), from.size(), to);
  };
  expect_user_error(reading("{"), "t.json: not a JSON object that describes a target");
  expect_user_error(reading("[]"), "t.json: not a JSON object");
  expect_user_error(reading(changed("\"threads\"", "\"thread\"")),
                    "t.json: the target's entry 'threads' is missing");
  expect_user_error(reading(changed("\"threads\": 1", "\"threads\": 0")),
                    "t.json: the target's entry 'threads' cannot be 0");
  const std::string measured = "\"measured\": false";
  expect_user_error(reading(changed(measured, "\"measured\": \"no\"")),
                    "t.json: the target's entry 'measured' cannot be \"no\"");
  expect_user_error(reading(changed(measured, measured + ", \"thread\": 1")),
                    "t.json: a target has no entry 'thread' (did you mean 'threads'?)");
  expect_user_error(reading(changed("\"memory\": [", "\"memory\": [3,")),
                    "t.json: the target's entry 'gbs' cannot be {");
  expect_user_error(reading(changed("\"memory\"", "\"l4\"")),
                    "t.json: the target's entry 'gbs' is incomplete: it has no rate of 'memory'");
  expect_user_error(reading(changed("f32_avx2", "f16_avx2")),
                    "t.json: the target's entry 'gops' is incomplete: it has no rate in f32");
}

/// The program with its plan, as a step of the seed network compiles to on `target`.
std::string planned(const CpuTarget& target) {
  const auto program = testing::conv_net({.size = 20});
  const Options options{.mode = Mode::train, .batch = 32};
  run_passes(*program, pipeline(options), options, target);
  return ir::print(*program);
}

TEST(TargetDescription, PlansAsTheMachineItDescribesToTheByte) {
  const TargetDescription host = describe_host(2);
  EXPECT_EQ(planned(CpuTarget(target_from_json(to_json(host), "t.json"))),
            planned(CpuTarget(host)));
}

TEST(TargetDescription, OfAnotherInstructionSetHasNoLibraries) {
  TargetDescription other = describe_host(2);
  other.vector_bits = other.vector_bits == 128 ? 256 : 128;
  EXPECT_FALSE(CpuTarget(other).matches_host_isa());
  EXPECT_EQ(planned(CpuTarget(other)).find("kernel = \""), std::string::npos);
}

TEST(TargetDescription, FiguresAreThoseOfTheArenaWhateverThisThreadUses) {
  const Program net(testing::conv_net());
  const Options options{.mode = Mode::train, .batch = 128};
  for (const int threads : {1, 2}) {
    for (const int others : {1, 2}) {
      const ScopedLibraryThreads guard(others);
      const auto program = net.ir().clone();
      run_passes(*program, pipeline(options), options, CpuTarget(describe_host(threads)));
      const Executor exe(net, cpu(), {.batch = 128, .threads = threads});
      EXPECT_EQ(memory_plan(*program, options).total(1), exe.memory().total)
          << threads << " threads, others " << others;
    }
  }
}

TEST(TargetDescription, PlansTheSameWhateverThisThreadUses) {
  for (const int threads : {1, 2}) {
    const CpuTarget target(describe_host(threads));
    const auto planned_among = [&](int others) {
      const ScopedLibraryThreads guard(others);
      return planned(target);
    };
    EXPECT_EQ(planned_among(1), planned_among(2)) << threads << " threads";
  }
}

TEST(ScopedLibraryThreads, AreGivenBack) {
  const int before = thread_count(0);
  {
    const ScopedLibraryThreads guard(before + 3);
    EXPECT_EQ(thread_count(0), before + 3);
  }
  EXPECT_EQ(thread_count(0), before);
}

TEST(Parallel, CoversTheRangeOnce) {
  for (const int threads : {1, 2, 5}) {
    for (const int64_t n : {0, 1, 3, 1000}) {
      std::vector<int> hits(static_cast<size_t>(n), 0);
      parallel_for(
          n, threads,
          [](void* context, int64_t begin, int64_t end) {
            auto& counts = *static_cast<std::vector<int>*>(context);
            for (int64_t i = begin; i < end; ++i) ++counts[static_cast<size_t>(i)];
          },
          &hits);
      EXPECT_EQ(hits, std::vector<int>(static_cast<size_t>(n), 1));
    }
  }
}

}  // namespace
}  // namespace fluid::target_test
