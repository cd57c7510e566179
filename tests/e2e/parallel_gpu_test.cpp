// `fluidrun train` in several processes, each on a GPU that a library of ours stands in for.

#include <set>
#include <sstream>
#include <thread>

#include "executor/comm/process_group.h"
#include "frontend/layers.h"
#include "ir/atomic_file.h"
#include "ops/functions.h"
#include "tests/support/errors.h"
#include "tests/support/gpu_programs_test.h"
#include "tests/support/gpu_ranks_test.h"
#include "tests/support/parallel_training.h"
#include "tests/support/processes.h"

namespace fluid::parallel_gpu_test {
namespace {

using testing::expect_near;
using testing::parallel_program;
using testing::Seen;
using testing::trained_by;

class GpuParallel : public GpuProgramsTest {
 protected:
  void SetUp() override {
    GpuProgramsTest::SetUp();
    before_ += "export FLUID_STAND_IN_DEVICES=2 TMPDIR=" + dir_.path() + "; ";
  }

  /// Runs `train` as two ranks, of which the second does `second` before.
  Result launch_with(const std::string& second, const std::string& flags,
                     const std::string& more_of_launch = "") const {
    std::ofstream(dir_.file("rank"))
        << "if [ $RANK = 1 ]; then\n"
        << second << "\nfi\nexec " << kFluidrun << " " << train(flags) << "\n";
    return run("launch --nproc 2 --log-dir logs " + more_of_launch + " -- sh rank");
  }
  static void expect_has(const std::string& text, const std::string& part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  }
};

TEST_F(GpuParallel, TrainsAsOneProcessOnTheCpu) {
  const std::string flags = "--epochs 2 --dtype f64 --val synthetic-linear?limit=37 ";
  succeed(train(flags + "--place cpu --batch 12 --log-json one.json"));
  int number = 0;
  for (const std::string more :
       {"--place auto", "--place cuda --zero 1", "--micro-batches 3", "--micro-batches 2 --zero 1",
        "--first-bucket 8 --bucket 8", "--profile --profile-warmup 0"}) {
    SCOPED_TRACE(more);
    const std::string log = std::to_string(number++) + ".json";
    succeed(launch(2, flags + "--batch 6 --log-json " + log + " " + more));
    expect_losses(log, "one.json");
  }
  for (const std::string pace : {"early", "late"}) {
    before_ += "export FLUID_STAND_IN_PACE=" + pace + "; ";
    succeed(launch(2, flags + "--batch 6 --log-json " + pace + ".json"));
    expect_losses(pace + ".json", "one.json");
  }
}

/// The last batch is one sample, and the second rank has none of it.
TEST_F(GpuParallel, ARankWithoutSamplesJoinsTheOthers) {
  const std::string flags = "--epochs 2 --dtype f64 --log-json ";
  succeed(train(flags + "one.json --place cpu --batch 34"));
  for (const std::string more : {"", " --zero 1 --micro-batches 2"}) {
    succeed(launch(2, flags + "two.json --batch 17" + more));
    expect_losses("two.json", "one.json");
    std::filesystem::remove(dir_.file("two.json"));
  }
}

/// Two heads, one of which may reject labels. Batches of 102 and of 101 samples compute the heads
/// in different orders, but the ranks all-reduce the gradients in the same order.
TEST_F(GpuParallel, RanksWithOtherOrdersExchangeInOne) {
  write_plain(dir_.file("heads.fir"), R"(program @heads {
  %x = data "x" : f32[?, 16]
  %y = data "y" : i64[?]
  %wa1 = param "wa1" {init = "xavier_uniform"} : f32[16, 128]
  %a1 = matmul(%x, %wa1) : f32[?, 128]
  %a2 = relu(%a1) : f32[?, 128]
  %wa = param "wa" {init = "xavier_uniform"} : f32[128, 64]
  %a = matmul(%a2, %wa) : f32[?, 64]
  %ea = softmax_cross_entropy(%a, %y) : f32[?]
  %loa = mean(%ea) : f32[]
  %wb1 = param "wb1" {init = "xavier_uniform"} : f32[16, 32]
  %b1 = matmul(%x, %wb1) : f32[?, 32]
  %b2 = relu(%b1) : f32[?, 32]
  %wb = param "wb" {init = "xavier_uniform"} : f32[32, 16]
  %b = matmul(%b2, %wb) : f32[?, 16]
  %eb = mse_loss(%b, %x) : f32[?, 16]
  %lob = mean(%eb) : f32[]
  %loss = add(%loa, %lob) : f32[]
  train(%loss) {optimizer = "sgd", lr = 0.1}
  output "loss" = %loss
}
)");
  std::ofstream rows(dir_.file("rows.csv"));
  for (int c = 0; c < 16; ++c) rows << "c" << c << ",";
  rows << "label\n";
  for (int row = 0; row < 203; ++row) {
    for (int c = 0; c < 16; ++c) rows << 0.01 * (row * 7 % 97 + c) << ",";
    rows << row % 2 << "\n";
  }
  rows.close();
  const std::string flags =
      "train heads.fir --data 'csv:rows.csv?label=label&classes=1' --first-bucket 4KiB --bucket "
      "16KiB --log-json ";
  succeed(flags + "one.json --place cpu --batch 204");
  succeed("launch --nproc 2 --log-dir logs -- " + kFluidrun + " " + flags +
          "two.json --batch 102 --place cuda");
  expect_losses("two.json", "one.json");
}

/// `launch` shows the data error of the rank that rejected its data, whichever rank exits first.
TEST_F(GpuParallel, TheRankWhoseDataIsRejectedIsTheOneNamed) {
  std::ofstream rows(dir_.file("rows.csv"));
  rows << "c0,label\n";
  for (int row = 0; row < 24; ++row) rows << row << "," << (row == 17 ? 5 : row % 2) << "\n";
  rows.close();
  write_plain(dir_.file("label.fir"), R"(program @label {
  %x = data "x" : f32[?, 1]
  %y = data "y" : i64[?]
  %w = param "w" {init = "xavier_uniform"} : f32[1, 2]
  %a = matmul(%x, %w) : f32[?, 2]
  %e = softmax_cross_entropy(%a, %y) : f32[?]
  %loss = mean(%e) : f32[]
  train(%loss) {optimizer = "sgd", lr = 0.1}
  output "loss" = %loss
}
)");
  for (const std::string seed : {"1", "2", "3", "4"}) {
    const Result result =
        run("launch --nproc 2 --log-dir logs -- " + kFluidrun +
            " train label.fir --data 'csv:rows.csv?label=label&classes=1' --batch 4 --place cuda "
            "--epochs 1 --seed " +
            seed);
    EXPECT_EQ(result.code, 1) << result.output;
    expect_has(result.output, "value 5 of feed 'y' is out of range [0, 2)");
  }
}

