// Tests training in several processes: equal results, stored state, and messages after a rank is
// lost.

#include <gtest/gtest.h>

#include <csignal>
#include <thread>

#include "executor/comm/process_group.h"
#include "executor/executor.h"
#include "frontend/layers.h"
#include "frontend/optimizers.h"
#include "frontend/readers/reader.h"
#include "ops/operators.h"
#include "passes/loss_scale.h"
#include "tests/support/errors.h"
#include "tests/support/parallel_training.h"
#include "tests/support/processes.h"

namespace fluid::data_parallel_test {
namespace {

using testing::expect_near;
using testing::kWhole;
using testing::normalising_program;
using testing::parallel_program;
using testing::Ranks;
using testing::Seen;
using testing::seen_in;
using testing::shard_of_batch;
using testing::text_of;
using testing::trained;
using testing::trained_by;

/// The ranks' gradients of a layer before batch norm nearly cancel. Here, the scaled gradients of a
/// weight of fc0 are 90874 and -84929, while the largest gradient of the whole batch is 11168. Each
/// rank rounds its gradients to f16, whose maximum is 65504, before the all-reduce.
TEST(DataParallel, AShareOfAGradientMayOverflowWhereTheSumDoesNot) {
  const Program net = normalising_program(0);
  const auto scaling = [&](int size, const AmpOptions& amp) {
    const ExecutorOptions options{.precision = {.amp = amp}, .distributed = {.sync_bn = true}};
    const Seen seen = size == 1 ? trained(net, options, 1) : trained_by(size, net, options, 1);
    return std::vector<double>(seen.parameters.end() - 2, seen.parameters.end());
  };
  const AmpOptions half{.dtype = f16};
  EXPECT_EQ(scaling(1, half), (std::vector<double>{65536, 0}));
  EXPECT_EQ(scaling(2, half), (std::vector<double>{32768, 1}));
  AmpOptions other = half;
  other.in_f32 = {"fc0"};
  EXPECT_EQ(scaling(2, other), (std::vector<double>{65536, 0}));
}

TEST(DataParallel, SynchronisedStatisticsAreOfWholeSteps) {
  const Program net = normalising_program(0);
  World world;
  world.size = 2;
  const ExecutorOptions options{.micro_batches = 2,
                                .distributed = {.world = world, .sync_bn = true}};
  expect_user_error([&] { Executor(net, cpu(), options); },
                    "sync_bn does not support micro-batches");
  const ExecutorOptions watched{.distributed = {.world = world, .sync_bn = true},
                                .debug = {.check_finite = true}};
  expect_user_error([&] { Executor(net, cpu(), watched); },
                    "check_finite checks each rank alone, which sync_bn does not support");
}

TEST(DataParallel, StateIsSharedOrNot) {
  expect_user_error([] { Executor(parallel_program(), cpu(), {.distributed = {.zero = 2}}); },
                    "zero = 2: 1 shards the optimizer's state, 0 nothing");
}

TEST(DataParallel, ASharedStateFollowsInHalf) {
  const Program net = parallel_program();
  ExecutorOptions options{.precision = {.amp = AmpOptions{.level = AmpLevel::o2}}};
  const Seen one = trained(net, options, 10);
  options.distributed.zero = 1;
  options.distributed.buckets.dtype = bf16;
  expect_near(trained_by(2, net, options, 10).figures, one.figures, 0.02);
}

TEST(DataParallel, BucketsMakeNoDifference) {
  const Program net = parallel_program();
  const ExecutorOptions options{.precision = {.dtype = f64}};
  ExecutorOptions small = options;
  small.distributed.buckets = {.first_bytes = 8, .bytes = 100};
  EXPECT_EQ(trained_by(2, net, small, 5), trained_by(2, net, options, 5));
}

/// A doubt in a single bit grows over so many steps.
TEST(DataParallel, ParametersStayTheSameBitsOnAllRanks) {
  const Program net = parallel_program({.clip = {.global_norm = 0.5}});
  const Seen plain = trained_by(3, net, {}, 200);
  EXPECT_EQ(plain.figures.size(), 600U);
  ExecutorOptions half{.precision = {.amp = AmpOptions{.dtype = f16}}};
  half.distributed.buckets = {.first_bytes = 8, .bytes = 100, .dtype = f16};
  EXPECT_NE(trained_by(2, net, half, 200).parameters, plain.parameters);
}

/// All of a snapshot's floats.
std::vector<double> floats_of(const Snapshot& snapshot) {
  std::vector<double> all;
  for (const SnapshotVariable& kept : snapshot.variables) {
    if (!is_float(kept.value.dtype())) continue;
    for (int64_t i = 0; i < kept.value.numel(); ++i) all.push_back(kept.value.at(i));
  }
  return all;
}

TEST(DataParallel, ASharedStateIsWholeInASnapshot) {
  const Program net = parallel_program();
  const auto executor = [&](const World& world) {
    return Executor(net, cpu(),
                    {.batch = kWhole / world.size,
                     .threads = 1,
                     .precision = {.dtype = f64},
                     .distributed = {.world = world, .zero = 1}});
  };
  Executor alone = executor({});
  alone.run(shard_of_batch({}));
  Snapshot before = alone.snapshot();
  for (SnapshotVariable& kept : before.variables) kept.value = kept.value.copy();
  alone.run(shard_of_batch({}));
  const std::vector<double> after = floats_of(alone.snapshot());
  const auto state = static_cast<double>(alone.memory().state);
  const std::vector<std::string> results = Ranks(2, [&](const World& world) {
                                             Executor exe = executor(world);
                                             exe.restore(before);
                                             exe.run(shard_of_batch(world));
                                             const auto mine = floats_of(exe.snapshot());
                                             const auto bytes = exe.memory().state;
                                             return text_of({{static_cast<double>(bytes)}, mine});
                                           }).results();
  for (const std::string& result : results) EXPECT_LT(seen_in(result).figures.at(0), state);
  expect_near(seen_in(results[0]).parameters, after, 1e-9);
  EXPECT_LT(seen_in(results[1]).parameters.size(), after.size());
}

TEST(DataParallel, ASharedStateIsKnownWhateverIsPreparedFirst) {
  const std::vector<std::string> results =
      Ranks(2, [](const World& world) {
        Executor exe(parallel_program(), cpu(),
                     {.threads = 1, .distributed = {.world = world, .zero = 1}});
        expect_user_error([&] { exe.broadcast(); },
                          "prepare() a training step before broadcast(): its state is shared");
        exe.run(shard_of_batch(world));
        return std::to_string(exe.snapshot().variables.size());
      }).results();
  EXPECT_GT(std::stoi(results[0]), std::stoi(results[1])) << results[0] << " " << results[1];
}

/// Where no state is shared, each rank has all that a snapshot holds.
TEST(DataParallel, ASnapshotNeedsNoOtherRank) {
  Ranks ranks(2, [](const World& world) {
    sigset_t told;
    sigemptyset(&told);
    sigaddset(&told, SIGUSR1);
    sigprocmask(SIG_BLOCK, &told, nullptr);
    Executor exe(parallel_program(), cpu(), {.threads = 1, .distributed = {.world = world}});
    exe.run(shard_of_batch(world));
    testing::say("ran");
    int signal = 0;
    sigwait(&told, &signal);
    return exe.snapshot().variables.empty() ? "nothing" : "all variables";
  });
  for (const int rank : {0, 1}) ranks.line(rank);
  ranks.signal(0, SIGKILL);
  ranks.result(0);
  ranks.signal(1, SIGUSR1);
  EXPECT_TRUE(ranks.result(1).ends_with("all variables"));
}

TEST(DataParallel, AllRanksLearnThatRankZeroFailed) {
  const std::vector<std::string> results =
      Ranks(2, [](const World& world) {
        Executor exe(parallel_program(), cpu(),
                     {.batch = 6, .threads = 1, .distributed = {.world = world}});
        exe.process_group().run_on_rank_0([] { throw UserError("the disk is full"); });
        return std::string();
      }).results();
  EXPECT_EQ(results[0], "UserError: the disk is full");
  EXPECT_EQ(results[1], "UserError: rank 0: the disk is full");
}

TEST(DataParallel, AllRanksLetThePrecisionBeChosenOrNone) {
  const std::vector<std::string> results = Ranks(2, [](const World& world) {
                                             Executor(parallel_program(), cpu(),
                                                      {.batch = 6,
                                                       .threads = 1,
                                                       .precision = {.choose_amp = world.rank == 0},
                                                       .distributed = {.world = world}});
                                             return std::string();
                                           }).results();
  for (const std::string& result : results) {
    EXPECT_EQ(
        result,
        "UserError: rank 1 has another choice of precision than rank 0: start all ranks alike");
  }
}

/// The loss scale and the skipped steps after each of six steps, in the second and fifth of which
/// the samples of the last rank alone overflow.
std::vector<double> scales_with(const World& world) {
  const Program net = parallel_program();
  Executor exe(net, cpu(),
               {.batch = kWhole / world.size,
                .threads = 1,
                .precision = {.amp = AmpOptions{.dtype = f16, .loss_scale = {.interval = 2}}},
                .distributed = {.world = world}});
  std::vector<double> seen;
  for (int step = 0; step < 6; ++step) {
    Batch batch = shard_of_batch(world);
    if (world.rank == world.size - 1 && step % 3 == 1) {
      batch.columns[0].second.as<float>()[0] = 1e6F;
    }
    exe.run(batch);
    seen.push_back(exe.loss_scaling()->scale);
    seen.push_back(static_cast<double>(exe.loss_scaling()->skipped));
  }
  return seen;
}

TEST(DataParallel, AllRanksSkipTheSameSteps) {
  const std::vector<double> one = scales_with({});
  EXPECT_EQ(one, (std::vector<double>{65536, 0, 32768, 1, 32768, 1, 65536, 1, 32768, 2, 32768, 2}));
  const std::vector<std::string> results = Ranks(3, [](const World& world) {
                                             return text_of({scales_with(world), {}});
                                           }).results();
  for (const std::string& result : results) EXPECT_EQ(seen_in(result).figures, one);
}

TEST(DataParallel, ABatchSaysWhichPartItIs) {
  const std::vector<std::string> said =
      Ranks(2, [](const World& world) {
        Batch batch = shard_of_batch(world);
        batch.global_batch_size = 0;
        const Program net = parallel_program();
        Executor(net, cpu(), {.batch = 6, .distributed = {.world = world}}).run(batch);
        return std::string();
      }).results();
  EXPECT_EQ(said[0],
            "UserError: run() got a batch of 6 samples without the size of the global batch: set "
            "Batch::first and Batch::global_batch_size, as a Reader with rank and world does");
}

/// Returns the error of rank 0 if rank 1 calls `late` before the fourth of six steps; "" if there
/// is none.
std::string message_after(const std::function<void()>& late) {
  const Program net = parallel_program();
  Ranks ranks(2, [&](const World& world) {
    Reader reader(testing::parallel_samples(), {.batch = 6, .rank = world.rank, .world = 2});
    Executor exe(
        net, cpu(),
        {.threads = 1, .distributed = {.world = world, .comm_timeout = std::chrono::seconds(2)}});
    exe.prepare({.train = reader.batch_sizes()});
    for (int step = 0; step < 6; ++step) {
      if (step == 3 && world.rank == 1) late();
      const Batch* batch = reader.next();
      exe.run(batch == nullptr ? *reader.next() : *batch);
    }
    return std::string();
  });
  return ranks.result(0);
}

TEST(DataParallel, NamesTheRankThatIsGone) {
  for (const int number : {SIGKILL, SIGSTOP}) {
    const std::string said = message_after([number] { raise(number); });
    EXPECT_EQ(said.rfind("DeviceError: rank 0 cannot complete all-reduce", 0), 0U) << said;
    EXPECT_NE(said.find("rank 1"), std::string::npos) << said;
  }
}

TEST(DataParallel, WaitsForARankThatIsLateUpToTheTimeout) {
  const auto sleep = [](int ms) {
    return [ms] { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); };
  };
  EXPECT_EQ(message_after(sleep(500)), "");
  const std::string said = message_after(sleep(20'000));
  EXPECT_EQ(said.rfind("DeviceError: rank 0 cannot complete all-reduce", 0), 0U) << said;
  EXPECT_NE(said.find("rank 1"), std::string::npos) << said;
}

}  // namespace
}  // namespace fluid::data_parallel_test
