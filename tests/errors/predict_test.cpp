// Tests the output of predict, and the log of training.

#include <gtest/gtest.h>

#include "frontend/files/npy.h"
#include "frontend/files/safetensors.h"
#include "ir/atomic_file.h"
#include "tests/support/fluidrun_test.h"
#include "tests/support/training_log.h"

namespace fluid::predict_test {
namespace {

class Predictions : public FluidrunTest {
 protected:
  void SetUp() override {
    FluidrunTest::SetUp();
    write_plain(dir_.file("two.fir"), R"(program @two {
  %x = data "x" : f32[?, 2]
  %y = data "y" : f32[?, 1]
  %w = param "w" : f32[2, 1]
  %p = matmul(%x, %w) : f32[?, 1]
  %e = sub(%p, %y) : f32[?, 1]
  %t = mul(%x, %x) : f32[?, 2]
  output "line" = %p
  output "square" = %t
  output "error" = %e
}
)");
    write_safetensors(dir_.file("w"),
                      {{"w", Tensor::of<float>({2, 1}, std::vector<float>{1, 10})}});
    write_plain(dir_.file("rows.csv"), "a,b\n1,2\n3,4\n0.5,0.1\n");
  }

  const std::string predict_ = "predict two.fir --params w --batch 2 --data csv:rows.csv ";
};

TEST_F(Predictions, PrintsARowASampleWithItsIndex) {
  const std::string rows = "0  line 21  square 1 (4.0000)\n1  line 43  square 1 (16.0000)\n";
  EXPECT_EQ(run(predict_ + "2>/dev/null").output, rows + "2  line 1.5  square 0 (0.2500)\n");
  EXPECT_EQ(run(predict_ + "--draw 2 2>/dev/null").output, rows);
  const Result held = run("predict line.fir --data 'csv:rows.csv?val=0.4' 2>/dev/null");
  const Result same = run("predict line.fir --data 'csv:rows.csv?val=0.4&shuffle=1' 2>/dev/null");
  EXPECT_EQ(held.output.size(), sizeof "0  line 0") << held.output;
  EXPECT_EQ(same.output, held.output) << "in the order of the data";
}

/// `a & b` starts both at once. The weights, cast to bf16 for the products, take 2 MiB.
TEST_F(Predictions, OfProcessesThatStartAtOnceShareTheirWeights) {
  write_plain(dir_.file("wide.fir"), R"(program @wide {
  %x = data "x" : f32[?, 2]
  %v = param "v" {init = "normal"} : f32[2, 1024]
  %w = param "w" {init = "normal"} : f32[1024, 1024]
  %h = matmul(%x, %v) : f32[?, 1024]
  %p = matmul(%h, %w) : f32[?, 1024]
  output "wide" = %p
}
)");
  const std::string wide = "env -u FLUID_KERNEL_CACHE " + kFluidrun +
                           " predict wide.fir --amp o1 --data csv:rows.csv --output ";
  const std::string to = ".npy >/dev/null 2>&1";
  ASSERT_EQ(run_command(wide + "a" + to + " & " + wide + "b" + to + " & wait").code, 0);
  EXPECT_EQ(run_command("ls cache | grep -c '^w[0-9a-f]*.weights$'").output, "1\n");
  ASSERT_EQ(run_command(wide + "c" + to).code, 0);
  const std::string first = read_file(dir_.file("a.npy"));
  EXPECT_EQ(read_file(dir_.file("b.npy")), first);
  EXPECT_EQ(read_file(dir_.file("c.npy")), first);
}

