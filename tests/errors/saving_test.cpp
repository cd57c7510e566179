// Tests full disks and unwritable paths.

#include <gtest/gtest.h>
#include <unistd.h>

#include "frontend/files/npy.h"
#include "ir/atomic_file.h"
#include "tests/support/count_of.h"
#include "tests/support/file_bytes.h"
#include "tests/support/fluidrun_test.h"

namespace fluid::saving_test {
namespace {

using fluid::testing::count_of;

class Saving : public FluidrunTest {
 protected:
  /// Returns the contents of a file; "" if it does not exist.
  std::string bytes_in(const std::string& name) const {
    return std::filesystem::exists(dir_.file(name)) ? read_file(dir_.file(name)) : "";
  }
};

const std::string kTrain = "train line.fir --data synthetic-linear?n=2000 --batch 10 ";

/// Every way to write a file, up to its path.
const std::string kWriters[] = {kTrain + "--save ",
                                kTrain + "--log-json ",
                                "predict line.fir --data synthetic-linear?n=2000 --output line=@",
                                "run line.fir --input x=@x.npy --output line=@",
                                "opt line.fir --pipeline train -o ",
                                "show line.fir --format svg -o "};

TEST_F(Saving, NeedsAPathThatCanBeWritten) {
  write_npy(dir_.file("x.npy"), Tensor(f32, {2000, 2}));
  for (const std::string& writer : kWriters) {
    expect_error(writer + "no/such/file", "cannot write 'no/such/file': No such file or directory");
    expect_error(writer + "line.fir/file", "cannot write 'line.fir/file': Not a directory");
    expect_error(writer + ".", "cannot write '.': Is a directory");
    expect_late_error(writer + "/dev/full", "cannot write '/dev/full': No space left on device");
  }
}

/// Before the data is looked for, which may take long to read; and what is there stays.
TEST_F(Saving, LooksAtItsPathsFirst) {
  const std::string train = "train line.fir --data csv:absent.csv?label=y ";
  expect_error(train + "--save no/such/file",
               "cannot write 'no/such/file': No such file or directory");
  expect_error(train + "--log-json no/such/file",
               "cannot write 'no/such/file': No such file or directory");
  write_plain(dir_.file("log"), "old");
  expect_error(train + "--log-json log", "cannot read 'absent.csv'");
  EXPECT_EQ(read_file(dir_.file("log")), "old");
}

TEST_F(Saving, LeavesNothingOnAFullDisk) {
  write_npy(dir_.file("x.npy"), Tensor(f32, {2000, 2}));
  before_ = "ulimit -f 1; ";
  for (const std::string& writer : kWriters) {
    const bool small = writer.starts_with("train");  // its parameters fit; of its log see below
    if (!small) expect_late_error(writer + "out", "cannot write 'out': File too large");
  }
}

TEST_F(Saving, KeepsTheOldFileOnAFullDisk) {
  write_plain(dir_.file("large.fir"), R"(program @large {
  %x = data "x" : f32[?, 2]
  %w = param "w" : f32[2, 500]
  %p = matmul(%x, %w) : f32[?, 500]
  %loss = mean(%p) : f32[]
  train(%loss) {optimizer = "sgd", lr = 0.1}
  output "loss" = %loss
})");
  write_plain(dir_.file("w.safetensors"), "old");
  before_ = "ulimit -f 1; ";
  expect_late_error("train large.fir --data synthetic-linear?n=50 --save w.safetensors",
                    "cannot write 'w.safetensors': File too large");
  EXPECT_EQ(read_file(dir_.file("w.safetensors")), "old");
}

TEST_F(Saving, LogsWholeLinesOnly) {
  before_ = "ulimit -f 1; ";
  const Result result = run(kTrain + "--log-json log --save w.safetensors");
  EXPECT_EQ(result.code, 1);
  EXPECT_NE(
      result.output.find("fluidrun: --log-json: cannot write 'log': File too large (at step "),
      std::string::npos)
      << result.output;
  const std::string log = read_file(dir_.file("log"));
  EXPECT_GT(log.size(), 100u);
  EXPECT_TRUE(log.ends_with("}\n")) << log;
}

TEST_F(Saving, TrainsOnWhereTheLogCannotBeWritten) {
  const Result good = run(kTrain + "--save good.safetensors");
  ASSERT_EQ(good.code, 0) << good.output;
  const Result result = run(kTrain + "--log-json /dev/full --save w.safetensors");
  EXPECT_EQ(result.code, 1);
  EXPECT_EQ(count_of(result.output, "training continues"), 1) << result.output;
  EXPECT_NE(result.output.find("saved w.safetensors"), std::string::npos) << result.output;
  EXPECT_EQ(bytes_in("w.safetensors"), bytes_in("good.safetensors"));
}

TEST_F(Saving, TrainsOnWhereTheBestEpochCannotBeWritten) {
  const std::string train = kTrain + "--val synthetic-linear?n=10 --epochs 3 --lr 0.001 ";
  const Result good = run(train + "--save good.safetensors");
  ASSERT_EQ(good.code, 0) << good.output;
  const Result result = run(train + "--save-best /dev/full --save w.safetensors");
  EXPECT_EQ(result.code, 1);
  EXPECT_EQ(count_of(result.output, "training continues"), 1) << result.output;
  EXPECT_NE(result.output.find("3/3"), std::string::npos) << result.output;
  EXPECT_NE(result.output.find("not saved /dev/full"), std::string::npos) << result.output;
  EXPECT_NE(result.output.find(
                "fluidrun: save_best: cannot write '/dev/full': No space left on device\n"),
            std::string::npos)
      << result.output;
  EXPECT_EQ(bytes_in("w.safetensors"), bytes_in("good.safetensors"));
}

/// Whatever becomes of the messages, training ends, and nothing of them gets into its files.
TEST_F(Saving, TrainsOnWithoutStandardStreams) {
  const std::string train = kTrain + "--epochs 2 --lr 0.001 --log-json log --save w.safetensors ";
  const Result good = run(train);
  ASSERT_EQ(good.code, 0) << good.output;
  const std::string parameters = bytes_in("w.safetensors");
  for (const std::string streams : {"2> /dev/full", "2>&-", "> /dev/full", ">&-", "2>&- >&-"}) {
    SCOPED_TRACE(streams);
    std::filesystem::remove(dir_.file("w.safetensors"));
    const Result result = run(train + streams);
    EXPECT_EQ(result.code, 1) << result.output;
    EXPECT_EQ(bytes_in("w.safetensors"), parameters);
    const std::string log = bytes_in("log");
    EXPECT_EQ(std::ranges::count(log, '\n'), count_of("\n" + log, "\n{\"")) << log;
    const bool lost_notes = streams.starts_with("2>") && !streams.ends_with(">&- >&-");
    if (lost_notes) {
      EXPECT_NE(result.output.find("cannot write to the standard error"), std::string::npos)
          << result.output;
    }
  }
}

/// A pipe whose reader has gone, as `fluidrun train ... | head` leaves one.
TEST_F(Saving, TrainsOnWhenItsReaderGoes) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  close(ends[0]);
  const std::string command = "cd " + dir_.path() + " && exec " + kFluidrun + " " + kTrain +
                              "--epochs 2 --lr 0.001 --save w.safetensors";
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDOUT_FILENO);
    dup2(ends[1], STDERR_FILENO);
    execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
    _exit(127);
  }
  close(ends[1]);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 1);
  EXPECT_FALSE(bytes_in("w.safetensors").empty());
}

TEST_F(Saving, NotesThatCannotBeWrittenCostTheExitCode) {
  const Result result = run("eval line.fir --data synthetic-linear?n=10 2> /dev/full");
  EXPECT_EQ(result.code, 1) << result.output;
  EXPECT_NE(result.output.find("loss "), std::string::npos) << result.output;
}

TEST_F(Saving, ReportsAFullStandardOutput) {
  const std::string data = " --data synthetic-linear?n=5000";
  for (const std::string& command :
       {std::string("show line.fir"), std::string("opt --list"), std::string("devices"),
        std::string("--help"), "eval line.fir" + data, "predict line.fir" + data,
        "train line.fir --epochs 3" + data, std::string("run line.fir --input x=1x2xf32=1,2")}) {
    expect_late_error(command + " 2>&1 > /dev/full",
                      "cannot write to the standard output: No space left on device");
  }
}

}  // namespace
}  // namespace fluid::saving_test
