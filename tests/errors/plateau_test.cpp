// The schedule that the epochs drive, from the command line.

#include <gtest/gtest.h>

#include "ir/atomic_file.h"
#include "tests/support/fluidrun_test.h"
#include "tests/support/training_log.h"

namespace fluid::plateau_test {
namespace {

class PlateauCommand : public FluidrunTest {
 protected:
  void SetUp() override {
    FluidrunTest::SetUp();
    // No loss is a thousandth of the one before: each epoch but the first is a bad one.
    constexpr std::string_view kFlat =
        "lr = 0.01, schedule = \"plateau\", schedule_patience = 1, schedule_factor = 0.5, "
        "schedule_threshold = 0.999";
    std::string text = kLine;
    text.replace(text.find("lr = 0.01"), sizeof "lr = 0.01" - 1, kFlat);
    write_plain(dir_.file("flat.fir"), text);
    text.erase(text.find("  output \"loss\""), sizeof "  output \"loss\" = %loss");
    write_plain(dir_.file("silent.fir"), text);
    text = kLine;
    text.insert(text.find("  train("), "  %score = neg(%loss) : f32[]\n");
    text.insert(text.rfind("}"), "  output \"score\" = %score\n");
    write_plain(dir_.file("score.fir"), text);
    text.insert(text.find("  train("), "  %r2 = r2_score(%p, %y) : f64[4]\n");
    text.insert(text.rfind("}"), "  output \"r2\" = %r2\n");
    write_plain(dir_.file("r2.fir"), text);
  }
  std::vector<double> rates(const std::string& log) const {
    std::vector<double> rates;
    for (const auto& step : logged(dir_.file(log))) rates.push_back(step["lr"]);
    return rates;
  }
};

TEST_F(PlateauCommand, FollowsTheLoss) {
  const std::string train = "train flat.fir --data synthetic-linear?n=20 --batch 10 --epochs 6 ";
  const std::vector<double> expected = {0.01,  0.01,  0.01,  0.01,  0.01,   0.01,
                                        0.005, 0.005, 0.005, 0.005, 0.0025, 0.0025};
  Result result = run(train + "--log-json log --save w.safetensors");
  EXPECT_EQ(result.code, 0) << result.output;
  EXPECT_EQ(rates("log"), expected);
  EXPECT_NE(result.output.find(
                "loss has reached a plateau: the learning rate falls after epoch 3 (mode min)\n"),
            std::string::npos)
      << result.output;
  result = run(train + "--val synthetic-linear?n=20 --log-json val");
  EXPECT_EQ(rates("val"), expected);
  EXPECT_NE(result.output.find("val_loss has reached a plateau"), std::string::npos);

  const std::string kept = train + "--checkpoint-dir run --log-json part --save part.safetensors ";
  for (const std::string steps : {"3", "6", "9"}) {
    EXPECT_EQ(run(kept + "--resume --max-steps " + steps).code, 0);
  }
  EXPECT_EQ(run(kept + "--resume").code, 0);
  EXPECT_EQ(rates("part"), expected) << "interrupted three times";
  EXPECT_EQ(read_file(dir_.file("part.safetensors")), read_file(dir_.file("w.safetensors")));
}

const std::string kScore = "train score.fir --data synthetic-linear?n=20 --epochs 5 ";
const std::string kScorePlateau =
    "--schedule plateau --schedule-metric score --schedule-mode max --schedule-patience 1 "
    "--schedule-factor 0.5 ";

/// The score rises in each epoch, by less than 1000.
TEST_F(PlateauCommand, FollowsAnotherMetric) {
  const auto trained_rates = [&](const std::string& flags, const std::string& log) {
    const Result result = run(kScore + "--batch 20 --log-json " + log + " " + flags);
    EXPECT_EQ(result.code, 0) << result.output;
    return rates(log);
  };
  using Rates = std::vector<double>;
  const Rates constant(5, 0.01), falls = {0.01, 0.01, 0.01, 0.005, 0.005};
  const std::string sum = "--schedule-threshold 1e3 --schedule-threshold-mode abs ";
  EXPECT_EQ(trained_rates(kScorePlateau + "--schedule-threshold 0", "rises"), constant);
  EXPECT_EQ(trained_rates(kScorePlateau + sum, "little"), falls);
  EXPECT_EQ(trained_rates(kScorePlateau + sum + "--val synthetic-linear?n=20", "val"), falls);
  const std::string kept = kScorePlateau + sum + "--checkpoint-dir run --resume ";
  trained_rates(kept + "--max-steps 2", "part");
  EXPECT_EQ(trained_rates(kept, "part"), falls) << "resumed";
}

TEST_F(PlateauCommand, FollowsTheMetricOfAllRanks) {
  const Result result =
      run("launch --nproc 2 --log-dir logs -- " + kFluidrun + " " + kScore + kScorePlateau +
          "--batch 10 --schedule-threshold 1e3 --schedule-threshold-mode abs --log-json log");
  ASSERT_EQ(result.code, 0) << result.output;
  EXPECT_EQ(rates("log"), (std::vector<double>{0.01, 0.01, 0.01, 0.005, 0.005}));
}

TEST_F(PlateauCommand, NeedsAScalarMetric) {
  expect_error(kScore + "--schedule plateau --schedule-metric scores",
               "the schedule 'plateau': no scalar output has the name 'scores'; did you mean "
               "'score'?");
  expect_error(kScore + "--schedule plateau --schedule-metric line",
               "the schedule 'plateau': no scalar output has the name 'line'");
  expect_error(kScore + "--dry-run --schedule plateau --schedule-metric loses",
               "no scalar output has the name 'loses'; did you mean 'loss'?");
  expect_error(kScore + "--schedule plateau --schedule-mode up",
               "--schedule-mode up: plateau_schedule: attribute 'mode' must be min or max, not "
               "'up'");
}

TEST_F(PlateauCommand, MaximizesAMetricWhoseLargerValuesAreBetter) {
  const std::string train =
      "train r2.fir --data synthetic-linear?n=20 --epochs 3 --schedule plateau "
      "--schedule-metric r2 --schedule-patience 0 --schedule-threshold-mode abs "
      "--schedule-threshold 9 ";
  expect_error(train, "the schedule 'plateau' monitors 'r2': give --schedule-mode max");
  expect_error(train + "--schedule-mode min", "'plateau' monitors 'r2': --schedule-mode max");
  const Result result = run(train + "--schedule-mode max");
  EXPECT_EQ(result.code, 0) << result.output;
  EXPECT_NE(result.output.find("r2 has reached a plateau: the learning rate falls after epoch 2 "
                               "(mode max)\n"),
            std::string::npos)
      << result.output;
}

TEST_F(PlateauCommand, NeedsALoss) {
  expect_error("train silent.fir --data synthetic-linear?n=20",
               "the schedule 'plateau' monitors the loss, which is not an output");
}

}  // namespace
}  // namespace fluid::plateau_test
