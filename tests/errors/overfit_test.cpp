// `train --overfit N`: which samples it trains on, when it stops, and what it concludes.

#include <gtest/gtest.h>

#include <csignal>

#include "ir/atomic_file.h"
#include "tests/support/fluidrun_test.h"
#include "tests/support/training_log.h"

namespace fluid::overfit_test {
namespace {

const std::string kTrain = "train line.fir --data synthetic-linear?n=100 --lr 0.01 ";

class Overfit : public FluidrunTest {
 protected:
  std::vector<double> losses(const std::string& log) const {
    std::vector<double> losses;
    for (const auto& step : logged(dir_.file(log))) losses.push_back(step["loss"]);
    return losses;
  }
};

/// Two weights and no bias fit two samples.
TEST_F(Overfit, LearnsAsManySamplesAsThereAreWeights) {
  const Result result = run(kTrain + "--overfit 2 --log-json log");
  EXPECT_EQ(result.code, 0) << result.output;
  EXPECT_TRUE(states(result.output, "learned: 2 samples after")) << result.output;
  const std::vector<double> log = losses("log");
  ASSERT_GT(log.size(), 3u);
  ASSERT_LT(log.size(), 1000u);
  EXPECT_LE(log.back(), 0.01 * log.front());
  for (size_t i = 0; i + 1 < log.size(); ++i) EXPECT_GT(log[i], 0.01 * log.front()) << i;
}

TEST_F(Overfit, FailsForMoreSamplesThanTheWeightsFit) {
  expect_late_error(
      kTrain + "--overfit 20",
      "--overfit: not learned: 20 samples after 1000 steps: loss . The loss must fall to 1% of its "
      "value before training, or a metric must reach its best value");
  expect_late_error(kTrain + "--overfit 20 --max-steps 7", "20 samples after 7 steps");
  expect_late_error(kTrain + "--overfit 20 --epochs 3 --batch 8", "20 samples after 9 steps");
  const Result ranks =
      run("launch --nproc 2 -- " + kFluidrun + " " + kTrain + "--overfit 5 --max-steps 7");
  EXPECT_EQ(ranks.code, 1);
  EXPECT_TRUE(states(ranks.output, "not learned: 5 samples after 7 steps")) << ranks.output;
}

/// The scores are the feed: each sample's prediction is right, and the loss does not change.
TEST_F(Overfit, IsContentWithTheBestValueOfAMetric) {
  write_plain(dir_.file("classes.fir"), R"(program @classes {
  %x = data "x" : f32[?, 3]
  %y = data "y" : i64[?]
  %w = param "w" {init = "constant", value = 1.0} : f32[]
  %s = mul(%x, %w) : f32[?, 3]
  %l = softmax_cross_entropy(%s, %y) : f32[?]
  %loss = mean(%l) : f32[]
  train(%loss) {optimizer = "sgd", lr = 1e-12}
  %a = accuracy(%s, %y) : f64[2]
  output "loss" = %loss
  output "accuracy" = %a
}
)");
  write_plain(dir_.file("rows.csv"), "a,b,c,y\n2,0,0,0\n0,2,0,1\n0,0,2,2\n0,2,0,0\n");
  const std::string train = "train classes.fir --data 'csv:rows.csv?label=y&classes=1' ";
  const Result result = run(train + "--overfit 3 --max-steps 4");
  EXPECT_EQ(result.code, 0) << result.output;
  EXPECT_TRUE(states(result.output, "learned: 3 samples after 4 steps, accuracy 1.0000 -> 1.0000"))
      << result.output;
  expect_late_error(train + "--overfit 4 --max-steps 4", "accuracy 0.7500 -> 0.7500");
}

/// The loss is the mean of the images: it stays the same as long as the augmented images do.
TEST_F(Overfit, AugmentsOnce) {
  write_plain(dir_.file("images.fir"), R"(program @images {
  %x = data "image" : f32[?, 1, 28, 28]
  %w = param "w" {init = "constant", value = 1.0} : f32[]
  %m = mean(%x) : f32[]
  %loss = mul(%m, %w) : f32[]
  train(%loss) {optimizer = "sgd", lr = 1e-12}
  output "loss" = %loss
}
)");
  const std::string train = "train images.fir --data 'digits|erase=1' --batch 4 ";
  EXPECT_EQ(run(train + "--overfit 4 --max-steps 5 --log-json once").code, 1);
  const std::vector<double> once = losses("once");
  EXPECT_EQ(once, std::vector<double>(5, once.at(0)));
  EXPECT_EQ(run("train images.fir --data 'digits?limit=4|erase=1' --batch 4 --epochs 5 "
                "--log-json each")
                .code,
            0);
  EXPECT_NE(losses("each"), std::vector<double>(5, losses("each").at(0)));
}

/// A stop says nothing about whether the program can learn the samples.
TEST_F(Overfit, StopsForASignalWithoutAVerdict) {
  const Result result = run_command("timeout --foreground --signal=INT --preserve-status 2 " +
                                    kFluidrun + " " + kTrain + "--overfit 20 --epochs 1000000000");
  EXPECT_EQ(result.code, 128 + SIGINT) << result.output;
  EXPECT_TRUE(states(result.output, "stopped after step")) << result.output;
  EXPECT_EQ(result.output.find("learned"), std::string::npos) << result.output;
}

TEST_F(Overfit, RejectsWhatItDoesNotDo) {
  expect_error(kTrain + "--overfit 0", "--overfit: must be a positive integer, not 0");
  for (const std::string other :
       {"--val synthetic-linear", "--best loss:min", "--patience 3", "--save-best w.safetensors",
        "--checkpoint-dir run", "--checkpoint-every 5", "--keep 1", "--resume"}) {
    const std::string name = other.substr(0, other.find(' '));
    expect_error(kTrain + "--overfit 2 " + other, "--overfit excludes " + name);
  }
  std::string text = kLine;
  const std::string output = "  output \"loss\" = %loss\n";
  text.erase(text.find(output), output.size());
  write_plain(dir_.file("silent.fir"), text);
  expect_late_error("train silent.fir --data synthetic-linear?n=9 --overfit 2",
                    "--overfit needs one recipe, whose loss is an output");
}

}  // namespace
}  // namespace fluid::overfit_test
