// Tests the command line: exit codes, messages of one line, no partial files.

#include "tests/support/fluidrun_test.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <regex>

#include "frontend/files/npy.h"
#include "frontend/files/safetensors.h"
#include "ir/atomic_file.h"
#include "tests/support/training_log.h"

namespace fluid::fluidrun_test {
namespace {

using Fluidrun = FluidrunTest;

TEST_F(Fluidrun, TrainsSavesEvaluatesAndPredicts) {
  const std::string data = " --data 'synthetic-linear?n=1000'";
  Result result = run("train line.fir" + data +
                      " --epochs 50 --save w.safetensors --log-json log.json --seed 1");
  ASSERT_EQ(result.code, 0) << result.output;
  EXPECT_NE(result.output.find("\n50/50  "), std::string::npos) << result.output;
  const std::string log = read_file(dir_.file("log.json"));
  EXPECT_EQ(logged(dir_.file("log.json")).size(), 50u);
  EXPECT_TRUE(log.starts_with("{\"epoch\":1,\"step\":1,\"loss\":")) << log.substr(0, 80);

  result = run("eval line.fir --params w.safetensors" + data);
  ASSERT_EQ(result.code, 0) << result.output;
  EXPECT_TRUE(result.output.starts_with("memory: ")) << "as train says it\n" << result.output;
  const size_t figures = std::min(result.output.find("\nloss "), result.output.size());
  double loss = 0;
  ASSERT_EQ(std::sscanf(result.output.c_str() + figures, "\nloss %lf", &loss), 1) << result.output;
  EXPECT_NEAR(loss, 104, 8) << "noise 4 and the square of the offset 10, which the line lacks";

  result = run("predict line.fir --params w.safetensors" + data + " --output line=@p.npy");
  ASSERT_EQ(result.code, 0) << result.output;
  EXPECT_EQ(std::filesystem::file_size(dir_.file("p.npy")), 128u + 4000u);
}

TEST_F(Fluidrun, TellsWhichColumnsAndOutputsAreLeftOut) {
  std::ofstream(dir_.file("deployed.fir")) << R"(program @deployed {
  %x = data "x" : f32[?, 2]
  %w = param "w" {init = "constant", value = 1.0} : f32[2, 1]
  %p = matmul(%x, %w) : f32[?, 1]
  output "line" = %p
}
)";
  Result result = run("predict deployed.fir --data synthetic-linear?limit=2");
  EXPECT_EQ(result.code, 0) << result.output;
  EXPECT_NE(result.output.find("column 'y' is not used, no feed has its name"), std::string::npos);
  EXPECT_EQ(std::ranges::count(result.output, '\n'), 5) << result.output;

  write_npy(dir_.file("x.npy"), Tensor::of<float>({1, 2}, std::vector<float>{1, 2}));
  result = run("predict line.fir --data npy:x=x.npy");
  EXPECT_EQ(result.code, 0) << result.output;
  EXPECT_NE(result.output.find("output 'loss' is left out"), std::string::npos) << result.output;
}

