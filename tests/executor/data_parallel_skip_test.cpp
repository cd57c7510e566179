// A step that one rank's samples make overflow leaves the variables of every rank as they were.

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "frontend/optimizers.h"
#include "ops/source_kind.h"
#include "passes/loss_scale.h"
#include "tests/support/processes.h"
#include "tests/support/training.h"

namespace fluid::data_parallel_skip_test {
namespace {

constexpr int64_t kSamples = 8;  // samples per rank

Batch shard_of(const World& world, bool overflows) {
  Batch batch = stateful_batch(kSamples, overflows);
  batch.first = world.rank * kSamples;
  batch.global_batch_size = world.size * kSamples;
  return batch;
}

/// Runs a good step, an overflowing step and another good step on two ranks. Expects that the
/// second step is skipped.
void expect_unchanged(const ExecutorOptions& options) {
  const std::set<std::string_view> goes_on = {kLossScale, kGoodSteps, kSkippedSteps, kRandomState};
  Program net = stateful_program();
  minimize(net.ir().main().outputs[0].value, Adam{.lr = 0.01},
           {.clip = {.global_norm = 0.5}, .schedule = Cosine{.steps = 30}, .ema = {.decay = 0.9}});
  const auto body = [&](const World& world) {
    ExecutorOptions mine = options;
    mine.distributed.world = world;
    Executor exe(net, cpu(), mine);
    std::string said;
    exe.run(shard_of(world, false));
    for (const std::string& name : changed_by_step(exe, shard_of(world, world.rank == 1))) {
      if (!goes_on.contains(name)) said += name + " has changed; ";
    }
    if (exe.parameter(kSkippedSteps).item() != 1) said += "not skipped; ";
    const std::set<std::string> changed = changed_by_step(exe, shard_of(world, false));
    for (const char* name : {"fc0.w", "fc1.w", "bn0.gamma", "bn0.running_mean", "bn0.running_var",
                             "update", "fc0.w.ema"}) {
      if (!changed.contains(name)) said += std::string(name) + " stands still; ";
    }
    const auto is_moment = [](const std::string& name) { return name.ends_with(".v"); };
    if (std::ranges::none_of(changed, is_moment)) said += "moments stand still; ";
    return said;
  };
  for (const std::string& said : testing::Ranks(2, body).results()) EXPECT_EQ(said, "");
}

TEST(DataParallelSkip, ChangesNothingButTheScaleAndTheRandomNumbersOnAnyRank) {
  ExecutorOptions options{.batch = kSamples,
                          .threads = 1,
                          .micro_batches = 3,
                          .precision = {.amp = AmpOptions{.dtype = f16}}};
  expect_unchanged(options);
  options.precision.amp->level = AmpLevel::o2;
  options.distributed.zero = 1;
  expect_unchanged(options);
}

}  // namespace
}  // namespace fluid::data_parallel_skip_test