TEST_F(GpuParallel, TheRankWhoseSamplesOverflowSaysSo) {
  std::ofstream csv(dir_.file("rows.csv"));
  csv << "a,b,y\n";
  for (int row = 0; row < 12; ++row) csv << (row == 9 ? "3e38,1,1\n" : "1,2,3\n");
  csv.close();
  const std::string said = succeed(
      "launch --nproc 2 --log-dir logs -- train line.fir --data "
      "'csv:rows.csv?label=y&shuffle=0' --batch 2 --check-finite --amp o1 --amp-dtype f16");
  expect_has(said, "\nstep 3 skipped: rank 0: ");
}

/// As many ranks as GPUs; and through the same functions with one.
TEST_F(GpuParallel, AutoStartsARankAGpu) {
  const std::string flags = "--dtype f64 --log-json ";
  succeed(train(flags + "one.json --place cpu --batch 12"));
  const std::string said =
      succeed("launch --nproc auto -- " + train(flags + "auto.json --batch 6"));
  expect_has(said, "fluidrun: --nproc auto: 2 ranks, one per GPU\n");
  expect_has(said, "steps of 6 on each of 2 ranks");
  expect_losses("auto.json", "one.json");
  before_ += "export FLUID_STAND_IN_DEVICES=1; ";
  expect_has(succeed("launch --nproc auto -- " + train(flags + "single.json --batch 12")),
             "fluidrun: --nproc auto: 1 rank, one per GPU\n");
}

