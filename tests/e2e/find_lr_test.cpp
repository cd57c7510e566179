// `fluidrun train --find-lr`: what it prints and writes.

#include <gtest/gtest.h>

#include <filesystem>

#include "frontend/files/gz.h"
#include "tests/support/file_bytes.h"
#include "tests/support/fluidrun_test.h"

namespace fluid::testing {
namespace {

class FindLr : public FluidrunTest {
 protected:
  const std::string train_ = "train line.fir --data 'synthetic-linear?n=100' --batch 20 ";
};

TEST_F(FindLr, SuggestsARateAndDrawsTheCurve) {
  const std::set<std::string> before = files();
  const Result result = run(train_ + "--find-lr=rates.svg");
  EXPECT_EQ(result.code, 0) << result.output;
  EXPECT_NE(result.output.find("suggested learning rate: "), std::string::npos) << result.output;
  const std::string svg = read_gz_or_plain(dir_.file("rates.svg"));
  EXPECT_EQ(svg.find("<svg xmlns='http://www.w3.org/2000/svg'"), 0u);
  for (const char* part : {"<polyline", "learning rate</text>", ">1e-6<", "</svg>\n"}) {
    EXPECT_NE(svg.find(part), std::string::npos) << part;
  }
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  EXPECT_EQ(files().size(), before.size() + 1);
}

TEST_F(FindLr, ListsTheCurve) {
  const Result result = run(train_ + "--find-lr=rates.csv --max-steps 20");
  EXPECT_EQ(result.code, 0) << result.output;
  const std::string csv = read_gz_or_plain(dir_.file("rates.csv"));
  EXPECT_EQ(csv.find("learning_rate,loss,smoothed_loss\n1e-07,"), 0u) << csv;
}

TEST_F(FindLr, MistakesAreNamed) {
  expect_error(train_ + "--find-lr --save w.safetensors", "--save");
  expect_error(train_ + "--find-lr=nowhere/rates.svg", "cannot write 'nowhere/rates.svg'");
  expect_error(train_ + "--find-lr=rates.png",
               "cannot write 'rates.png': the curve is written as .svg or .csv, not as .png");
  write_plain(dir_.file("large.csv"), "a,b,y\n1e30,1e30,0\n");
  write_plain(
      dir_.file("steep.fir"),
      std::string(kLine).replace(std::string(kLine).find("value = 0.0"), 11, "value = 9.0"));
  expect_late_error("train steep.fir --data 'csv:large.csv?label=y' --find-lr",
                    "--find-lr: the loss of the first step is not finite");
}

}  // namespace
}  // namespace fluid::testing
