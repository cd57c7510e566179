// The kind of data "pipe": a process that writes batches.

#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "frontend/files/npy.h"
#include "frontend/readers/reader.h"
#include "frontend/readers/spec.h"
#include "ir/stopwatch.h"
#include "tests/support/errors.h"
#include "tests/support/temp_dir.h"

namespace fluid::pipe_test {
namespace {

class Pipe : public ::testing::Test {
 protected:
  /// Batches of 3 and of 2 samples: x counts from 0, y is 10 times x.
  void SetUp() override {
    write_npy(dir_.file("x0"), Tensor::of<float>({3, 1}, std::vector<float>{0, 1, 2}));
    write_npy(dir_.file("y0"), Tensor::of<int64_t>({3}, std::vector<int64_t>{0, 10, 20}));
    write_npy(dir_.file("x1"), Tensor::of<float>({2, 1}, std::vector<float>{3, 4}));
    write_npy(dir_.file("y1"), Tensor::of<int64_t>({2}, std::vector<int64_t>{30, 40}));
  }
  std::string spec(const std::string& command, const std::string& options = "") const {
    return "pipe:cd " + dir_.path() + "; " + command + "?columns=x,y" + options;
  }
  void expect_error(const std::string& command, const std::string& options,
                    const std::string& message) const {
    expect_user_error([&] { open_data(spec(command, options)); }, message);
  }

  TempDir dir_;
};

TEST_F(Pipe, SamplesAreReadByIndex) {
  for (const std::string memory : {"", "&memory=0"}) {
    const SampleSourcePtr source = open_data(spec("cat x0 y0 x1 y1", memory)).source;
    ASSERT_EQ(source->samples(), 5);
    Reader reader(source, {.batch = 2, .shuffle_seed = 3});
    double sum = 0;
    for (const Batch& batch : reader) {
      for (int64_t i = 0; i < batch.size; ++i) {
        sum += batch.find("x")->at(i);
        EXPECT_EQ(batch.find("y")->at(i), 10 * batch.find("x")->at(i));
      }
    }
    EXPECT_EQ(sum, 10);
  }
  EXPECT_EQ(open_data(spec("cat x0 y0 x1 y1", "&val=0.4"), "test").source->samples(), 2);
}

TEST_F(Pipe, AnEndlessProcessIsEnded) {
  const std::string command = "echo $$ > pid; while true; do cat x0 y0; done";
  EXPECT_EQ(open_data(spec(command, "&records=7")).source->samples(), 7);
  pid_t pid = 0;
  std::ifstream(dir_.file("pid")) >> pid;
  ASSERT_GT(pid, 0);
  EXPECT_NE(kill(pid, 0), 0) << "the shell still runs";
}

TEST_F(Pipe, AStalledProcessIsEnded) {
  const Stopwatch watch;
  expect_error("cat x0; trap '' TERM; sleep 50", "&timeout=1", "wrote nothing for 1 s");
  EXPECT_LT(watch.ms(), 20'000);
}

TEST_F(Pipe, MistakesAreNamed) {
  expect_error("cat x0 y0; exit 3", "", "exited with code 3");
  expect_error("cat x0 y0; kill -9 $$", "", "was ended by signal 9");
  expect_error("cat x0; head -c 100 y0; exit 4", "", "exited with code 4");
  expect_error("cat x0; head -c 100 y0", "",
               "batch 1, column 'y': the output ends before the array does");
  expect_error("cat x0 y0 x1", "", "batch 2, column 'y': the output ends before the array does");
  expect_error("echo hello", "", "batch 1, column 'x': not an array in .npy format");
  expect_error("cat x0 y1", "", "column 'y': 2 samples, but the first column has 3");
  expect_error("cat x0 y0 y1 x1", "", "after 3 samples, column x f32[1] becomes x i64[]");
  expect_error("true", "", "holds no sample");
  expect_error("true", "&timeout=100000", "option timeout=100000 must be at most 86400 s");
  expect_user_error([] { open_data("pipe:true"); }, "name the columns: columns=x,y");
}

}  // namespace
}  // namespace fluid::pipe_test