TEST_F(GpuParallel, OneGpuAloneGoesThroughTheSameFunctions) {
  const std::string flags = "--dtype f64 --batch 12 --epochs 2 ";
  succeed(train(flags + "--place cpu --log-json one.json"));
  for (const std::string more : {"", "--zero 1 ", "--micro-batches 3 ", "--place cpu "}) {
    succeed(train(flags + more + "--force-collectives --log-json alone.json"));
    expect_losses("alone.json", "one.json");
    std::filesystem::remove(dir_.file("alone.json"));
  }
  // It does ask for sums: where they fail, it does.
  before_ += "export FLUID_STAND_IN_FAILS='all_reduce 2'; ";
  EXPECT_EQ(run(train(flags)).code, 0);
  const Result failed = run(train(flags + "--force-collectives"));
  EXPECT_EQ(failed.code, 3) << failed.output;
  expect_has(failed.output, "all_reduce was told to fail");
}

TEST_F(GpuParallel, GoesOnFromCheckpointsOfTheCpuAndBack) {
  const std::string flags = "--dtype f64 --checkpoint-dir saved --resume --log-json parts.json ";
  succeed(train("--dtype f64 --batch 12 --epochs 3 --place cpu --log-json whole.json"));
  succeed(train(flags + "--batch 12 --epochs 1 --place cpu"));
  succeed(launch(2, flags + "--batch 6 --epochs 2 --zero 1"));
  succeed(train(flags + "--batch 12 --epochs 3 --place cpu"));
  expect_losses("parts.json", "whole.json");
}

/// Two equal GPUs on which different matmul algorithms are fastest use the choices of rank 0. Two
/// different GPUs use their own choices.
TEST_F(GpuParallel, AllRanksMultiplyAsTheFirstDoes) {
  write_wide_program();
  before_ += "export FLUID_STAND_IN_PACE=early; ";
  const std::string flags = "--batch 32 --epochs 2 --drop-last --threads 1 --cache-dir ";
  const auto trained = [&](const std::string& name, const std::string& second) {
    const std::string save = " --log-json " + name + ".json --save " + name + ".safetensors";
    const std::string as_second = train(flags + name + "1" + save, "wide.fir");
    const std::string as_first = train(flags + name + "0" + save, "wide.fir");
    std::ofstream(dir_.file("rank")) << "if [ $RANK = 1 ]; then\n"
                                     << second << "\nexec " << kFluidrun << " " << as_second
                                     << "\nfi\nexec " << kFluidrun << " " << as_first << "\n";
    succeed("launch --nproc 2 -- sh rank");
    return read_file(dir_.file(name + ".safetensors"));
  };
  const auto plan_of_second = [&](const std::string& name, const std::string& more = "") {
    const std::string before = std::exchange(before_, before_ + more);
    const std::string plan = succeed(
        "plan wide.fir --batch 32 --world 2 --place cuda:0 --kernels "
        "--cache-dir " +
        name + "1");
    before_ = before;
    return plan;
  };
  const std::string in_parts = "export FLUID_STAND_IN_PARTS=1; ";
  const std::string another = "export FLUID_STAND_IN_NAME='a host of another kind'; ";
  const std::string alike = trained("alike", "");
  EXPECT_TRUE(trained("taken", in_parts) == alike);
  EXPECT_FALSE(trained("own", in_parts + another) == alike);
  expect_has(plan_of_second("taken"), " ms, with 0 B");
  EXPECT_EQ(plan_of_second("taken").find(" ms, with 1"), std::string::npos);
  EXPECT_EQ(plan_of_second("own", another).find(" ms, with 0 B"), std::string::npos);
  expect_has(plan_of_second("own", another), "chosen at ");
}