TEST_F(Predictions, WritesCsvAndNpy) {
  ASSERT_EQ(run(predict_ + "--output all.csv --output line=@line.csv --output line=@line.npy").code,
            0);
  EXPECT_EQ(read_file(dir_.file("all.csv")),
            "index,line,square.0,square.1\n0,21,1,4\n1,43,9,16\n2,1.5,0.25,0.010000001\n");
  EXPECT_EQ(read_file(dir_.file("line.csv")), "index,line\n0,21\n1,43\n2,1.5\n");
  const Tensor line = read_npy(dir_.file("line.npy"));
  EXPECT_EQ(line.str(), "f32[3, 1]");
  EXPECT_EQ(line.at(2), 1.5);
  expect_late_error(predict_ + "--output all.npy",
                    "--output all.npy holds one output, and there are 'line', 'square': write "
                    "NAME=@all.npy, or a .csv");
  expect_late_error(predict_ + "--output error=@e.npy",
                    "output 'error' needs a feed that the data does not have");
  ASSERT_EQ(run("predict line.fir --params w --data csv:rows.csv --output only.npy").code, 0);
  EXPECT_EQ(read_file(dir_.file("only.npy")), read_file(dir_.file("line.npy")));
}

TEST_F(Predictions, OfRunGoByTheEnding) {
  const std::string command = "run line.fir --params w --input x=2x2xf32=1,2,3,4 --output line=@";
  ASSERT_EQ(run(command + "y.csv").code, 0);
  EXPECT_EQ(read_file(dir_.file("y.csv")), "index,line\n0,21\n1,43\n");
  ASSERT_EQ(run(command + "y.npy").code, 0);
  EXPECT_EQ(read_npy(dir_.file("y.npy")).str(), "f32[2, 1]");
}

TEST_F(Predictions, ShowGoesByTheEnding) {
  const std::pair<std::string, std::string> formats[] = {
      {"x.svg", "svg"}, {"x.json", "json"}, {"x.dot", "dot"}, {"x.fir", "text"}, {"x", "text"}};
  for (const auto& [path, format] : formats) {
    ASSERT_EQ(run("show line.fir -o " + path).code, 0) << path;
    EXPECT_EQ(read_file(dir_.file(path)), run("show line.fir --format " + format).output) << path;
  }
  ASSERT_EQ(run("show line.fir --format svg -o x.txt").code, 0) << "what is said comes first";
  EXPECT_EQ(read_file(dir_.file("x.txt")), read_file(dir_.file("x.svg")));
}

TEST_F(Predictions, TrainingLogsEpochsAndValidation) {
  const std::string data = "synthetic-linear?n=50 ";
  const Result result = run("train line.fir --batch 20 --epochs 3 --log-json log --data " + data +
                            "--val " + data + "--max-steps 8");
  ASSERT_EQ(result.code, 0) << result.output;
  const std::string log = dir_.file("log");
  EXPECT_EQ(logged(log).size(), 8u);
  const auto epochs = logged(log, "epoch"), validations = logged(log, "validation");
  ASSERT_EQ(epochs.size(), 3u);
  ASSERT_EQ(validations.size(), 3u);
  double sum = 0;
  const auto steps = logged(log);
  for (int i = 0; i < 3; ++i) sum += (i < 2 ? 20 : 10) * steps[i]["loss"].get<double>();
  EXPECT_NEAR(epochs[0]["loss"].get<double>(), sum / 50, 1e-6 * sum);
  for (int i = 0; i < 3; ++i) {
    for (const auto& line : {epochs[i], validations[i]}) {
      EXPECT_EQ(line["epoch"], i + 1) << line;
      EXPECT_EQ(line["steps"], i < 2 ? 3 * (i + 1) : 8) << line;
      EXPECT_GT(line["loss"].get<double>(), 0) << line;
    }
    EXPECT_EQ(epochs[i]["complete"], i < 2);
    EXPECT_EQ(epochs[i]["best"], i < 2) << "the loss falls";
    EXPECT_GT(epochs[i]["seconds"].get<double>(), 0);
  }
  EXPECT_NE(result.output.find("best"), std::string::npos);
}

TEST_F(Predictions, HelpSaysTheExitCodes) {
  const std::string help = run("--help").output;
  for (const std::string part :
       {"Exit codes:", "0: ", "1: the user", "2: a bug", "3: a device", "130 after", "143 after"}) {
    EXPECT_NE(help.find(part), std::string::npos) << help;
  }
}

}  // namespace
}  // namespace fluid::predict_test
