// What happens where the results should go: disks that are full, paths that cannot be written.

#include <gtest/gtest.h>

#include "frontend/files/npy.h"
#include "ir/atomic_file.h"
#include "tests/support/file_bytes.h"
#include "tests/support/fluidrun_test.h"

namespace fluid {
namespace {

using Saving = FluidrunTest;

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
    refuse(writer + "no/such/file", "cannot write 'no/such/file': No such file or directory");
    refuse(writer + "line.fir/file", "cannot write 'line.fir/file': Not a directory");
    refuse(writer + ".", "cannot write '.': Is a directory");
    refuse_late(writer + "/dev/full", "cannot write '/dev/full': No space left on device");
  }
}

/// Before the data is looked for, which may take long to read; and what is there stays.
TEST_F(Saving, LooksAtItsPathsFirst) {
  const std::string train = "train line.fir --data csv:absent.csv?label=y ";
  refuse(train + "--save no/such/file", "cannot write 'no/such/file': No such file or directory");
  refuse(train + "--log-json no/such/file",
         "cannot write 'no/such/file': No such file or directory");
  write_plain(dir_.file("log"), "old");
  refuse(train + "--log-json log", "cannot read 'absent.csv'");
  EXPECT_EQ(read_file(dir_.file("log")), "old");
}

TEST_F(Saving, LeavesNothingOnAFullDisk) {
  write_npy(dir_.file("x.npy"), Tensor(f32, {2000, 2}));
  before_ = "ulimit -f 1; ";
  for (const std::string& writer : kWriters) {
    const bool small = writer.starts_with("train");  // its parameters fit; of its log see below
    if (!small) refuse(writer + "out", "cannot write 'out': File too large");
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
  refuse_late("train large.fir --data synthetic-linear?n=50 --save w.safetensors",
              "cannot write 'w.safetensors': File too large");
  EXPECT_EQ(read_file(dir_.file("w.safetensors")), "old");
}

TEST_F(Saving, LogsWholeLinesOnly) {
  before_ = "ulimit -f 1; ";
  const Result result = run(kTrain + "--log-json log");
  EXPECT_EQ(result.code, 1);
  EXPECT_NE(result.output.find("fluidrun: cannot write 'log': File too large\n"), std::string::npos)
      << result.output;
  const std::string log = read_file(dir_.file("log"));
  EXPECT_GT(log.size(), 100u);
  EXPECT_TRUE(log.ends_with("}\n")) << log;
}

TEST_F(Saving, ReportsAFullStandardOutput) {
  const std::string data = " --data synthetic-linear?n=5000";
  for (const std::string& command :
       {std::string("show line.fir"), std::string("opt --list"), std::string("devices"),
        std::string("--help"), "eval line.fir" + data, "predict line.fir" + data,
        "train line.fir --epochs 3" + data, std::string("run line.fir --input x=1x2xf32=1,2")}) {
    refuse_late(command + " 2>&1 > /dev/full",
                "cannot write to the standard output: No space left on device");
  }
}

}  // namespace
}  // namespace fluid