/// One rank's library finds as it computes a gradient that it cannot; the other's computes it.
TEST_F(GpuParallel, GoOnWhereOneRanksLibraryFails) {
  write_wide_program();
  const std::string flags = "--batch 32 --epochs 1 --drop-last --log-json ";
  succeed(launch(2, flags + "all.json --cache-dir kept", "wide.fir"));
  std::ofstream(dir_.file("rank"))
      << "[ $RANK = 1 ] || export FLUID_STAND_IN_ROWS_COMPUTED=64\nexec " << kFluidrun << " "
      << train(flags + "one.json --cache-dir kept$RANK", "wide.fir") << "\n";
  expect_has(succeed("launch --nproc 2 -- sh rank"), "(no engine computes so many rows)");
  const std::vector<double> all = losses("all.json"), one = losses("one.json");
  ASSERT_EQ(one.size(), all.size());
  for (size_t i = 0; i < all.size(); ++i) EXPECT_NEAR(one[i], all[i], 1e-5 * all[i]) << i;
}

/// With 7 steps per epoch, each rank starts each step but the first before the previous one is
/// complete.
TEST_F(GpuParallel, BeginAStepWhileTheOneBeforeRuns) {
  before_ += "export FLUID_STAND_IN_PACE=late; ";
  const std::string flags = "--epochs 3 --batch 8 --dtype f64 ";
  succeed(train("--epochs 3 --batch 16 --dtype f64 --place cpu --log-json one.json"));
  const auto overlaps = [&](const std::string& more) {
    std::ofstream(dir_.file("rank")) << "export FLUID_STAND_IN_OVERLAPS=overlaps$RANK\nexec "
                                     << kFluidrun << " " << train(flags + more) << "\n";
    succeed("launch --nproc 2 -- sh rank");
    std::vector<int> counts(2);
    for (const int rank : {0, 1}) {
      std::ifstream(dir_.file("overlaps" + std::to_string(rank))) >> counts[size_t(rank)];
    }
    return counts;
  };
  EXPECT_EQ(overlaps("--log-json two.json"), std::vector<int>(2, 3 * 6));
  expect_losses("two.json", "one.json");
  EXPECT_EQ(overlaps("--zero 1"), std::vector<int>(2, 3 * 6));
  EXPECT_EQ(overlaps("--check-finite"), std::vector<int>(2, 0)) << "it waits for every step";
}

/// Shell code with which a rank sends itself `signal` after its first steps.
std::string once_it_trains(const std::string& signal) {
  return "(while [ ! -s steps.json ]; do sleep 0.1; done; kill -" + signal + " $$) &";
}
constexpr const char* kWithoutEnd =
    "--batch 5 --epochs 100000 --comm-timeout 2 --log-json steps.json";

TEST_F(GpuParallel, AKilledRankIsNamed) {
  const Result result = launch_with(once_it_trains("KILL"), kWithoutEnd);
  EXPECT_NE(result.code, 0);
  expect_has(result.output, "rank 1 was killed by signal 9");
}

TEST_F(GpuParallel, AStoppedRankIsNamedWithinTheTimeOut) {
  const auto begin = std::chrono::steady_clock::now();
  const Result result = launch_with(once_it_trains("STOP"), kWithoutEnd);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
  EXPECT_EQ(result.code, 3) << result.output;
  expect_has(result.output, "rank 0 cannot complete ");
  expect_has(result.output, "rank 1 has been silent for ");
}