TEST_F(Fluidrun, KeepsCompiledKernelsWhereTold) {
  unsetenv("FLUID_KERNEL_CACHE");
  const std::string train = "train line.fir --data synthetic-linear?n=50 --cache-dir ";
  EXPECT_NE(run(train + "own").output.find(" 0 from the cache"), std::string::npos);
  EXPECT_NE(run(train + "own").output.find(" 0 kernels compiled"), std::string::npos);
  for (const std::string where : {"line.fir", "line.fir/below", "/proc/fluid"}) {
    const Result result = run(train + where);
    EXPECT_EQ(result.code, 0) << result.output;
    const std::string note = "compiled kernels are not kept: cannot write into '" + where + "': ";
    const size_t at = result.output.find(note);
    EXPECT_NE(at, std::string::npos) << result.output;
    EXPECT_EQ(result.output.find(note, at + 1), std::string::npos) << result.output;
  }
  EXPECT_EQ(run(train + "own").output.find("not kept"), std::string::npos);
  EXPECT_EQ(run(train + "''").code, 0);
  EXPECT_NE(run(train + "''").output.find(" 0 from the cache"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(dir_.file("cache")));
}

TEST_F(Fluidrun, RunsOnGivenInputsAndCompares) {
  write_safetensors(dir_.file("w.safetensors"),
                    {{"w", Tensor::of<float>({2, 1}, std::vector<float>{2, -3})}});
  const std::string base = "run line.fir --params w.safetensors --input x=2x2xf32=1,2,3,4";
  Result result = run(base);
  EXPECT_EQ(result.code, 0) << result.output;
  EXPECT_NE(result.output.find("line f32[2, 1] -4 -6"), std::string::npos) << result.output;
  write_npy(dir_.file("good.npy"), Tensor::of<float>({2, 1}, std::vector<float>{-4, -6}));
  write_npy(dir_.file("bad.npy"), Tensor::of<float>({2, 1}, std::vector<float>{-4, -5}));
  write_npy(dir_.file("short.npy"), Tensor::of<float>({1}, std::vector<float>{-4}));
  EXPECT_EQ(run(base + " --expected line=@good.npy").code, 0);
  expect_error(base + " --expected line=@bad.npy", "output 'line' element 1 is -6, expected -5");
  expect_error(base + " --expected line=@short.npy", "output 'line' is f32[2, 1], expected f32[1]");
  expect_error(base + " --expected line=good.npy",
               "--expected line=good.npy: write NAME=@FILE.npy");
  expect_error("run line.fir --input x=0x2xf32=",
               "--input holds no sample: a batch has at least one");
  expect_error("run line.fir --input x", "--input x: write NAME=...");
  expect_error("run line.fir --input x=5", "write NAME=4xf32=1,2,3,4 or NAME=@FILE.npy");
  expect_error("run line.fir --input x=1x2xf3=1,2", "no dtype 'f3'");
  expect_error("run line.fir --input x=1x2xf32=1,a", "'a' is not a number");
  expect_error("run line.fir --input x=1x2xf32=1", "f32[1, 2] takes 2 values, not 1");
}

TEST_F(Fluidrun, TakesTheBatchFromTheFeedsThatDependOnIt) {
  std::ofstream(dir_.file("two.fir")) << R"(program @two {
  %a = data "a" : f32[?, 2]
  %b = data "b" : f32[2, 1]
  %s = data "s" : f32[]
  %y = matmul(%a, %b) : f32[?, 1]
  %z = mul(%y, %s) : f32[?, 1]
  output "z" = %z
}
)";
  const std::string a = " --input a=3x2xf32=1,2,3,4,5,6", b = " --input b=2x1xf32=1,10",
                    s = " --input s=f32=2";
  for (const std::string& inputs : {a + b + s, s + b + a}) {
    const Result result = run("run two.fir" + inputs);
    EXPECT_EQ(result.output, "z f32[3, 1] 42 86 130\n");
  }
  std::ofstream(dir_.file("one.fir")) << "program @one {\n  %s = data \"s\" : f32[]\n"
                                         "  %n = data \"n\" : f32[0]\n  %y = add(%s, %n) : f32[0]\n"
                                         "  output \"y\" = %y\n  output \"s\" = %s\n}\n";
  EXPECT_EQ(run("run one.fir --input s=f32=2 --input n=0xf32=").output, "y f32[0]\ns f32[] 2\n");
}

