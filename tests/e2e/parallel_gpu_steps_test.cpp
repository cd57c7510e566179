// Data-parallel steps run asynchronously on GPUs. Their results are those of synchronous steps, and
// a failed rank is named while steps are in flight. Runs on hosts that stand in for GPUs.

#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <optional>
#include <thread>

#include "frontend/optimizers.h"
#include "tests/support/errors.h"
#include "tests/support/gpu_ranks_test.h"
#include "tests/support/parallel_training.h"
#include "tests/support/processes.h"

namespace fluid::parallel_gpu_steps_test {
namespace {

using fluid::testing::parallel_program;
using fluid::testing::Ranks;
using fluid::testing::shard_of_batch;

class GpuRankSteps : public testing::GpuRanksTest,
                     public ::testing::WithParamInterface<const char*> {
 protected:
  void SetUp() override {
    GpuRanksTest::SetUp();
    setenv("FLUID_STAND_IN_PACE", GetParam(), 1);
  }
  void TearDown() override {
    GpuRanksTest::TearDown();
    unsetenv("FLUID_STAND_IN_PACE");
  }
};

ExecutorOptions of_rank(const World& world, ExecutorOptions options = {}) {
  options.batch = testing::kWhole / world.size;
  options.threads = 1;
  options.distributed.world = world;
  return options;
}

/// Trains with evaluations and a snapshot. Returns the results of the steps. `late`: reads the
/// results of a step after the next step has started.
std::string told(const World& world, ExecutorOptions options, bool late) {
  Executor exe(parallel_program({.clip = {.global_norm = 0.5}}), cuda(world.rank),
               of_rank(world, std::move(options)));
  std::string all;
  std::optional<OutputViews> before;
  const auto read = [&] {
    if (!before) return;
    all += std::to_string((*before)["loss"].item()) + " ";
    if (const auto scaling = before->loss_scaling()) all += std::to_string(scaling->skipped) + " ";
  };
  for (int step = 0; step < 9; ++step) {
    Batch batch = shard_of_batch(world);
    batch.columns[0].second.as<float>()[0] += static_cast<float>(step);
    const OutputViews outputs = step % 4 == 2 ? exe.eval(batch) : exe.run(batch);
    if (!late) outputs.wait();
    if (step % 4 != 3) read();  // outputs of eval cover only this rank's samples
    before = outputs;
    if (step == 5) {
      for (const auto& variable : exe.snapshot().variables) {
        for (int64_t i = 0; i < variable.value.numel(); ++i) {
          all += std::to_string(variable.value.at(i)) + " ";
        }
      }
    }
  }
  read();
  return all;
}

TEST_P(GpuRankSteps, GiveWhatStepsGiveThatAreWaitedFor) {
  const AmpOptions amp{.dtype = f16, .loss_scale = {.initial = 16777216}};
  const Buckets small{.first_bytes = 64, .bytes = 128};
  for (const ExecutorOptions& options : {ExecutorOptions{},
                                         {.distributed = {.buckets = small, .zero = 1}},
                                         {.precision = {.amp = amp}},
                                         {.micro_batches = 2}}) {
    const auto results = [&](bool late) {
      return Ranks(2, [&](const World& world) { return told(world, options, late); }).results();
    };
    const std::vector<std::string> expected = results(false);
    EXPECT_GT(expected[0].size(), 100U) << expected[0];
    EXPECT_EQ(results(true), expected);
  }
}

std::vector<float> parameters_of(Executor& exe) {
  std::vector<float> all;
  for (const std::string& name : exe.parameters()) {
    const Tensor value = exe.parameter(name);
    all.insert(all.end(), value.as<float>().begin(), value.as<float>().end());
  }
  return all;
}

/// One rank has an invalid label: no rank applies the step, nor the next step if some ranks have
/// started it.
TEST_P(GpuRankSteps, NoneIsAppliedAfterDataThatOneRankRejects) {
  for (const int begin_next : {0b00, 0b11, 0b01, 0b10}) {
    SCOPED_TRACE(begin_next);
    Ranks ranks(2, [begin_next](const World& world) {
      Executor exe(parallel_program(), cuda(world.rank), of_rank(world));
      Batch batch = shard_of_batch(world);
      exe.run(batch).wait();
      const std::vector<float> before = parameters_of(exe);
      const auto label = batch.columns[1].second.as<int64_t>();
      const int64_t good = std::exchange(label[2], world.rank == 1 ? 3 : label[2]);
      const OutputViews refused = exe.run(batch);
      label[2] = good;
      if ((begin_next >> world.rank & 1) != 0) exe.run(batch);
      const auto begun = std::chrono::steady_clock::now();
      const std::string said = world.rank == 1 ? error_of<UserError>([&] { refused.wait(); })
                                               : error_of<DeviceError>([&] { refused.wait(); });
      const bool changed = parameters_of(exe) != before;
      const bool late = std::chrono::steady_clock::now() - begun > std::chrono::seconds(20);
      return said + "\n" + (changed ? "it changed parameters\n" : "") + (late ? "late\n" : "") +
             error_of<DeviceError>([&] { exe.run(batch); });
    });
    const std::string left = "\nthis process left a step that all ranks take: start all again";
    EXPECT_EQ(
        ranks.result(0),
        "another rank rejected its data and reports the error: no rank applied the step" + left);
    const std::string own = ranks.result(1);
    EXPECT_NE(own.find("in sample 2 of the batch; the step was not applied"), std::string::npos)
        << own;
    EXPECT_EQ(own.find("nor was the step after it") != std::string::npos, begin_next > 1);
    EXPECT_TRUE(own.ends_with(left)) << own;
  }
}

/// Also tests a rejected micro-batch without collectives: the other ranks learn of it in the last
/// micro-batch.
TEST_P(GpuRankSteps, NoneIsAppliedWhereAMicroBatchIsRejected) {
  Ranks ranks(2, [](const World& world) {
    Executor exe(parallel_program(), cuda(world.rank), of_rank(world, {.micro_batches = 3}));
    Batch batch = shard_of_batch(world);
    exe.run(batch);
    const std::vector<float> before = parameters_of(exe);
    const auto label = batch.columns[1].second.as<int64_t>();
    const int64_t good = std::exchange(label[1], world.rank == 1 ? 3 : label[1]);
    const std::string said = world.rank == 1 ? error_of<UserError>([&] { exe.run(batch); })
                                             : error_of<DeviceError>([&] { exe.run(batch); });
    label[1] = good;
    if (parameters_of(exe) != before) return said + "\nit changed parameters";
    return said + "\n" + error_of<DeviceError>([&] { exe.run(batch); });
  });
  const std::string left = "\nthis process left a step that all ranks take: start all again";
  EXPECT_EQ(
      ranks.result(0),
      "another rank rejected its data and reports the error: no rank applied the step" + left);
  const std::string own = ranks.result(1);
  EXPECT_TRUE(own.ends_with(", in sample 1 of the batch; the step was not applied" + left)) << own;
}

/// An evaluation concerns one rank only. The next training step starts after the rank knows that
/// the data is valid, so the other ranks do not wait in vain.
TEST_P(GpuRankSteps, AnEvaluationOnBadDataLeavesNobody) {
  const std::vector<std::string> results =
      Ranks(2, [](const World& world) {
        Executor exe(parallel_program(), cuda(world.rank), of_rank(world));
        const Batch batch = shard_of_batch(world);
        exe.prepare({.eval = {batch.size}});
        exe.run(batch);
        Batch bad = shard_of_batch(world);
        bad.columns[1].second.as<int64_t>()[2] = 3;
        std::string said;
        if (world.rank == 1) {
          exe.eval(bad);
          said = error_of<UserError>([&] { exe.run(batch); });
        }
        exe.run(batch);
        exe.run(batch).wait();
        return said;
      }).results();
  EXPECT_EQ(results[0], "");
  EXPECT_NE(results[1].find("in sample 2 of the batch"), std::string::npos) << results[1];
}

class GpuRankFailures : public GpuRankSteps {};

constexpr std::chrono::milliseconds kTimeout{600};

/// How a rank may fail, and what the others say of it.
struct Failure {
  const char* said;
  void (*fail)();
};

const Failure kFailures[] = {
    {": rank 1 has ended: it was killed, or failed by itself", [] { raise(SIGKILL); }},
    {": rank 1 has been silent for ", [] { raise(SIGSTOP); }},
    {": rank 1 is late: it has entered ", [] { std::this_thread::sleep_for(4 * kTimeout); }}};

/// The message names the step that did not end, not the step started after it.
TEST_P(GpuRankFailures, AreNamedWhileStepsAreUnderWay) {
  for (const Failure& failure : kFailures) {
    const auto said = [&](bool ahead) {
      Ranks ranks(2, [&](const World& world) {
        Executor exe(parallel_program(), cuda(world.rank),
                     of_rank(world, {.distributed = {.comm_timeout = kTimeout}}));
        const Batch batch = shard_of_batch(world);
        exe.run(batch).wait();
        if (world.rank == 1) {
          failure.fail();
          return std::string();
        }
        std::optional<OutputViews> last;
        const auto begin = std::chrono::steady_clock::now();
        const std::string what = error_of<DeviceError>([&] {
          for (int step = 0; step < 3; ++step) {
            last = exe.run(batch);
            if (!ahead) last->wait();
          }
        });
        if (std::chrono::steady_clock::now() - begin > 3 * kTimeout) return "late: " + what;
        const std::string again = error_of<DeviceError>([&] { last->wait(); });
        return what == again ? what : "first " + what + ", then " + again;
      });
      return ranks.result(0);
    };
    const std::string one_by_one = said(false), ahead = said(true);
    EXPECT_EQ(one_by_one.find("rank 0 cannot complete the GPUs' step "), 0U) << one_by_one;
    const size_t end = one_by_one.find(": ");
    EXPECT_EQ(ahead.substr(0, end), one_by_one.substr(0, end)) << ahead;
    for (const std::string& text : {one_by_one, ahead}) EXPECT_EQ(text.find(failure.said), end);
  }
}

INSTANTIATE_TEST_SUITE_P(Pace, GpuRankSteps, ::testing::Values("random"),
                         [](const auto& info) { return std::string(info.param); });
INSTANTIATE_TEST_SUITE_P(Long, GpuRankSteps, ::testing::Values("early", "late"),
                         [](const auto& info) { return std::string(info.param); });
INSTANTIATE_TEST_SUITE_P(Pace, GpuRankFailures, ::testing::Values("random"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace fluid::parallel_gpu_steps_test