/// The rank whose GPU or NCCL fails says why, and the others say that it was that rank.
TEST_F(GpuParallel, ARankWhoseGpuFailsIsNamed) {
  for (const std::string call : {"communicator_state 2000", "event_query 1000"}) {
    const Result result = launch_with("export FLUID_STAND_IN_FAILS='" + call + "'",
                                      "--batch 5 --epochs 100000 --comm-timeout 5");
    EXPECT_EQ(result.code, 3) << result.output;
    const std::string name = call.substr(0, call.find(' '));
    std::ifstream log(dir_.file("logs/workerlog.1"));
    const std::string own{std::istreambuf_iterator<char>(log), {}};
    expect_has(own, "rank 1 cannot complete the GPUs' step ");
    expect_has(own, ": " + name + " was told to fail\n");
    EXPECT_NE(result.output.find("rank 1 "), std::string::npos) << result.output;
  }
}

TEST_F(GpuParallel, ARankThatDoesNotMeetTheOthersIsNamed) {
  const Result result =
      launch_with("export FLUID_STAND_IN_FAILS='communicator_create 0'", "--batch 5");
  EXPECT_EQ(result.code, 3) << result.output;
  std::ifstream log(dir_.file("logs/workerlog.1"));
  const std::string own{std::istreambuf_iterator<char>(log), {}};
  expect_has(own, "rank 1 cannot complete the rendezvous of GPUs ");
}

TEST_F(GpuParallel, RanksDoNotShareAGpu) {
  const Result named = run(launch(2, "--batch 5 --place cuda:1"));
  EXPECT_EQ(named.code, 1) << named.output;
  expect_has(named.output,
             "rank 0 and rank 1 have the same GPU: start as many ranks as there are GPUs, as "
             "`fluidrun launch --nproc auto` does, or train on the CPU with --place cpu\n");
  before_ += "export FLUID_STAND_IN_DEVICES=1; ";
  const Result found = run(launch(2, "--batch 5"));
  EXPECT_EQ(found.code, 1) << found.output;
  expect_has(found.output,
             "this process has local rank 1, but the last GPU that programs can run on is cuda:0: "
             "start as many ranks as there are GPUs, as `fluidrun launch --nproc auto` does, name "
             "--place cuda:0 where each rank sees another GPU as its only one, or train on the CPU "
             "with --place cpu\n");
  expect_has(run(launch(2, "--batch 5 --place cuda")).output,
             "there is no GPU cuda:1; this machine's last is cuda:0");
  succeed(launch(2, "--batch 5 --place cpu"));
}

/// As where Slurm gives each task a GPU of its own: it is the first of those that the task sees.
TEST_F(GpuParallel, ARankThatSeesOneGpuAloneTakesIt) {
  before_ += "export FLUID_STAND_IN_DEVICES=1; ";
  const std::string flags = "--epochs 2 --dtype f64 --log-json ";
  succeed(train(flags + "one.json --place cpu --batch 10"));
  for (const std::string place : {"auto", "cuda"}) {
    std::ofstream(dir_.file("own"))
        << "export CUDA_VISIBLE_DEVICES=$RANK FLUID_STAND_IN_FIRST=$RANK\n"
        << "exec " << kFluidrun << " " << train(flags + "two.json --batch 5 --place " + place)
        << "\n";
    succeed("launch --nproc 2 -- sh own");
    expect_losses("two.json", "one.json");
    std::filesystem::remove(dir_.file("two.json"));
  }
  before_ += "export CUDA_VISIBLE_DEVICES=0; ";
  expect_has(run(launch(2, "--batch 5 --place auto")).output,
             "rank 0 and rank 1 have the same GPU: start as many ranks as there are GPUs");
}

TEST_F(GpuParallel, AllRanksRunOnTheSameKindOfPlace) {
  const Result result =
      launch_with("exec " + kFluidrun + " " + train("--batch 5 --place cpu"), "--batch 5");
  EXPECT_EQ(result.code, 1) << result.output;
  expect_has(result.output, "rank 1 has another kind of place than rank 0: start all ranks alike");
}