TEST_F(Fluidrun, KeepsIntegersExact) {
  std::ofstream(dir_.file("twice.fir")) << "program @twice {\n  %x = data \"x\" : i64[?]\n"
                                           "  %y = add(%x, %x) : i64[?]\n  output \"y\" = %y\n}\n";
  const std::string run_on = "run twice.fir --input x=1xi64=";
  EXPECT_EQ(run(run_on + "9007199254740993").output, "y i64[1] 18014398509481986\n");
  write_npy(dir_.file("near.npy"),
            Tensor::of<int64_t>({1}, std::vector<int64_t>{18014398509481987}));
  expect_error(run_on + "9007199254740993 --expected y=@near.npy",
               "output 'y' element 0 is 18014398509481986, expected 18014398509481987");
  expect_error(run_on + "1.5", "'1.5' is not an integer");
  expect_error(run_on + "1e30", "'1e30' is not an integer");
  expect_error(run_on + "9223372036854775808", "9223372036854775808 does not fit i64");
  expect_error("run twice.fir --input x=1xu8=600", "600 does not fit u8");
  expect_error("run twice.fir --input x=1xbool=2", "2 does not fit bool");
  expect_error("run twice.fir --input x=1xf32=1e39", "1e39 does not fit f32");
}

TEST_F(Fluidrun, TimesSteps) {
  const Result result = run("bench line.fir --data 'synthetic-linear?n=1000' --steps 3 --repeat 3");
  EXPECT_EQ(result.code, 0) << result.output;
  EXPECT_NE(result.output.find("ms/step (median of 3 x 3 steps"), std::string::npos);
}

TEST_F(Fluidrun, StopsAfterMaxSteps) {
  const Result result =
      run("train line.fir --data 'synthetic-linear?n=1000' --batch 10 --epochs 5 --max-steps 120 "
          "--log-json log.json");
  ASSERT_EQ(result.code, 0) << result.output;
  EXPECT_EQ(logged(dir_.file("log.json")).size(), 120u);
}

TEST_F(Fluidrun, SaysTheLossScaleAndWhatWasSkipped) {
  std::ofstream csv(dir_.file("data.csv"));
  csv << "a,b,y\n";
  for (int row = 0; row < 40; ++row) csv << (row == 5 ? "3e38,1,1\n" : "1,2,3\n");
  csv.close();
  const Result result = run(
      "train line.fir --data 'csv:data.csv?label=y&shuffle=0' --batch 4 --amp o1 --amp-dtype f16 "
      "--log-json log.json");
  ASSERT_EQ(result.code, 0) << result.output;
  EXPECT_NE(result.output.find("loss scale 32768; 1 of 10 steps skipped"), std::string::npos)
      << result.output;
  const std::string log = read_file(dir_.file("log.json"));
  EXPECT_NE(log.find("\"loss_scale\":65536.0,\"skipped\":false"), std::string::npos) << log;
  EXPECT_NE(log.find("\"loss_scale\":32768.0,\"skipped\":true"), std::string::npos) << log;
}

TEST_F(Fluidrun, StopsWhereBackingOffDoesNotHelp) {
  std::ofstream csv(dir_.file("data.csv"));
  csv << "a,b,y\n";
  for (int row = 0; row < 40; ++row) csv << "3e38,1,1\n";
  csv.close();
  expect_late_error(
      "train line.fir --data 'csv:data.csv?label=y' --batch 1 --amp o1 --amp-dtype f16 "
      "--save w.safetensors",
      "gradients overflow with a loss scale of 1 at step 17: training diverged");
}

