// Checkpoints on the command line: an interrupted run resumes with the same results.

#include <gtest/gtest.h>

#include <regex>

#include "ir/atomic_file.h"
#include "tests/support/dropping_program.h"
#include "tests/support/fluidrun_test.h"
#include "tests/support/training_log.h"

namespace fluid::checkpoint_test {
namespace {

class CheckpointCommand : public FluidrunTest {
 protected:
  void SetUp() override {
    FluidrunTest::SetUp();
    write_plain(dir_.file("dropping.fir"), std::string(testing::kDropping));
  }

  /// The results of a run: bytes of the parameter file, log and table, without times.
  struct Outcome {
    std::string parameters, log, table;
  };
  Outcome outcome(const std::string& name, const std::string& output) const {
    return {read_file(dir_.file(name + ".safetensors")),
            log_without_times(dir_.file(name + ".json")),
            std::regex_replace(output, std::regex(" +[0-9.]+ +[0-9.]+ s"), "")};
  }
  /// 52 steps: an epoch is 12 of 20 samples and one of 10.
  static std::string train(const std::string& name) {
    return "train dropping.fir --data synthetic-linear?n=250 --val synthetic-linear?n=60 "
           "--batch 20 --epochs 4 --seed 7 --amp o1 --amp-dtype f16 --save " +
           name + ".safetensors --log-json " + name + ".json ";
  }
};

TEST_F(CheckpointCommand, GoesOnAsIfNothingHadBeen) {
  const Result result = run(train("whole"));
  ASSERT_EQ(result.code, 0) << result.output;
  const Outcome whole = outcome("whole", result.output);
  // In the middle of an epoch, and at the end of one.
  for (const std::string steps : {"20", "26"}) {
    const std::string options = train(steps) + "--checkpoint-every 7 --checkpoint-dir run" + steps;
    ASSERT_EQ(run(options + " --max-steps " + steps).code, 0);
    // A killed process leaves lines after the checkpoint, the last one truncated.
    std::ofstream(dir_.file(steps + ".json"), std::ios::app)
        << "{\"epoch\":2,\"step\":27,\"loss\":1}\n{\"epoch\":2,\"st";
    const Result rest = run(options + " --resume --keep 1");
    ASSERT_EQ(rest.code, 0) << rest.output;
    const Outcome resumed = outcome(steps, rest.output);
    EXPECT_EQ(resumed.parameters, whole.parameters) << steps;
    EXPECT_EQ(resumed.log, whole.log) << steps;
    const std::string first = steps == "20" ? "  2/4 " : "  3/4 ";
    EXPECT_EQ(resumed.table.substr(resumed.table.find(first), 100),
              whole.table.substr(whole.table.find(first), 100))
        << "figures of the epochs";
    EXPECT_NE(rest.output.find("going on from run" + steps + "/step-00000000" + steps + ": step " +
                               steps + " in epoch "),
              std::string::npos)
        << rest.output;
    EXPECT_EQ(rest.output.find("results differ"), std::string::npos) << rest.output;
    EXPECT_TRUE(std::filesystem::exists(dir_.file("run" + steps + "/step-0000000052")));
    EXPECT_FALSE(std::filesystem::exists(dir_.file("run" + steps + "/step-0000000049")));
  }
}

TEST_F(CheckpointCommand, NamesTheOptionsThatDiffer) {
  const std::string options =
      "train line.fir --data synthetic-linear?n=100 --checkpoint-dir run --resume ";
  const Result begun = run(options + "--batch 20 --max-steps 3");
  EXPECT_EQ(begun.code, 0);
  EXPECT_NE(begun.output.find("no checkpoint in run: training begins"), std::string::npos);
  const Result result = run(options + "--batch 25 --lr 0.001 --params absent --log-json log");
  EXPECT_EQ(result.code, 0) << result.output;
  EXPECT_NE(result.output.find("\nresults differ from those of a single run: lr 0.001 (was 0.01), "
                               "batch 25 (was 20)\n"),
            std::string::npos)
      << result.output;
  EXPECT_NE(result.output.find("--params is not read: run/step-0000000003 is"), std::string::npos);
  EXPECT_EQ(logged(dir_.file("log")).size(), 2u) << "of 25 and of 15 samples";
  EXPECT_EQ(run(options + "--batch 20").code, 0) << "with nothing left to do";
  EXPECT_EQ(
      run("eval line.fir --data synthetic-linear?n=9 --params run/last/parameters.safetensors")
          .code,
      0);
}

TEST_F(CheckpointCommand, TakesTheLossScaleIntoItsNewBounds) {
  const std::string train =
      "train line.fir --data synthetic-linear?n=40 --batch 20 --amp o1 --amp-dtype f16 "
      "--checkpoint-dir run --resume --loss-scale";
  ASSERT_EQ(run(train + "-init 64 --epochs 2").code, 0);
  const std::pair<std::string, std::string> cases[] = {
      {"-ceiling 32 --loss-scale-init 16 --epochs 3", "loss scale 32; 0 of 6 steps skipped"},
      {" 8 --epochs 4", "loss scale 8; 0 of 8 steps skipped"},
      {"-floor 16 --epochs 5", "loss scale 16; 0 of 10 steps skipped"},
      {"-interval 3 --epochs 6", "loss scale 32; 0 of 12 steps skipped"}};
  for (const auto& [options, expected] : cases) {
    const Result result = run(train + options);
    EXPECT_EQ(result.code, 0) << result.output;
    EXPECT_NE(result.output.find(expected), std::string::npos) << options << result.output;
    EXPECT_NE(result.output.find("results differ from those of a single run: amp f16 with a loss "
                                 "scale "),
              std::string::npos)
        << result.output;
  }
}

TEST_F(CheckpointCommand, GoesOnInThePrecisionThatWasChosen) {
  const std::string train =
      "train line.fir --data synthetic-linear?n=40 --batch 20 --checkpoint-dir run --resume ";
  ASSERT_EQ(run(train + "--amp off --epochs 1").code, 0);
  const Result off = run(train + "--amp auto --epochs 2");
  EXPECT_EQ(off.output.find("results differ"), std::string::npos) << off.output;
  int epochs = 2;
  for (const std::string level : {"o1", "o2"}) {
    ASSERT_EQ(run(train + "--amp " + level + " --epochs " + std::to_string(++epochs)).code, 0);
    const Result half = run(train + "--amp auto --epochs " + std::to_string(++epochs));
    EXPECT_EQ(half.code, 0) << half.output;
    EXPECT_EQ(half.output.find("results differ"), std::string::npos) << half.output;
    EXPECT_EQ(half.output.find("--amp auto takes"), std::string::npos) << "chosen before";
  }
}

TEST_F(CheckpointCommand, SaysWhenNothingIsLeftToTrain) {
  const std::string train =
      "train line.fir --data synthetic-linear?n=40 --batch 20 --checkpoint-dir run --resume ";
  const std::string nothing = "nothing to train: 2 epochs and 4 steps are done\n";
  EXPECT_EQ(run(train + "--epochs 2").output.find(nothing), std::string::npos);
  const Result again = run(train + "--epochs 2");
  EXPECT_EQ(again.code, 0);
  EXPECT_NE(again.output.find(nothing), std::string::npos) << again.output;
  EXPECT_NE(again.output.find("step-0000000004: step 4 after epoch 2\n"), std::string::npos)
      << again.output;
  const Result steps = run(train + "--epochs 9 --max-steps 4");
  EXPECT_NE(steps.output.find(nothing), std::string::npos) << steps.output;
}

TEST_F(CheckpointCommand, PassesOverADamagedOne) {
  const std::string options =
      "train line.fir --data synthetic-linear?n=100 --batch 20 --checkpoint-dir run ";
  EXPECT_EQ(run(options + "--checkpoint-every 2").code, 0);
  write_plain(dir_.file("run/step-0000000005/manifest.json"), "{");
  const Result result = run(options + "--resume");
  EXPECT_EQ(result.code, 0) << result.output;
  EXPECT_NE(result.output.find("passed over run/step-0000000005: its manifest is damaged\n"
                               "going on from run/step-0000000004: step 4 in epoch 1\n"),
            std::string::npos)
      << result.output;
  EXPECT_TRUE(std::filesystem::exists(dir_.file("run/step-0000000005.1")));
}

TEST_F(CheckpointCommand, GoesByMinutes) {
  const std::string options = "train line.fir --data synthetic-linear?n=100 --batch 20 ";
  EXPECT_EQ(run(options + "--checkpoint-dir run --checkpoint-every 1e-9min --keep 9").code, 0);
  EXPECT_EQ(run(options + "--checkpoint-dir slow --checkpoint-every 1e9min --keep 9").code, 0);
  for (const int step : {1, 2, 3, 4, 5}) {
    const std::string name = "step-000000000" + std::to_string(step);
    EXPECT_TRUE(std::filesystem::exists(dir_.file("run/" + name))) << step;
    EXPECT_EQ(std::filesystem::exists(dir_.file("slow/" + name)), step == 5) << step;
  }
}

TEST_F(CheckpointCommand, RejectsFlagsThatMeanNothing) {
  const std::string train = "train line.fir --data synthetic-linear?n=100 ";
  expect_error(train + "--resume", "--resume needs --checkpoint-dir");
  expect_error(train + "--keep 2", "--keep needs --checkpoint-dir");
  expect_error(train + "--checkpoint-every 5", "--checkpoint-every needs --checkpoint-dir");
  for (const std::string every : {"0", "5m", "-1min", "min", "nanmin"}) {
    expect_error(train + "--checkpoint-dir run --checkpoint-every " + every,
                 "must be a number of steps (500) or of minutes (10min), not " + every);
  }
  expect_error(train + "--checkpoint-dir line.fir/run",
               "cannot write 'line.fir/run': Not a directory");
  expect_error("train line.fir --checkpoint-dir new --data csv:absent.csv?label=y",
               "cannot read 'absent.csv'");
  EXPECT_EQ(run(train + "--checkpoint-dir run").code, 0);
  expect_error(train + "--checkpoint-dir run",
               "'run' holds checkpoints: give --resume to continue from them, or use "
               "another directory for "
               "a new run");
}

TEST_F(CheckpointCommand, RejectsOtherAverages) {
  const std::string train =
      "train line.fir --data synthetic-linear?n=100 --batch 20 --checkpoint-dir run --resume ";
  const auto rejects = [&](const std::string& first, const std::string& next,
                           const std::string& message) {
    ASSERT_EQ(run(train + "--max-steps 2 " + first).code, 0);
    expect_late_error(train + next, message +
                                        "; resume with the same averages and lookahead, or "
                                        "start a new run from saved parameters");
    std::filesystem::remove_all(dir_.file("run"));
  };
  rejects("", "--ema 0.9",
          "lacks 'w.ema', which resuming training needs: averaging by ema is off "
          "in the checkpoint and on now");
  rejects("--ema 0.9", "",
          "holds 'w.ema', which this training does not use: averaging by ema is on "
          "in the checkpoint and off now");
  rejects("--ema 0.9", "--swa 1",
          "lacks 'w.swa', which resuming training needs: averaging by swa is off "
          "in the checkpoint and on now");
  rejects("", "--lookahead 2",
          "lacks 'w.slow', which resuming training needs: lookahead is off in "
          "the checkpoint and on now");
  rejects("--lookahead 2", "",
          "holds 'w.slow', which this training does not use: lookahead is on in "
          "the checkpoint and off now");
}

TEST_F(CheckpointCommand, RejectsOtherPenaltiesAndInitialisers) {
  const std::string train =
      "train line.fir --data synthetic-linear?n=100 --batch 20 --checkpoint-dir run --resume ";
  ASSERT_EQ(run(train + "--max-steps 2 --param 'w:l2=0.1'").code, 0);
  for (const std::string flags : {"", "--param 'w:l2=0.2'", "--param 'w:l2=0.1,l1=0.1'",
                                  "--param 'w:l2=0.1,init=normal,std=0.1'"}) {
    expect_late_error(train + flags,
                      "run/step-0000000002: the weight penalties (l1, l2) or the initialisers of "
                      "its parameters differ: resume with the same l1, l2 and init of each "
                      "parameter, or start a new run from saved parameters");
  }
  EXPECT_EQ(run(train + "--param 'w:l2=0.1'").code, 0);
}

TEST_F(CheckpointCommand, KeepsWhatCameBeforeADivergence) {
  const std::string options =
      "train line.fir --data synthetic-linear?n=1000 --batch 10 --checkpoint-dir run --keep 1 ";
  EXPECT_EQ(run(options + "--max-steps 5").code, 0);
  const std::string before = read_file(dir_.file("run/last/manifest.json"));
  const Result result =
      run(options + "--resume --lr 1e30 --checkpoint-every 1 --epochs 9 --save w.safetensors");
  EXPECT_EQ(result.code, 1) << result.output;
  EXPECT_NE(result.output.find("training diverged"), std::string::npos) << result.output;
  EXPECT_FALSE(std::filesystem::exists(dir_.file("w.safetensors")));
  EXPECT_EQ(
      run("eval line.fir --data synthetic-linear?n=9 --params run/last/parameters.safetensors")
          .output.find("nan"),
      std::string::npos);
}

}  // namespace
}  // namespace fluid::checkpoint_test