/// It takes what the others chose, and keeps nothing.
TEST_F(GpuParallel, ARankMayBeWithoutACache) {
  const Result result = launch_with("unset HOME XDG_CACHE_HOME FLUID_CACHE", "--batch 5");
  EXPECT_EQ(result.code, 0) << result.output;
}

/// Tests the same programs (one with normalisation, one with dropout and counters) with the C++
/// API.
class GpuRanks : public testing::GpuRanksTest {
 protected:
  static void expect_as_on_the_cpu(const Program& net, const ExecutorOptions& options,
                                   double tolerance) {
    constexpr int kSteps = 3;
    const Seen expected = trained_by(2, net, options, kSteps);
    const Seen seen = trained_by(2, net, options, kSteps, testing::kSamples, cuda);
    expect_near(seen.figures, expected.figures, tolerance);
    ASSERT_EQ(seen.parameters.size(), expected.parameters.size());
    for (size_t i = 0; i < seen.parameters.size(); ++i) {
      ASSERT_NEAR(seen.parameters[i], expected.parameters[i], tolerance) << i;
    }
  }
};

TEST_F(GpuRanks, TrainAsRanksOnTheCpuDo) {
  const Program net = parallel_program({.clip = {.global_norm = 0.5}});
  const Buckets small{.first_bytes = 64, .bytes = 128};
  for (const ExecutorOptions& options : {ExecutorOptions{},
                                         {.distributed = {.buckets = small, .zero = 1}},
                                         {.micro_batches = 2, .distributed = {.zero = 1}}}) {
    expect_as_on_the_cpu(net, options, 2e-4);
  }
}

TEST_F(GpuRanks, ShareStatistics) {
  expect_as_on_the_cpu(testing::normalising_program(3), {.distributed = {.sync_bn = true}}, 2e-3);
}

/// One rank has an invalid label: no rank applies the step, and none waits for another.
TEST_F(GpuRanks, DataThatOneRankRejectsChangesNoVariableOnAny) {
  testing::Ranks ranks(2, [](const World& world) {
    const ExecutorOptions options{.batch = 6, .threads = 1, .distributed = {.world = world}};
    Executor exe(parallel_program(), cuda(world.rank), options);
    Batch batch = testing::shard_of_batch(world);
    exe.run(batch);
    const auto all_parameters = [&] {
      std::vector<float> all;
      for (const std::string& name : exe.parameters()) {
        const Tensor value = exe.parameter(name);
        all.insert(all.end(), value.as<float>().begin(), value.as<float>().end());
      }
      return all;
    };
    const std::vector<float> before = all_parameters();
    std::string said;
    if (world.rank == 1) {
      batch.columns[1].second.as<int64_t>()[2] = 3;
      said = error_of<UserError>([&] { exe.run(batch).wait(); });
    } else {
      said = error_of<DeviceError>([&] { exe.run(batch).wait(); });
    }
    if (all_parameters() != before) said += "\nafter it changed parameters";
    return said + "\n" + error_of<DeviceError>([&] { exe.run(batch); });
  });
  const std::string left = "\nthis process left a step that all ranks take: start all again";
  EXPECT_EQ(
      ranks.result(0),
      "another rank rejected its data and reports the error: no rank applied the step" + left);
  const std::string refused = ranks.result(1);
  EXPECT_NE(refused.find("in sample 2 of the batch; the step was not applied" + left),
            std::string::npos)
      << refused;
}

/// Products that are large enough for a library.
Program wide_program() {
  Program net("wide");
  const Value x = net.data("x", {kBatch, 64}, f32);
  const Value loss = mean(square(linear(linear(x, {.units = 128}), {.units = 128})));
  net.output("loss", loss);
  minimize(loss, SGD{.lr = 0.001});
  return net;
}

std::string tuning_choices_of(Executor& exe) {
  std::string all;
  for (const auto& [key, value] : exe.snapshot().tuning_record) all += key + " " + value + "\n";
  return all;
}