TEST_F(Fluidrun, TheLossScaleFollowsItsOptions) {
  std::ofstream csv(dir_.file("data.csv"));
  csv << "a,b,y\n";
  for (int row = 0; row < 10; ++row) csv << (row == 5 ? "3e38,1,1\n" : "1,2,3\n");
  csv.close();
  const auto scales = [&](const std::string& options) {
    const Result result =
        run("train line.fir --data 'csv:data.csv?label=y&shuffle=0' --batch 1 --amp o1 --amp-dtype "
            "f16 --log-json log.json --loss-scale" +
            options);
    EXPECT_EQ(result.code, 0) << result.output;
    const std::string log = read_file(dir_.file("log.json")), name = "\"loss_scale\":";
    std::string found;
    for (size_t at = log.find(name); at != std::string::npos; at = log.find(name, at + 1)) {
      const size_t begin = at + name.size();
      found += log.substr(begin, log.find(',', begin) - begin) + " ";
    }
    return found;
  };
  EXPECT_EQ(scales("-init 64 --loss-scale-growth 4 --loss-scale-interval 2"),
            "64.0 256.0 256.0 1024.0 1024.0 512.0 512.0 2048.0 2048.0 8192.0 ");
  EXPECT_EQ(scales("-init 64 --loss-scale-interval 1 --loss-scale-ceiling 300"),
            "128.0 256.0 300.0 300.0 300.0 150.0 300.0 300.0 300.0 300.0 ");
  EXPECT_EQ(scales("-init 64 --loss-scale-backoff 0.25 --loss-scale-floor 32"),
            "64.0 64.0 64.0 64.0 64.0 32.0 32.0 32.0 32.0 32.0 ");
  EXPECT_EQ(scales(" 8"), "8.0 8.0 8.0 8.0 8.0 8.0 8.0 8.0 8.0 8.0 ");
  EXPECT_EQ(scales(" dynamic --loss-scale-init 64"),
            "64.0 64.0 64.0 64.0 64.0 32.0 32.0 32.0 32.0 32.0 ");
}

TEST_F(Fluidrun, ALossScaleThatStaysEndsInTheEnd) {
  std::ofstream csv(dir_.file("data.csv"));
  csv << "a,b,y\n3e38,1,1\n";
  csv.close();
  const std::string train =
      "train line.fir --data 'csv:data.csv?label=y' --amp o1 --amp-dtype f16 --epochs 200 "
      "--save w.safetensors --loss-scale";
  expect_late_error(
      train + " 0.5",
      "gradients have overflowed in the 100 steps up to step 100, with a loss scale that "
      "stays at 0.5, and nothing is saved; try a smaller loss scale");
  expect_late_error(train + "-backoff 1", "a loss scale that stays at 65536, and");
  expect_late_error(train + "-floor 0.1 --loss-scale-init 0.3",
                    "gradients overflow with a loss scale of 0.1 at step 3: training diverged");
}

TEST_F(Fluidrun, RunsEverySubcommandInMixedPrecision) {
  const std::string amp = " --amp o1 --amp-dtype bf16";
  for (const std::string command :
       {"eval line.fir --data 'synthetic-linear?n=10'",
        "predict line.fir --data 'synthetic-linear?n=10'", "plan line.fir --batch 4",
        "opt line.fir --pipeline train", "bench line.fir --data 'synthetic-linear?n=10' --steps 2",
        "train line.fir --data 'synthetic-linear?n=10' --verify-plan"}) {
    const Result result = run(command + amp);
    EXPECT_EQ(result.code, 0) << command << ": " << result.output;
  }
}

TEST_F(Fluidrun, FollowsASchedule) {
  std::ofstream(dir_.file("scheduled.fir")) << R"(program @scheduled {
  %x = data "x" : f32[?, 2]
  %y = data "y" : f32[?, 1]
  %w = param "w" {init = "constant", value = 0.0} : f32[2, 1]
  %p = matmul(%x, %w) : f32[?, 1]
  %e = mse_loss(%p, %y) : f32[?, 1]
  %loss = mean(%e) : f32[]
  train(%loss) {optimizer = "sgd", lr = 0.5, schedule = "step", schedule_every = 2, schedule_factor = 0.5}
  output "loss" = %loss
})";
  const Result result = run(
      "train scheduled.fir --data 'synthetic-linear?n=50' --batch 10 --lr 0.001 --log-json log");
  ASSERT_EQ(result.code, 0) << result.output;
  const std::string log = read_file(dir_.file("log"));
  size_t at = 0;
  for (const std::string lr : {"0.001", "0.001", "0.0005", "0.0005", "0.00025"}) {
    at = log.find("\"lr\":" + lr + ",", at);
    ASSERT_NE(at, std::string::npos) << lr << " in " << log;
    ++at;
  }
  std::ofstream(dir_.file("unknown.fir")) << R"(program @unknown {
  %w = param "w" : f32[]
  train(%w) {optimizer = "sgd", lr = 0.5, schedule = "cosin", schedule_steps = 2}
  output "w" = %w
})";
  expect_error("verify unknown.fir", "unknown schedule 'cosin' (did you mean 'cosine'?)");
}

