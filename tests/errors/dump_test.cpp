// `train --dump`: values of a step as .npy files.

#include <gtest/gtest.h>

#include <fstream>

#include "frontend/files/npy.h"
#include "ir/atomic_file.h"
#include "tests/support/fluidrun_test.h"

namespace fluid::dump_test {
namespace {

using Dump = FluidrunTest;

TEST_F(Dump, WritesGradientsParametersAndValues) {
  const Result result =
      run("train line.fir --data 'synthetic-linear?n=20' --batch 10 --epochs 2 --dump "
          "w,w.grad,loss,s --dump-steps 3 --dump-dir values --micro-batches 2");
  ASSERT_EQ(result.code, 0) << result.output;
  const auto value = [&](int step, const std::string& name) {
    return read_npy(dir_.file("values/step-000" + std::to_string(step) + "." + name + ".npy"));
  };
  for (int step = 2; step <= 3; ++step) {  // w -= lr * gradient
    for (int64_t i = 0; i < 2; ++i) {
      const double before = value(step - 1, "w").at(i);
      EXPECT_NEAR(value(step, "w").at(i), before - 0.01 * value(step, "w.grad").at(i), 1e-5);
    }
  }
  const Tensor squares = value(1, "s");
  EXPECT_EQ(squares.shape(), (std::vector<int64_t>{10, 1}));
  double sum = 0;
  for (int64_t i = 0; i < 10; ++i) sum += squares.at(i);
  EXPECT_NEAR(value(1, "loss").item(), sum / 10, 1e-4 * sum);
  EXPECT_FALSE(std::filesystem::exists(dir_.file("values/step-0004.w.npy")));
}

/// With ZeRO-1 each rank has the sums of a shard only.
TEST_F(Dump, OfRanksHasTheGradientOfTheWholeBatch) {
  const std::string train =
      "train mnist_fluid --data 'digits?limit=20' --max-steps 1 --dump fc0.w.grad ";
  ASSERT_EQ(run(train + "--batch 10 --dump-dir alone").code, 0);
  const auto gradient = [&](const std::string& folder) {
    return read_npy(dir_.file(folder + "/step-0001.fc0.w.grad.npy"));
  };
  const Tensor expected = gradient("alone");
  for (const std::string zero : {"0", "1"}) {
    const Result result = run("launch --nproc 2 -- " + kFluidrun + " " + train +
                              "--batch 5 --dump-dir zero" + zero + " --zero " + zero);
    ASSERT_EQ(result.code, 0) << result.output;
    const Tensor whole = gradient("zero" + zero);
    ASSERT_EQ(whole.shape(), expected.shape());
    for (int64_t i = 0; i < whole.numel(); ++i) {
      ASSERT_NEAR(whole.at(i), expected.at(i), 1e-5) << i << " with --zero " << zero;
    }
  }
}

/// A checkpoint fits runs that dump other values, or none. A resumed run dumps its own first steps.
TEST_F(Dump, GoesWithCheckpoints) {
  const std::string train = "train line.fir --data 'synthetic-linear?n=70' --batch 10 ";
  const std::string dump = "--dump w.grad,w,s,e --dump-steps 2 ";
  ASSERT_EQ(run(train + "--save whole").code, 0);
  const auto trained = [&](const std::string& directory, const std::string& first,
                           const std::string& then) {
    const std::string kept = train + "--checkpoint-dir " + directory + " ";
    for (const std::string& flags : {first + "--max-steps 3", then + "--resume --save parts"}) {
      const Result result = run(kept + "--dump-dir " + directory + "_values " + flags);
      EXPECT_EQ(result.code, 0) << result.output;
    }
    EXPECT_EQ(read_file(dir_.file("parts")), read_file(dir_.file("whole"))) << directory;
    std::string steps;
    for (const std::string step : {"1", "2", "3", "4", "5", "6", "7"}) {
      const std::string begin = directory + "_values/step-000" + step + ".";
      const bool exists = std::filesystem::exists(dir_.file(begin + "w.grad.npy"));
      EXPECT_EQ(std::filesystem::exists(dir_.file(begin + "s.npy")), exists);
      if (exists) steps += step;
    }
    return steps;
  };
  const std::string other = "--dump w --dump-steps 1 ";
  EXPECT_EQ(trained("before", dump, other), "12");
  EXPECT_EQ(trained("after", other, dump), "45");
  EXPECT_EQ(trained("both", dump, dump), "1245");
}

TEST_F(Dump, WritesFeedsAndTheNamesThatAPatternSelects) {
  std::string text = kLine;
  text.replace(text.find("  %e = sub(%p"), sizeof "  %e = sub(%p" - 1,
               "  %b = param \"b\" {init = \"constant\", value = 0.0} : f32[1]\n"
               "  %q = add(%p, %b) : f32[?, 1]\n  %e = sub(%q");
  write_plain(dir_.file("biased.fir"), text);
  const std::string train =
      "train biased.fir --data 'synthetic-linear?n=20' --batch 10 --micro-batches 2 ";
  const auto dumped = [&](const std::string& names, const std::string& flags = "") {
    const Result result = run(train + flags + " --dump-dir values --dump '" + names + "'");
    EXPECT_EQ(result.code, 0) << result.output;
    std::string files;
    for (const std::string name :
         {"x", "y", "w", "w.grad", "b", "b.grad", "p", "q", "e", "s", "loss", "line"}) {
      const std::string file = dir_.file("values/step-0001." + name + ".npy");
      if (std::filesystem::remove(file)) files += name + " ";
    }
    std::filesystem::remove_all(dir_.file("values"));
    return files;
  };
  EXPECT_EQ(dumped("w*"), "w w.grad ");
  EXPECT_EQ(dumped("w*", "--freeze w"), "w ");
  expect_error(train + "--dump w.grad --freeze w", "--dump w.grad: parameter 'w' is frozen or");
  EXPECT_EQ(dumped("l*,loss,[xy]"), "x y loss line ");
  EXPECT_EQ(dumped("?"), "x y w b p q e s ");
  ASSERT_EQ(run(train + "--dump x,y,p --dump-dir values").code, 0);
  const auto value = [&](const std::string& name) {
    return read_npy(dir_.file("values/step-0001." + name + ".npy"));
  };
  EXPECT_EQ(value("x").shape(), (std::vector<int64_t>{10, 2}));
  EXPECT_EQ(value("y").shape(), (std::vector<int64_t>{10, 1}));
  EXPECT_NE(value("x").at(0), 0);
  EXPECT_EQ(value("p").at(0), 0) << "the first weights are 0";
}

TEST_F(Dump, RejectsUnknownNames) {
  const std::string train = "train line.fir --data synthetic-linear ";
  expect_error(train + "--dump v.grad", "--dump v.grad: no such value; there are 'w.grad'");
  expect_error(train + "--dump 'conv*'", "--dump conv*: the pattern matches no value");
  std::ofstream(dir_.file("scan.fir")) << R"(program @twice {
  %x = data "x" : f32[?, 2]
  %y = data "y" : f32[?, 1]
  %w = param "w" : f32[2, 1]
  %last = scan(%y) {body = @step, carries = 1, sequences = 0, steps = 2, reverse = false} : f32[?, 1]
  %p = matmul(%x, %w) : f32[?, 1]
  %d = sub(%p, %last) : f32[?, 1]
  %s = square(%d) : f32[?, 1]
  %loss = mean(%s) : f32[]
  train(%loss) {optimizer = "sgd", lr = 0.01}
  graph @step {
    %c = arg {index = 0} : f32[?, 1]
    %n = exp(%c) : f32[?, 1]
    output "0" = %n
  }
})";
  expect_error("train scan.fir --data synthetic-linear --dump n",
               "--dump n: each step of a scan computes another one; the scan can collect them");
  expect_error(train + "--dump w,,loss", "--dump : no such value");
  expect_error(train + "--dump w --dump-dir line.fir", "--dump-dir line.fir");
}

}  // namespace
}  // namespace fluid::dump_test