/// Different products are fastest on each rank. For sizes prepared after the first step, both ranks
/// use the choices of the rank that prepared the size first, even if the ranks prepare them in
/// different orders.
TEST_F(GpuRanks, ComputeAllSizesAsWhoPreparesThemFirst) {
  const TempDir dir;
  const std::vector<std::string> results =
      testing::Ranks(2, [&](const World& world) {
        if (world.rank == 1) setenv("FLUID_STAND_IN_PARTS", "1", 1);
        const std::string cache = dir.file("rank" + std::to_string(world.rank));
        Executor exe(
            wide_program(), cuda(world.rank),
            {.batch = 32, .threads = 1, .cache_dir = cache, .distributed = {.world = world}});
        const auto run = [&](int64_t n) {
          Batch batch{
              .size = n, .columns = {{"x", Tensor(f32, {n, 64})}}, .global_batch_size = 2 * n};
          exe.run(batch).wait();
          return exe.snapshot().tuning_record.size();
        };
        const size_t at_first = run(32);
        const auto in_turn = [&](int rank, int64_t n) {
          if (world.rank == rank) exe.prepare({.train = {n}});
          exe.process_group().broadcast_from_rank_0("done");
        };
        in_turn(0, 48);
        in_turn(1, 40);
        in_turn(0, 40);
        in_turn(1, 48);
        if (run(40) <= at_first) return std::string("it decided nothing");
        run(48);
        return tuning_choices_of(exe);
      }).results();
  EXPECT_EQ(results[0], results[1]);
  std::set<bool> in_parts;
  std::istringstream lines(results[0]);
  for (std::string line; std::getline(lines, line);) {
    std::string key;
    double ms = 0;
    int64_t workspace = 0;
    std::istringstream(line) >> key >> ms >> workspace;
    in_parts.insert(workspace > 0);
  }
  EXPECT_EQ(in_parts, (std::set<bool>{false, true})) << results[0];
}

/// Holds whichever rank writes the checkpoint, and whether or not it has prepared the step.
TEST_F(GpuRanks, KeepWhatAnotherDecidesLater) {
  for (const int decides : {0, 1}) {
    const std::vector<std::string> results =
        testing::Ranks(2, [&](const World& world) {
          Executor exe(wide_program(), cuda(world.rank),
                       {.batch = 32, .threads = 1, .distributed = {.world = world}});
          exe.broadcast();
          const std::string at_first = tuning_choices_of(exe);
          if (world.rank == decides) exe.prepare({.eval = {40}});
          exe.process_group().broadcast_from_rank_0("done");
          const std::string later = tuning_choices_of(exe);
          return later.size() > at_first.size() ? later : "it decided nothing";
        }).results();
    EXPECT_NE(results[0].find(" "), std::string::npos);
    EXPECT_EQ(results[0], results[1]) << "as rank " << decides << " decided";
  }
}

/// From a loss scale that overflows: as many steps are skipped, on all ranks.
TEST_F(GpuRanks, SkipStepsTogether) {
  const AmpOptions amp{.dtype = f16, .loss_scale = {.initial = 16777216}};
  const Seen expected = trained_by(2, parallel_program(), {.precision = {.amp = amp}}, 3);
  const Seen seen =
      trained_by(2, parallel_program(), {.precision = {.amp = amp}}, 3, testing::kSamples, cuda);
  ASSERT_EQ(seen.parameters.size(), expected.parameters.size());
  const size_t skipped = seen.parameters.size() - 1;
  EXPECT_GT(seen.parameters[skipped], 0);
  EXPECT_EQ(seen.parameters[skipped], expected.parameters[skipped]);
  EXPECT_EQ(seen.parameters[skipped - 1], expected.parameters[skipped - 1]) << "the loss scale";
}

}  // namespace
}  // namespace fluid::parallel_gpu_test