/// `bare.fir` minimizes nothing.
TEST_F(Fluidrun, TrainsWithAnOptimizerByName) {
  std::ofstream(dir_.file("bare.fir")) << R"(program @bare {
  %x = data "x" : f32[?, 2]
  %y = data "y" : f32[?, 1]
  %w = param "w" {init = "constant", value = 0.0} : f32[2, 1]
  %p = matmul(%x, %w) : f32[?, 1]
  %e = mse_loss(%p, %y) : f32[?, 1]
  %loss = mean(%e) : f32[]
  output "loss" = %loss
  output "error" = %loss
})";
  const std::string data =
      " --data 'synthetic-linear?n=50' --batch 10 --max-steps 3 --log-json log";
  const auto first_lr = [&](const std::string& arguments) {
    const Result result = run("train " + arguments + data);
    EXPECT_EQ(result.code, 0) << result.output;
    const std::string log = read_file(dir_.file("log"));
    const size_t at = log.find("\"lr\":") + 5;
    return log.substr(at, log.find(',', at) - at);
  };
  EXPECT_EQ(first_lr("line.fir --optimizer adamw"), "0.001");
  EXPECT_EQ(first_lr("line.fir --optimizer adamw --lr 0.01 --weight-decay 0.1 --amsgrad"), "0.01");
  EXPECT_EQ(first_lr("line.fir --weight-decay 0.1"), first_lr("line.fir"));
  EXPECT_EQ(first_lr("bare.fir --optimizer rmsprop --centered --momentum 0.9"), "0.01");
  EXPECT_EQ(first_lr("bare.fir --optimizer lamb --minimize error"), "0.001");
  EXPECT_EQ(first_lr("line.fir --optimizer muon --no-nesterov --ns-steps 3 --adjust-lr original"),
            "0.001");
  EXPECT_EQ(first_lr("line.fir --optimizer adafactor --swa 2 --swa-every 2 --lookahead 2"), "0.01");
  std::ofstream(dir_.file("run.toml")) << "optimizer = \"adam\"\nbeta1 = 0.5\namsgrad = true\n";
  EXPECT_EQ(first_lr("line.fir --config run.toml"), "0.001");
}

/// Five steps: 50 samples in batches of 10.
TEST_F(Fluidrun, TrainsWithAScheduleByName) {
  const auto rates = [&](const std::string& flags, const std::string& lr = "--lr 0.8 ") {
    const Result result = run(
        "train line.fir --data 'synthetic-linear?n=50' --batch 10 --log-json log " + lr + flags);
    EXPECT_EQ(result.code, 0) << result.output;
    const std::string log = read_file(dir_.file("log"));
    std::ostringstream all;  // six digits
    for (size_t at = log.find("\"lr\":"); at != std::string::npos; at = log.find("\"lr\":", at)) {
      at += 5;
      all << std::stod(log.substr(at)) << " ";
    }
    return all.str();
  };
  EXPECT_EQ(rates("--warmup 2"), "0.4 0.8 0.8 0.8 0.8 ");
  EXPECT_EQ(rates("--warmup 2 --warmup-start 0.5 --constant-warmup"), "0.4 0.4 0.8 0.8 0.8 ");
  EXPECT_EQ(rates("--schedule step --schedule-every 2 --schedule-factor 0.5"),
            "0.8 0.8 0.4 0.4 0.2 ");
  EXPECT_EQ(
      rates("--schedule piecewise --schedule-boundaries 1,3 --schedule-values 0.5,0.25,2", ""),
      "0.5 0.25 0.25 2 2 ");
  EXPECT_EQ(rates("--schedule linear --schedule-end 0.4 --max-steps 4"), "0.8 0.7 0.6 0.5 ")
      << "ends with the training";
  EXPECT_EQ(rates("--schedule linear --warmup 1 --epochs 1"), "0.8 0.8 0.6 0.4 0.2 ");
}

