#include "executor/options/world.h"

#include <gtest/gtest.h>

#include "frontend/optimizers.h"
#include "tests/support/errors.h"
#include "tests/support/training.h"

namespace fluid::world_test {
namespace {

using Variables = World::EnvironmentVariables;

const Variables kTorchrun = {{"RANK", "3"},
                             {"WORLD_SIZE", "4"},
                             {"LOCAL_RANK", "1"},
                             {"MASTER_ADDR", "node0"},
                             {"MASTER_PORT", "29500"}};

const Variables kSlurm = {{"SLURM_PROCID", "5"},  {"SLURM_NTASKS", "8"},
                          {"SLURM_LOCALID", "1"}, {"SLURM_JOB_ID", "123456"},
                          {"SLURM_STEP_ID", "2"}, {"SLURM_LAUNCH_NODE_IPADDR", "10.0.0.7"}};

/// `base` with some variables set, or taken away where the text is "-".
Variables with(Variables base, const Variables& changes) {
  for (const auto& [name, value] : changes) {
    if (value == "-") {
      base.erase(name);
    } else {
      base[name] = value;
    }
  }
  return base;
}

void expect_rejection(const Variables& variables, const std::string& part) {
  expect_user_error([&] { World::from_environment(variables); }, part);
}

TEST(World, IsOneProcessWhenNothingSaysOtherwise) {
  World world =
      World::from_environment({{"PATH", "/bin"}, {"SLURM_NTASKS", "4"}, {"MASTER_PORT", "1"}});
  EXPECT_EQ(world.rank, 0);
  EXPECT_EQ(world.size, 1);
  EXPECT_EQ(World::from_environment({{"RANK", ""}, {"WORLD_SIZE", ""}}).size, 1);
}

TEST(World, ReadsTheEnvironment) {
  for (const auto& [name, value] : kTorchrun) setenv(name.c_str(), value.c_str(), 1);
  World world = World::from_env();
  for (const auto& [name, value] : kTorchrun) unsetenv(name.c_str());
  EXPECT_EQ(world.rank, 3);
  EXPECT_EQ(world.size, 4);
}

TEST(World, FollowsTorchrun) {
  World world = World::from_environment(with(kTorchrun, {{"TORCHELASTIC_RUN_ID", "nightly"},
                                                         {"TORCHELASTIC_RESTART_COUNT", "2"},
                                                         {"SLURM_PROCID", "0"}}));
  EXPECT_EQ(world.rank, 3);
  EXPECT_EQ(world.size, 4);
  EXPECT_EQ(world.local_rank, 1);
  EXPECT_EQ(world.master_host, "node0");
  EXPECT_EQ(world.port, 29500);
  EXPECT_EQ(world.job, "nightly");
  EXPECT_EQ(world.restart, 2);
}

TEST(World, LeavesThePortToTorchrunsAgent) {
  Variables agent = with(kTorchrun, {{"TORCHELASTIC_USE_AGENT_STORE", "True"}});
  EXPECT_EQ(World::from_environment(agent).port, 29501);
  EXPECT_EQ(World::from_environment(with(agent, {{"FLUID_PORT", "4000"}})).port, 4000);
  EXPECT_EQ(World::from_environment(with(agent, {{"TORCHELASTIC_USE_AGENT_STORE", "False"}})).port,
            29500);
}

TEST(World, NeedsNoMasterAlone) {
  World world = World::from_environment({{"RANK", "0"}, {"WORLD_SIZE", "1"}});
  EXPECT_EQ(world.size, 1);
}

/// A world of one costs nothing, whatever the options of the collectives.
TEST(World, OfOneRunsTheProgramOfNone) {
  Program net = stateful_program();
  minimize(net.ir().main().outputs[0].value, Adam{.lr = 0.01}, {.clip = {.global_norm = 0.5}});
  for (const int64_t slices : {1, 3}) {
    const ExecutorOptions none{
        .batch = 8, .micro_batches = slices, .precision = {.amp = AmpOptions{.dtype = f16}}};
    ExecutorOptions one = none;
    one.distributed.world = World::from_environment(
        with(kTorchrun, {{"RANK", "0"}, {"LOCAL_RANK", "0"}, {"WORLD_SIZE", "1"}}));
    one.distributed.buckets = {.first_bytes = 8, .bytes = 100, .dtype = f16};
    one.distributed.zero = 1;
    one.distributed.sync_bn = true;
    const Executor a(net, cpu(), none), b(net, cpu(), one);
    EXPECT_EQ(b.text(Mode::train, 8), a.text(Mode::train, 8));
    EXPECT_EQ(b.memory().total, a.memory().total);
  }
}

TEST(World, FollowsSlurm) {
  World world = World::from_environment(with(kSlurm, {{"SLURM_RESTART_COUNT", "1"}}));
  EXPECT_EQ(world.rank, 5);
  EXPECT_EQ(world.size, 8);
  EXPECT_EQ(world.local_rank, 1);
  EXPECT_EQ(world.master_host, "10.0.0.7");
  EXPECT_EQ(world.port, 23456);
  EXPECT_EQ(world.job, "123456.2");
  EXPECT_EQ(world.restart, 1);
  world = World::from_environment(with(kSlurm, {{"MASTER_ADDR", "node3"}, {"MASTER_PORT", "777"}}));
  EXPECT_EQ(world.master_host, "node3");
  EXPECT_EQ(world.port, 777);
  EXPECT_EQ(World::from_environment({{"SLURM_PROCID", "0"}}).size, 1);
}

TEST(World, RejectsWhatIsMalformed) {
  for (const char* bad : {"x", "1x", "-1", " 1", "99999999999", "1.5"}) {
    SCOPED_TRACE(bad);
    for (const char* name : {"RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_PORT", "FLUID_PORT",
                             "TORCHELASTIC_RESTART_COUNT"}) {
      SCOPED_TRACE(name);
      expect_rejection((with(kTorchrun, {{name, bad}})),
                       std::string(name) + " is '" + bad + "', which is not a whole number from");
    }
    for (const char* name : {"SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", "SLURM_JOB_ID",
                             "SLURM_RESTART_COUNT", "MASTER_PORT", "FLUID_PORT"}) {
      SCOPED_TRACE(name);
      expect_rejection((with(kSlurm, {{name, bad}})),
                       std::string(name) + " is '" + bad + "', which is not a whole number from");
    }
  }
  expect_rejection((with(kTorchrun, {{"MASTER_PORT", "65536"}})), "from 1 to 65535");
  expect_rejection((with(kTorchrun, {{"WORLD_SIZE", "0"}})), "from 1 to");
  expect_rejection((with(kTorchrun, {{"TORCHELASTIC_USE_AGENT_STORE", "maybe"}})),
                   "TORCHELASTIC_USE_AGENT_STORE is 'maybe', which is neither True nor False");
}

TEST(World, RejectsWhatContradicts) {
  expect_rejection((with(kTorchrun, {{"RANK", "-"}})),
                   "WORLD_SIZE is set, but RANK is not: set both or neither");
  expect_rejection((with(kTorchrun, {{"WORLD_SIZE", "-"}})),
                   "RANK is set, but WORLD_SIZE is not: set both or neither");
  expect_rejection((with(kTorchrun, {{"RANK", "4"}})),
                   "RANK is 4, but there are 4 processes by WORLD_SIZE: ranks count from 0");
  expect_rejection((with(kTorchrun, {{"LOCAL_RANK", "4"}})),
                   "LOCAL_RANK is 4, but there are 4 processes by WORLD_SIZE");
  expect_rejection((with(kSlurm, {{"SLURM_NTASKS", "-"}})),
                   "SLURM_PROCID is 5, but there are 1 processes by SLURM_NTASKS");
  expect_rejection((with(kTorchrun, {{"MASTER_ADDR", "-"}})),
                   "this is one of 4 processes, but MASTER_ADDR is not set: it names the host of "
                   "rank 0");
  expect_rejection((with(kTorchrun, {{"MASTER_PORT", "-"}})),
                   "MASTER_PORT is not set: it names the port on which rank 0 waits");
  expect_rejection((with(kSlurm, {{"SLURM_LAUNCH_NODE_IPADDR", "-"}})),
                   "SLURM_LAUNCH_NODE_IPADDR is not set: it names the host of rank 0 (MASTER_ADDR "
                   "goes before it)");
  expect_rejection(
      (with(kTorchrun, {{"MASTER_PORT", "65535"}, {"TORCHELASTIC_USE_AGENT_STORE", "True"}})),
      "torchrun listens at MASTER_PORT 65535 and there is no next port: set FLUID_PORT");
}

}  // namespace
}  // namespace fluid::world_test
