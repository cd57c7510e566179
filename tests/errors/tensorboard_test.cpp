// `train --tensorboard`: event files, read by a decoder of their own.

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/support/event_file.h"
#include "tests/support/fluidrun_test.h"
#include "tests/support/training_log.h"

namespace fluid::tensorboard_test {
namespace {

const std::string kTrain =
    "train line.fir --data synthetic-linear?n=25 --val synthetic-linear?n=10 --batch 10 --lr "
    "0.001 ";

class TensorBoardFiles : public FluidrunTest {
 protected:
  /// Checks that the scalars of `events` are those of the log of --log-json.
  void expect_values_of_log(const ReadEvents& events, const std::string& log) const {
    size_t values = 0;
    const auto expect = [&](const std::string& tag, const nlohmann::json& step,
                            const nlohmann::json& value) {
      ASSERT_TRUE(events.scalars.contains(tag)) << tag;
      ASSERT_TRUE(events.scalars.at(tag).contains(step)) << tag << " " << step;
      EXPECT_EQ(events.scalars.at(tag).at(step), value.get<float>()) << tag << " " << step;
      ++values;
    };
    for (const auto& line : logged(dir_.file(log))) {
      expect("step/loss", line["step"], line["loss"]);
      expect("optimizer/learning_rate", line["step"], line["lr"]);
      if (line.contains("loss_scale")) {
        expect("optimizer/loss_scale", line["step"], line["loss_scale"]);
      }
    }
    for (const auto& line : logged(dir_.file(log), "epoch")) {
      expect("epoch/loss", line["steps"], line["loss"]);
    }
    for (const auto& line : logged(dir_.file(log), "validation")) {
      expect("epoch/val_loss", line["steps"], line["loss"]);
    }
    size_t read = 0;
    for (const auto& [tag, steps] : events.scalars) read += steps.size();
    EXPECT_EQ(read, values);
  }
};

TEST_F(TensorBoardFiles, HoldStepsAndEpochs) {
  ASSERT_EQ(reference_crc32c("123456789"), 0xe3069283u);
  const Result result = run(kTrain +
                            "--epochs 2 --schedule cosine --amp o1 --amp-dtype f16 "
                            "--tensorboard new/board --log-json log.json");
  ASSERT_EQ(result.code, 0) << result.output;
  const std::vector<std::string> files = event_files(dir_.file("new/board"));
  ASSERT_EQ(files.size(), 1u);
  EXPECT_NE(files[0].find("/events.out.tfevents."), std::string::npos);
  const ReadEvents events = read_events(files[0]);
  EXPECT_EQ(events.version, "brain.Event:2");
  EXPECT_EQ(events.starts, std::vector<int64_t>{1});
  EXPECT_EQ(events.scalars.size(), 5u);
  EXPECT_EQ(events.scalars.at("step/loss").size(), 6u);
  EXPECT_EQ(events.scalars.at("epoch/val_loss").size(), 2u);
  expect_values_of_log(events, "log.json");
}

/// The checkpoint is of step 3, the end of the first epoch.
TEST_F(TensorBoardFiles, AResumedRunAddsAFile) {
  const std::string train =
      kTrain + "--checkpoint-dir run --tensorboard board --log-json log.json ";
  ASSERT_EQ(run(train + "--epochs 1").code, 0);
  std::filesystem::copy(dir_.file("log.json"), dir_.file("first.json"));
  const Result result = run(train + "--epochs 3 --resume");
  ASSERT_EQ(result.code, 0) << result.output;
  const std::vector<std::string> files = event_files(dir_.file("board"));
  ASSERT_EQ(files.size(), 2u);
  const ReadEvents first = read_events(files[0]), second = read_events(files[1]);
  expect_values_of_log(first, "first.json");
  EXPECT_EQ(second.starts, std::vector<int64_t>{4});
  EXPECT_EQ(second.scalars.at("step/loss").begin()->first, 4);
  ReadEvents both = first;
  for (const auto& [tag, steps] : second.scalars)
    both.scalars[tag].insert(steps.begin(), steps.end());
  EXPECT_EQ(both.scalars.at("step/loss").size(), 9u);
  expect_values_of_log(both, "log.json");
}

TEST_F(TensorBoardFiles, OnlyRank0Writes) {
  const Result result = run("launch --nproc 2 -- " + kFluidrun + " " + kTrain +
                            "--tensorboard board --log-json log.json");
  ASSERT_EQ(result.code, 0) << result.output;
  const std::vector<std::string> files = event_files(dir_.file("board"));
  ASSERT_EQ(files.size(), 1u);
  expect_values_of_log(read_events(files[0]), "log.json");
}

TEST_F(TensorBoardFiles, NeedADirectoryThatCanBeWritten) {
  expect_error(kTrain + "--tensorboard line.fir/board", "cannot create 'line.fir/board'");
  expect_error(kTrain + "--tensorboard /proc/board", "cannot create '/proc/board'");
  expect_error(kTrain + "--tensorboard /proc/self",
               "cannot write '/proc/self/events.out.tfevents.'");
  expect_error("train line.fir --data csv:absent.csv?label=y --tensorboard line.fir",
               "cannot create 'line.fir'");
}

TEST_F(TensorBoardFiles, HoldHistogramsAndText) {
  const std::string train = kTrain + "--tensorboard board --epochs 2 ";
  const Result result = run(train + "--tensorboard-histograms 4 --tensorboard-images 2");
  ASSERT_EQ(result.code, 0) << result.output;
  const ReadEvents events = read_events(event_files(dir_.file("board")).at(0));
  EXPECT_EQ(events.other_tags, (std::map<std::string, std::set<int64_t>>{
                                   {"gradient/w", {4}}, {"parameter/w", {4}}, {"program", {0}}}));
  expect_error(kTrain + "--tensorboard-histograms 4",
               "--tensorboard-histograms requires --tensorboard");
  expect_error(kTrain + "--tensorboard-images 4", "--tensorboard-images requires --tensorboard");
  expect_error(train + "--tensorboard-parameters w",
               "--tensorboard-parameters requires --tensorboard-histograms");
  expect_error(train + "--tensorboard-images 0",
               "--tensorboard-images: must be a positive integer");
  expect_error(train + "--tensorboard-histograms x",
               "--tensorboard-histograms: must be a positive integer");
  expect_error(train + "--tensorboard-histograms 1 --tensorboard-parameters v",
               "TensorBoard histograms: 'v' selects no parameter; there are 'w'");
}

/// Training continues without the file, the file contains only whole records, and the exit code is
/// 1.
TEST_F(TensorBoardFiles, AreCutOffOnAFullDisk) {
  before_ = "ulimit -f 6; ";
  const Result result =
      run("train line.fir --data synthetic-linear?n=2000 --batch 10 --lr 0.001 "
          "--tensorboard board --save w.safetensors");
  EXPECT_EQ(result.code, 1);
  EXPECT_NE(result.output.find("training continues"), std::string::npos) << result.output;
  EXPECT_NE(result.output.find("saved w.safetensors"), std::string::npos) << result.output;
  EXPECT_TRUE(states(result.output.substr(result.output.rfind("fluidrun: ")), "File too large"));
  const ReadEvents events = read_events(event_files(dir_.file("board")).at(0));
  EXPECT_GT(events.scalars.at("step/loss").size(), 3u);
  EXPECT_LT(events.scalars.at("step/loss").size(), 200u);
}

}  // namespace
}  // namespace fluid::tensorboard_test