TEST_F(Fluidrun, ReadsOptionsFromAFile) {
  for (const std::string text :
       {"[train]\nbatch = 100\nmax-steps = 7\n", "batch = 100\nmax-steps = 7\n",
        "batch = 100\n[eval]\nbatch = 1\n[train]\nmax-steps = 7\n"}) {
    std::ofstream(dir_.file("run.toml")) << text;
    const Result result = run(
        "train line.fir --data 'synthetic-linear?n=1000' --config run.toml --log-json log.json");
    ASSERT_EQ(result.code, 0) << result.output;
    EXPECT_EQ(logged(dir_.file("log.json")).size(), 7u) << text;
  }
}

constexpr std::string_view kSkip = R"(program @skip {
  %x = data "x" : f32[?, 3, 32, 32]
  %r = relu(%x) : f32[?, 3, 32, 32]
  %e = exp(%r) : f32[?, 3, 32, 32]
  %s = add(%e, %r) : f32[?, 3, 32, 32]
  %m, %p = adaptive_max_pool2d(%s) {output = [16]} : f32[?, 3, 16, 16], u8[?, 3, 16, 16]
  output "m" = %m
}
)";

/// A box encloses its lines of text. An arrow past other boxes stays to their right.
TEST_F(Fluidrun, DrawsNothingAcrossBoxes) {
  std::ofstream(dir_.file("skip.fir")) << kSkip;
  const std::string svg = run("show skip.fir --format svg").output;
  const std::regex piece(
      "<rect x='(\\d+)' y='\\d+' width='(\\d+)'|<text x='\\d+' y='\\d+'>([^<]+)|"
      " d='M\\d+ \\d+ C\\d+ \\d+ \\d+ \\d+ (\\d+) \\d+ V");
  int lane = 0, lines = 0, x = 0, width = 0;
  for (std::sregex_iterator it(svg.begin(), svg.end(), piece), end; it != end; ++it) {
    const std::smatch& found = *it;
    if (found[1].matched) {
      x = std::stoi(found[1]), width = std::stoi(found[2]);
      EXPECT_GT(lane, x + width);
    } else if (found[3].matched) {
      EXPECT_LT(6.6 * static_cast<double>(found[3].length()), width - 8) << found[3];
      ++lines;
    } else {
      lane = std::stoi(found[4]);
    }
  }
  EXPECT_EQ(lines, 5) << svg;
}

TEST_F(Fluidrun, PrintsTheStartupGraph) {
  for (const std::string passes : {"--pipeline init", "--pass infer_types,make_startup"}) {
    const Result result = run("opt line.fir " + passes);
    EXPECT_EQ(result.code, 0) << result.output;
    EXPECT_NE(result.output.find("fill {type = f32[2, 1], value = 0.0}"), std::string::npos);
    EXPECT_NE(result.output.find("store \"w\""), std::string::npos) << result.output;
    EXPECT_EQ(result.output.find("matmul"), std::string::npos) << result.output;
  }
}

