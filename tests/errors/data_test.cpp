// A user's own data: one file for training and validation, for predicting, in other dtypes.

#include <gtest/gtest.h>

#include "frontend/files/npy.h"
#include "ir/atomic_file.h"
#include "ir/stopwatch.h"
#include "tests/support/fluidrun_test.h"

namespace fluid::data_test {
namespace {

class OwnData : public FluidrunTest {
 protected:
  void SetUp() override {
    FluidrunTest::SetUp();
    std::string rows = "\xef\xbb\xbfid,a,b,target\n";
    for (int i = 0; i < 50; ++i) {
      rows += "\"row, " + std::to_string(i) + "\"," + std::to_string(i % 7) + "," +
              std::to_string(i % 5) + "," + std::to_string(2 * (i % 7) - 3 * (i % 5)) + "\n";
    }
    write_plain(dir_.file("rows.csv"), rows);
  }

  void expect_has(const std::string& text, const std::string& part) const {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }
};

TEST_F(OwnData, OneFileTrainsAndValidates) {
  const std::string data = "'csv:rows.csv?label=target&drop=id&val=0.2&seed=1' ";
  const Result trained = run("train line.fir --batch 8 --epochs 3 --save w.safetensors --data " +
                             data + "--val " + data);
  ASSERT_EQ(trained.code, 0) << trained.output;
  expect_has(trained.output, "val_loss");
  const Result held =
      run("predict line.fir --params w.safetensors --data " + data + " 2>/dev/null");
  EXPECT_EQ(std::ranges::count(held.output, '\n'), 10) << held.output;
  EXPECT_EQ(trained.output.find("also trained on"), std::string::npos) << trained.output;
  expect_error("train line.fir --data rows.csv", "(did you mean 'csv:rows.csv?label=COLUMN'?)");
}

TEST_F(OwnData, AnErrorOfTheTrainingDataDoesNotWaitForTheValidationData) {
  const Stopwatch watch;
  for (const std::string command : {"sleep 50", "while cat y.npy; do :; done"}) {
    write_npy(dir_.file("y.npy"), Tensor(f32, {1, 1}));
    expect_error("train line.fir --data npy:x=none.npy --val 'pipe:" + command + "?columns=y'",
                 "cannot read 'none.npy'");
  }
  EXPECT_LT(watch.ms(), 30'000);
}

TEST_F(OwnData, ValidationOnRowsThatTrainIsSaid) {
  const auto noted = [&](const std::string& data, const std::string& val, int shared) {
    const Result result =
        run("train line.fir --epochs 1 --data '" + data + "' --val '" + val + "'");
    EXPECT_EQ(result.code, 0) << result.output;
    expect_has(result.output, "--val: " + std::to_string(shared) + " of ");
  };
  const std::string all = "csv:rows.csv?label=target&drop=id";
  noted(all, all + "&val=0.2", 10);
  noted(all + "&val=0.2", all, 40);
  noted(all, all, 50);
  const Result apart =
      run("train line.fir --epochs 1 --data synthetic-linear?n=50 --val "
          "'synthetic-linear?n=50&seed=2'");
  EXPECT_EQ(apart.output.find("also trained on"), std::string::npos) << apart.output;
}

TEST_F(OwnData, SamplesAreShownWithTheirVectorsTextsAndClasses) {
  write_plain(dir_.file("pets.csv"), "size,age,pet\n1.5,2,cat\n30,4,dog\n2,9,cat\n");
  const Result pets = run("data 'csv:pets.csv?label=pet&categories=pet' --draw 3");
  EXPECT_EQ(pets.code, 0) << pets.output;
  for (const char* sample : {"[x 1.5 2]  [y 0 'cat']", "[x 30 4]  [y 1 'dog']"}) {
    expect_has(pets.output, sample);
  }
  write_plain(dir_.file("words.txt"), "To be, or not to be,\nthat is the question: ");
  const Result words = run("data 'text:words.txt?length=11' --draw 1");
  EXPECT_EQ(words.code, 0) << words.output;
  expect_has(words.output, "\"To be, or n\"");
  write_npy(dir_.file("wide.npy"), Tensor(f32, {2, 20}));
  const Result wide = run("data npy:x=wide.npy --draw 1");
  EXPECT_EQ(wide.code, 0) << wide.output;
  expect_has(wide.output, "0 0 0 0 0 0 0 0 ...]");
}

TEST_F(OwnData, NeedsNoLabelToPredict) {
  write_plain(dir_.file("new.csv"), "b,a\n5,1\n6,2\n");
  const Result result = run("predict line.fir --data 'csv:new.csv?columns=a,b'");
  EXPECT_EQ(result.code, 0) << result.output;
  expect_has(result.output, "output 'loss' is left out");
  expect_has(result.output, "\n0  line 0\n1  line 0\n");
  const std::string refused =
      expect_late_error("train line.fir --data 'csv:rows.csv?columns=a,b'", "feed 'y' is missing");
  expect_has(refused, "no column is fed to 'y'; write csv:FILE?label=COLUMN\n");
}

TEST_F(OwnData, AColumnOfAnotherNameIsOfferedToTheFeedThatIsLeft) {
  std::string program = read_file(dir_.file("line.fir"));
  program.replace(program.find("\"y\""), 3, "\"t\"");
  write_plain(dir_.file("target.fir"), program);
  const std::string data = "csv:rows.csv?label=target&drop=id";
  const std::string refused =
      expect_late_error("train target.fir --data '" + data + "'", "feed 't' is missing");
  expect_has(refused, "column 'y' is not used, no feed has its name; add y=t to the data");
  EXPECT_EQ(refused.find("no column is fed"), std::string::npos) << refused;
  EXPECT_EQ(run("train target.fir --data '" + data + "&y=t'").code, 0);
}

TEST_F(OwnData, MissingValuesAreNamed) {
  write_plain(dir_.file("gap.csv"), "a,b,y\n1,2,3\n1,NA,3\n");
  expect_error("train line.fir --data csv:gap.csv?label=y",
               "gap.csv:3: column 'b' has no value ('NA'): fill it in, or leave the row");
}

TEST_F(OwnData, DoublesAreRoundedWithOneNote) {
  const std::vector<double> xs = {0.1, 2, 3, 4, 5, 6, 7, 8}, ys = {1, 2, 3, 4};
  write_npy(dir_.file("x.npy"), Tensor::of<double>({4, 2}, xs));
  write_npy(dir_.file("y.npy"), Tensor::of<double>({4, 1}, ys));
  write_npy(dir_.file("x32.npy"), Tensor::of<double>({4, 2}, xs).cast(f32));
  write_npy(dir_.file("y32.npy"), Tensor::of<double>({4, 1}, ys).cast(f32));
  const std::string note = "is given as f64 and rounded to f32";
  const auto trained = [&](const std::string& data, const std::string& flags, size_t notes) {
    const Result result = run("train line.fir --batch 3 --epochs 2 --save w --data npy:" + data +
                              " --val npy:" + data + flags);
    EXPECT_EQ(result.code, 0) << result.output;
    size_t found = 0;
    for (size_t at = 0; (at = result.output.find(note, at)) != std::string::npos; ++at) ++found;
    EXPECT_EQ(found, notes) << result.output;
    return read_file(dir_.file("w"));
  };
  EXPECT_EQ(trained("x=x.npy,y=y.npy", "", 1), trained("x=x32.npy,y=y32.npy", "", 0));
  EXPECT_NE(trained("x=x.npy,y=y.npy", " --dtype f64", 0),
            trained("x=x32.npy,y=y32.npy", " --dtype f64", 0))
      << "0.1 is not rounded";
}

TEST_F(OwnData, DropoutOfEverythingGivesZeros) {
  write_plain(dir_.file("drop.fir"), R"(program @drop {
  %x = data "x" : f32[?, 2]
  %w = param "w" {init = "constant", value = 2.0} : f32[2, 1]
  %rng = state "rng" : i64[3]
  %p = matmul(%x, %w) : f32[?, 1]
  %d = dropout(%p, %rng) {p = 1.0} : f32[?, 1]
  %loss = mean(%d) : f32[]
  train(%loss) {optimizer = "sgd", lr = 0.5}
  output "loss" = %loss
}
)");
  const std::string data = " --data synthetic-linear?n=20";
  const Result result = run("train drop.fir --save w.safetensors" + data);
  ASSERT_EQ(result.code, 0) << result.output;
  expect_has(result.output, "  0.0000  ");
  write_plain(dir_.file("same.fir"), R"(program @same {
  %w = param "w" : f32[2, 1]
  output "w" = %w
}
)");
  EXPECT_EQ(run("run same.fir --params w.safetensors").output, "w f32[2, 1] 2 2\n");
}

}  // namespace
}  // namespace fluid::data_test