TEST_F(Fluidrun, ShowsAttributesAsJsonValues) {
  std::ofstream(dir_.file("attrs.fir")) << R"(program @attrs {
  %x = data "x" {scale = 0.5} : f32[?, 1, 4, 4]
  %y, %at = max_pool2d(%x) {kernel = [2], stride = [2]} : f32[?, 1, 2, 2], u8[?, 1, 2, 2]
  %z = sum(%y) {keep_dims = true} : f32[1, 1, 1, 1]
  output "z" = %z
}
)";
  Result result = run("show attrs.fir --format json");
  result.output.erase(std::remove_if(result.output.begin(), result.output.end(), ::isspace),
                      result.output.end());
  for (const char* attr : {"\"scale\":0.5", "\"stride\":[2]", "\"keep_dims\":true"}) {
    EXPECT_NE(result.output.find(attr), std::string::npos) << attr << " in " << result.output;
  }
}

TEST_F(Fluidrun, ConvertsPrograms) {
  for (const char* step : {"line.fir -o a.fir", "a.fir -o a.fluid", "a.fluid -o b.fir",
                           "b.fir -o b.fluid", "b.fluid -o c.fluid"}) {
    const Result converted = run(std::string("opt ") + step);
    EXPECT_EQ(converted.code, 0) << step << ": " << converted.output;
    EXPECT_EQ(converted.output, "") << step;
  }
  const auto read = [&](const char* name) { return read_file(dir_.file(name)); };
  EXPECT_TRUE(read("a.fir").starts_with("program @line {")) << read("a.fir");
  EXPECT_EQ(read("a.fir"), run("show line.fir").output);
  EXPECT_EQ(read("a.fir"), read("b.fir"));
  EXPECT_EQ(read("a.fluid"), read("b.fluid"));
  EXPECT_EQ(read("a.fluid"), read("c.fluid"));
  EXPECT_NE(read("a.fir"), read("a.fluid"));
  expect_error("opt a.fluid -o a.onnx",
               "-o a.onnx: a program is written as .fir or .fluid, not as .onnx");
}

TEST_F(Fluidrun, LooksAtPrograms) {
  EXPECT_EQ(run("verify line.fir").output, "line.fir: good (8 ops in 1 graphs)\n");
  EXPECT_EQ(run("show line.fir").code, 0);
  for (const std::string format : {"json", "dot", "svg"}) {
    const Result result = run("show line.fir --format " + format);
    EXPECT_EQ(result.code, 0) << result.output;
    EXPECT_NE(result.output.find("matmul"), std::string::npos) << result.output;
  }
  const Result summary = run("summary line.fir --batch 10");
  EXPECT_EQ(summary.code, 0) << summary.output;
  EXPECT_NE(summary.output.find("total"), std::string::npos) << summary.output;
  const std::string plan = run("plan line.fir --batch 10 --kernels").output;
  EXPECT_NE(plan.find("arena"), std::string::npos);
  EXPECT_NE(plan.find("kernels: 0 of libraries"), std::string::npos) << plan;
  EXPECT_NE(plan.find("  generated: matmul x2, sub, square"), std::string::npos) << plan;
  EXPECT_NE(run("devices").output.find("cpu"), std::string::npos);
  EXPECT_EQ(run("devices --json > t.json").code, 0);
  EXPECT_EQ(run("plan line.fir --target t.json").output, run("plan line.fir").output);
  EXPECT_NE(run("plan line.fir --pipeline eval").output.find("(eval)"), std::string::npos);
  EXPECT_NE(run("opt --list").output.find("append_backward"), std::string::npos);
  EXPECT_EQ(run("opt line.fir --pipeline eval -o out.fir").code, 0);
  EXPECT_TRUE(std::filesystem::exists(dir_.file("out.fir")));
}

/// Returns the size after "arena" in the output of a command, such as "5.33 MiB".
std::string arena_of(const std::string& said) {
  const size_t at = said.find_first_not_of(' ', said.find("arena") + 5);
  return said.substr(at, said.find('B', at) + 1 - at);
}

TEST_F(Fluidrun, PlansTheMemoryOfMicroBatchesAsTheyTakeIt) {
  const std::string slices = " --batch 64 --micro-batches 3";
  const Result trained = run("train line.fir --data synthetic-linear?limit=64" + slices);
  ASSERT_EQ(trained.code, 0) << trained.output;
  const std::string planned = arena_of(run("plan line.fir" + slices).output);
  EXPECT_EQ(arena_of(trained.output), planned);
  EXPECT_NE(arena_of(run("plan line.fir --batch 64").output), planned);
}

TEST_F(Fluidrun, PlansWhatProcessesSendAndHowTheyScale) {
  const Result sent = run("plan line.fir --world 4 --batch 8");
  EXPECT_EQ(sent.code, 0) << sent.output;
  // The gradient of w, then the loss in f64: its sum is a share of the whole batch's mean.
  EXPECT_NE(sent.output.find("4 processes with 8 samples each reduce 16 B a step, in 2 messages"),
            std::string::npos)
      << sent.output;
  EXPECT_EQ(sent.output.find("measured"), std::string::npos) << sent.output;
  EXPECT_NE(run("plan line.fir --world 4 --reduce-dtype bf16").output.find("reduce 12 B a step"),
            std::string::npos);

  const Result timed = run("plan line.fir --world 4 --batch 8 --bandwidth 1e-6 --latency 1e5");
  EXPECT_EQ(timed.code, 0) << timed.output;
  // 6 messages of 100 ms and of a quarter of 8 bytes, at 1 byte a ms; and that twice.
  EXPECT_NE(timed.output.find("  communication 1224.000 ms"), std::string::npos) << timed.output;
  EXPECT_NE(timed.output.find("efficiency 0.0 %"), std::string::npos) << timed.output;
  EXPECT_NE(timed.output.find("  32 samples in one process: about "), std::string::npos);
  EXPECT_NE(timed.output.find("by its steps of 8 and 16: strong scaling 0.00 of 4"),
            std::string::npos)
      << timed.output;
  const Result alone = run("plan line.fir --world 1 --bandwidth 1");
  EXPECT_EQ(alone.code, 0) << alone.output;
  EXPECT_NE(alone.output.find("communication 0.000 ms, 100.0 % of it"), std::string::npos)
      << alone.output;
}

TEST_F(Fluidrun, PlansTheMessagesOfSharedStatistics) {
  std::ofstream(dir_.file("norm.fir")) << R"(program @norm {
  %x = data "x" : f32[?, 2]
  %gamma = param "gamma" {init = "ones"} : f32[2]
  %beta = param "beta" {init = "zeros"} : f32[2]
  %mean = state "mean" : f32[2]
  %var = state "var" : f32[2]
  %w = param "w" {init = "ones"} : f32[2]
  %h = mul(%x, %w) : f32[?, 2]
  %y, %m, %v = batch_norm(%h, %gamma, %beta, %mean, %var) {eps = 1e-05} : f32[?, 2], f32[2], f32[2]
  %q = square(%y) : f32[?, 2]
  %loss = mean(%q) : f32[]
  train(%loss) {optimizer = "sgd", lr = 0.1}
  output "loss" = %loss
}
)";
  const std::string plan = "plan norm.fir --world 2 --batch 8";
  EXPECT_EQ(run(plan).output.find("statistics"), std::string::npos);
  const Result shared = run(plan + " --sync-bn");
  EXPECT_EQ(shared.code, 0) << shared.output;
  // The count in f64; two sums of two channels, and their gradients. Then three gradients, the
  // loss.
  EXPECT_NE(shared.output.find("reduce 72 B a step, in 7 messages\n  of these 5, 40 B in all, are "
                               "statistics, which kernels wait for\n"),
            std::string::npos)
      << shared.output;
  const Result timed = run(plan + " --sync-bn --bandwidth 1e-6 --latency 0");
  EXPECT_NE(timed.output.find("which kernels wait for: 40.000 ms\n"), std::string::npos)
      << timed.output;
  expect_error(plan + " --sync-bn --micro-batches 2", "sync_bn does not support micro-batches");
}

}  // namespace
}  // namespace fluid::fluidrun_test
