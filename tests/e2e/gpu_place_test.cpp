// fluidrun on a GPU that a library of ours stands in for: the same commands, the same results.

#include <map>
#include <regex>
#include <set>
#include <tuple>

#include "frontend/optimizers.h"
#include "ir/atomic_file.h"
#include "tests/support/gpu_programs_test.h"
#include "tests/support/trace_check.h"
#include "tests/support/training.h"

namespace fluid::gpu_place_test {
namespace {

class GpuPrograms : public GpuProgramsTest {};

TEST_F(GpuPrograms, TrainAsOnTheCpu) {
  const std::string flags = "--epochs 3 --dtype f64 --batch 16 --val synthetic-linear?limit=37 ";
  succeed(train(flags + "--place cpu --log-json cpu.json --save cpu.safetensors"));
  for (const std::string pace : {"early", "late", "random"}) {
    before_ += "export FLUID_STAND_IN_PACE=" + pace + "; ";
    const std::string log = pace + ".json";
    succeed(train(flags + "--place cuda:0 --save gpu.safetensors --log-json " + log));
    EXPECT_EQ(losses(log).size(), 21U);
    expect_losses(log, "cpu.json");
  }
  const std::string data = " --data synthetic-linear?limit=21 --batch 8 --dtype f64 --params ";
  const auto figures = [&](const std::string& command) {  // without what memory they take
    return std::regex_replace(succeed(command), std::regex("memory[^\n]*\n"), "");
  };
  for (const std::string command : {"eval", "predict"}) {
    const std::string expected =
        figures(command + " line.fir --place cpu" + data + "cpu.safetensors");
    EXPECT_EQ(figures(command + " line.fir --place auto" + data + "gpu.safetensors"), expected);
  }
}

/// With 7 steps per epoch, each step but the first starts before the previous one is complete, in
/// training and in validation. The log contains all steps in order.
TEST_F(GpuPrograms, BeginAStepWhileTheOneBeforeRuns) {
  before_ += "export FLUID_STAND_IN_PACE=late FLUID_STAND_IN_OVERLAPS=overlaps; ";
  const auto overlaps = [&] {
    int count = 0;
    std::ifstream(dir_.file("overlaps")) >> count;
    return count;
  };
  const std::string flags = "--epochs 3 --batch 16 --place cuda:0 ";
  succeed(train(flags + "--log-json log.json --save line.safetensors"));
  EXPECT_EQ(overlaps(), 3 * 6);
  EXPECT_EQ(losses("log.json").size(), 21U);
  succeed(train(flags + "--check-finite"));
  EXPECT_EQ(overlaps(), 0);
  succeed(
      "eval line.fir --data synthetic-linear?limit=103 --batch 16 --params line.safetensors "
      "--place cuda:0");
  EXPECT_EQ(overlaps(), 6);
}

/// A data error is reported one step later, with the message of the CPU.
TEST_F(GpuPrograms, RejectTheSameDataAsTheCpu) {
  std::ofstream(dir_.file("classes.fir")) << R"(program @classes {
  %x = data "x" : f32[?, 1]
  %y = data "y" : i64[?]
  %w = param "w" {init = "xavier_uniform"} : f32[1, 3]
  %logits = matmul(%x, %w) : f32[?, 3]
  %each = softmax_cross_entropy(%logits, %y) : f32[?]
  %loss = mean(%each) : f32[]
  train(%loss) {optimizer = "sgd", lr = 0.1}
  output "loss" = %loss
}
)";
  std::ofstream csv(dir_.file("classes.csv"));
  csv << "a,label\n";
  for (int i = 0; i < 24; ++i) csv << i << "," << (i == 13 ? 7 : i % 3) << "\n";
  csv.close();
  const auto refused = [&](const std::string& place) {
    const Result result =
        run("train classes.fir --data 'csv:classes.csv?label=label&classes=1' --batch 4 --seed 3 "
            "--epochs 2 "
            "--log-json " +
            place + ".json --place " + place);
    EXPECT_EQ(result.code, 1) << result.output;
    const size_t at = result.output.find("value 7 of feed 'y'");
    EXPECT_NE(at, std::string::npos) << result.output;
    return at == std::string::npos ? "" : result.output.substr(at);
  };
  const std::string expected = refused("cpu");
  for (const std::string pace : {"early", "late", "random"}) {
    before_ += "export FLUID_STAND_IN_PACE=" + pace + "; ";
    const std::string said = refused("cuda");
    EXPECT_EQ(said.substr(0, said.find(", nor")), expected.substr(0, expected.find('\n')));
    EXPECT_EQ(losses("cuda.json").size(), losses("cpu.json").size());
  }
}

TEST_F(GpuPrograms, GoOnFromCheckpointsOfTheOtherPlace) {
  const std::string flags = "--dtype f64 --batch 16 --checkpoint-dir saved --resume ";
  succeed(train("--dtype f64 --batch 16 --epochs 3 --place cpu --log-json whole.json"));
  succeed(train(flags + "--epochs 1 --place cpu --log-json parts.json"));
  const std::string there = succeed(train(flags + "--epochs 2 --place cuda --log-json parts.json"));
  EXPECT_NE(there.find("place cuda (was cpu)\n"), std::string::npos) << there;
  const std::string back = succeed(train(flags + "--epochs 3 --place cpu --log-json parts.json"));
  EXPECT_NE(back.find("place cpu (was cuda)\n"), std::string::npos) << back;
  expect_losses("parts.json", "whole.json");
}

TEST_F(GpuPrograms, NameTheOptionsOfLibrariesThatHaveChanged) {
  const std::string flags = "--batch 16 --checkpoint-dir saved --resume --place cuda:0 --epochs ";
  succeed(train(flags + "1"));
  const std::string same = succeed(train(flags + "2 --threads 3"));
  EXPECT_EQ(same.find("(was "), std::string::npos) << same;
  const std::string other = succeed(train(flags + "3 --no-tune --workspace 1MiB"));
  EXPECT_NE(other.find("tuning off (was on), workspace 1048576 bytes (was 67108864 bytes)\n"),
            std::string::npos)
      << other;
}

/// Convolutions, pools, labels: the example, on a few digits.
TEST_F(GpuPrograms, TrainANetworkOfTheExamples) {
  const std::string command = "train mnist_fluid --data digits?limit=4 --batch 2 --epochs 1 ";
  succeed(command + "--place cpu --log-json cpu.json");
  const std::string said = succeed(
      command + "--place cuda:0 --profile=trace.json --profile-warmup 0 --log-json gpu.json");
  const std::vector<double> expected = losses("cpu.json"), seen = losses("gpu.json");
  ASSERT_EQ(seen.size(), 2U);
  for (size_t i = 0; i < seen.size(); ++i) EXPECT_NEAR(seen[i], expected[i], 1e-4);
  EXPECT_NE(said.find("profile of mnist_fluid"), std::string::npos) << said;
  EXPECT_EQ(said.find(" inf "), std::string::npos) << said;
  EXPECT_NE(said.find("profile of mnist_fluid on a GPU; at most 256 GFLOP/s in f32"),
            std::string::npos)
      << said;
  EXPECT_EQ(said.find("waiting for other processes"), std::string::npos) << said;
  // The stand-in's clock counts work, so that calls may last longer than their step; a step of
  // convolutions, which takes it long, ends before the next.
  const auto trace = testing::checked_trace(read_file(dir_.file("trace.json")), "step");
  std::set<std::string> layers;
  for (const auto& event : trace.at("traceEvents")) {
    EXPECT_NE(event.at("name"), "wait for processes");
    if (!event.at("args").contains("GFLOP/s")) continue;
    layers.insert(event.at("args").at("layer"));
    for (const char* figure : {"GB/s", "% of GB/s", "% of GFLOP/s"}) {
      EXPECT_GT(event.at("args").at(figure).get<double>(), 0) << event;
    }
  }
  for (const std::string layer : {"conv0", "conv1", "fc0"}) EXPECT_TRUE(layers.contains(layer));
}

/// The profile shows layers, library calls and collectives.
TEST_F(GpuPrograms, ShowTheTimesOfLibrariesAndCollectives) {
  write_wide_program();
  const std::string said =
      succeed(train("--batch 32 --max-steps 1 --drop-last --force-collectives --workspace 1MiB "
                    "--profile=trace.json --profile-warmup 0",
                    "wide.fir"));
  EXPECT_NE(said.find("concurrent: 2 collectives of 0.07 MB"), std::string::npos) << said;
  const auto trace = testing::checked_trace(read_file(dir_.file("trace.json")), "step");
  std::map<std::string, int> kernels;
  for (const auto& event : trace.at("traceEvents")) {
    if (!event.at("args").contains("kernel") || event.at("cat") == "wait") continue;
    const auto& args = event.at("args");
    ++kernels[args.at("kernel")];
    EXPECT_GT(args.at("GB/s").get<double>(), 0) << event;
    EXPECT_EQ(args.contains("% of GB/s"), args.at("kernel") != "all_reduce") << event;
    EXPECT_EQ(event.at("tid"), args.at("kernel") == "all_reduce" ? 2 : 1) << event;
  }
  EXPECT_EQ(kernels["cublaslt.matmul"], 3);
  EXPECT_EQ(kernels["all_reduce"], 2);
  EXPECT_GT(kernels["generated"], 0);
}

TEST_F(GpuPrograms, RunAndAreTimed) {
  const std::string input = "run line.fir --input x=1x2xf32=1,2 --place ";
  EXPECT_EQ(succeed(input + "cuda:0"), succeed(input + "cpu"));
  const std::string bench = succeed(
      "bench line.fir --data synthetic-linear?limit=64 --batch 8 --steps 2 --warmup 1 --repeat 1");
  EXPECT_NE(bench.find(" ms/step"), std::string::npos) << bench;
}

TEST_F(GpuPrograms, LetALibraryConvolveWhatIsLargeEnough) {
  Program net = mnist_fluid_program();
  minimize(net.ir().main().outputs[0].value, SGD{.lr = 0.01});
  net.save(dir_.file("images.fluid"));
  const std::string flags =
      "train images.fluid --data digits?limit=4 --batch 2 --max-steps 2 --log-json ";
  succeed(flags + "cpu.json --place cpu");
  succeed(flags + "f32.json --place cuda:0");
  succeed(flags + "half.json --place cuda:0 --amp o1");
  const std::vector<double> cpu = losses("cpu.json");
  EXPECT_NEAR(losses("f32.json").at(1), cpu.at(1), 1e-5 * cpu.at(1));
  EXPECT_NEAR(losses("half.json").at(1), cpu.at(1), 2e-2 * cpu.at(1));
  const std::string planned = succeed("plan images.fluid --batch 2 --place cuda:0 --kernels");
  for (const std::string kernel : {"conv2d", "conv2d_grad_input", "conv2d_grad_filter"}) {
    EXPECT_NE(planned.find("cudnn." + kernel + ": " + kernel), std::string::npos);
  }
  EXPECT_NE(planned.find(" ms, with "), std::string::npos) << planned;
}

TEST_F(GpuPrograms, PlanConvolutionsInHalvesWithChannelsLast) {
  const std::string eights = succeed("plan resnet18 --batch 8 --kernels --amp o1 --place cuda:0");
  EXPECT_NE(eights.find("cudnn.conv2d: conv2d, nhwc"), std::string::npos) << eights;
}

TEST_F(GpuPrograms, LetALibraryMultiplyWhatIsLargeEnough) {
  write_wide_program();
  const std::string flags = "--batch 32 --max-steps 2 --workspace 1MiB --log-json ";
  succeed(train(flags + "cpu.json --place cpu", "wide.fir"));
  succeed(train(flags + "f32.json --place cuda:0", "wide.fir"));
  succeed(train(flags + "again.json --no-tune --place cuda:0", "wide.fir"));
  const std::string rounded = succeed(train(
      flags + "tf32.json --tf32 --profile=t.json --profile-warmup 0 --place cuda:0", "wide.fir"));
  for (const std::string said : {"round their operands to TF32", " GFLOP/s in TF32, "}) {
    EXPECT_NE(rounded.find(said), std::string::npos) << rounded;
  }
  const std::vector<double> cpu = losses("cpu.json");
  for (const std::string log : {"f32.json", "again.json"}) {
    EXPECT_NEAR(losses(log).at(1), cpu.at(1), 1e-5 * cpu.at(1)) << log;
  }
  EXPECT_NEAR(losses("tf32.json").at(1), cpu.at(1), 1e-2 * cpu.at(1));
  EXPECT_NE(losses("tf32.json"), losses("f32.json"));
  const std::string text =
      succeed("opt wide.fir --pipeline train --batch 32 --place cuda:0 --workspace 1MiB");
  EXPECT_NE(text.find("kernel = \"cublaslt.matmul\""), std::string::npos) << text;
  EXPECT_NE(text.find("workspace_bytes = 65792"), std::string::npos) << text;
  EXPECT_EQ(succeed("opt wide.fir --pipeline train --batch 1 --place cuda:0").find("cublaslt"),
            std::string::npos);
  const std::string plan = succeed("plan wide.fir --batch 32 --place cuda:0 --kernels");
  EXPECT_NE(plan.find("workspace        4.00 MiB"), std::string::npos) << plan;
  EXPECT_NE(plan.find("cublaslt.matmul: matmul"), std::string::npos) << plan;
  EXPECT_NE(plan.find("; chosen when it is prepared"), std::string::npos) << plan;
  const std::string chosen =
      succeed("plan wide.fir --batch 32 --place cuda:0 --kernels --workspace 1MiB");
  EXPECT_NE(chosen.find(" ms, with 0 B"), std::string::npos) << chosen;
  const std::string untimed =
      succeed("plan wide.fir --batch 32 --place cuda:0 --kernels --workspace 1MiB --no-tune");
  EXPECT_NE(untimed.find("; the library's favourite, with "), std::string::npos) << untimed;
  for (const std::string command : {"train", "eval", "predict", "run", "bench"}) {
    const std::string help = succeed(command + " --help");
    EXPECT_NE(help.find("--tf32"), std::string::npos) << command;
    EXPECT_NE(help.find("to TF32"), std::string::npos) << command;
  }
}

/// The gradient of v has 128 rows; what the library computes of the forward and backward pass, 32.
TEST_F(GpuPrograms, GenerateWhatTheLibraryHasNoWayFor) {
  write_wide_program();
  const std::string flags = "--batch 32 --max-steps 2 --workspace 1MiB --log-json ";
  const std::string refused =
      "cublaslt.matmul cannot compute f32 128 x 128 of 32, transposed a with a workspace of "
      "64.00 KiB: code is generated\n";
  const std::string plan = "plan wide.fir --batch 32 --place cuda:0 --kernels --workspace 1MiB";
  const std::string cpu = succeed(train(flags + "cpu.json --place cpu", "wide.fir"));
  EXPECT_EQ(cpu.find("cannot compute"), std::string::npos) << cpu;
  const std::string before = succeed(plan);
  EXPECT_EQ(before.find("cannot compute"), std::string::npos) << before;
  before_ += "export FLUID_STAND_IN_ROWS=64; ";
  const std::string told = succeed(train(flags + "gpu.json --place cuda:0", "wide.fir"));
  EXPECT_NE(told.find(refused), std::string::npos) << told;
  EXPECT_EQ(losses("gpu.json").size(), 2U);
  EXPECT_NEAR(losses("gpu.json").at(1), losses("cpu.json").at(1), 1e-5 * losses("cpu.json").at(1));
  const std::string after = succeed(plan);
  EXPECT_NE(after.find("  " + refused), std::string::npos) << after;
  EXPECT_NE(after.find("cublaslt.matmul: matmul"), std::string::npos) << after;
  const auto libraries = [](const std::string& text) {
    return std::stoi(text.substr(text.find("\nkernels: ") + 10));
  };
  EXPECT_EQ(libraries(after), libraries(before) - 1) << before << after;
  before_ += "export FLUID_STAND_IN_ROWS=0; ";
  const std::string other_cache = " --cache-dir other";
  succeed(train(flags + "none.json --place cuda:0" + other_cache, "wide.fir"));
  EXPECT_EQ(libraries(succeed(plan + other_cache)), 0);
  EXPECT_NEAR(losses("none.json").at(1), losses("cpu.json").at(1), 1e-5 * losses("cpu.json").at(1));
}

/// Like the test above, but the library fails only when it runs the kernel.
TEST_F(GpuPrograms, GenerateWhatTheLibraryFailsToCompute) {
  write_wide_program();
  const std::string flags = "--batch 32 --max-steps 2 --workspace 1MiB --log-json ";
  const std::string refused =
      "cublaslt.matmul cannot compute f32 128 x 128 of 32, transposed a with a workspace of "
      "64.00 KiB (no engine computes so many rows): code is generated\n";
  succeed(train(flags + "cpu.json --place cpu", "wide.fir"));
  before_ += "export FLUID_STAND_IN_ROWS_COMPUTED=64; ";
  for (const std::string run : {"first", "second"}) {
    const std::string told = succeed(train(flags + run + ".json --place cuda:0", "wide.fir"));
    EXPECT_NE(told.find(refused), std::string::npos) << told;
    EXPECT_NEAR(losses(run + ".json").at(1), losses("cpu.json").at(1),
                1e-5 * losses("cpu.json").at(1));
  }
  EXPECT_EQ(losses("second.json"), losses("first.json"));
  const std::string plan =
      succeed("plan wide.fir --batch 32 --place cuda:0 --kernels --workspace 1MiB");
  EXPECT_NE(plan.find("  " + refused), std::string::npos) << plan;
}

/// Each object (context, module, matmul plan, graph) takes 1 MiB of the GPU's memory.
TEST_F(GpuPrograms, SayWhatTakesMemoryOutsideTheArena) {
  write_wide_program();
  before_ += "export FLUID_STAND_IN_OBJECT=1048576; ";
  const std::string said =
      succeed(train("--batch 32 --max-steps 1 --drop-last --force-collectives", "wide.fir"));
  const std::string list = said.substr(said.find("memory of cuda:0: arena "));
  for (const char* owner :
       {"context and other processes 1.00 MiB", "code of kernels ", "libraries 3.00 MiB", "graphs ",
        "communicator ", "streams, rounding "}) {
    EXPECT_NE(list.find(owner), std::string::npos) << owner << " in: " << said;
  }
  EXPECT_NE(list.find("\nmemory of the host: at the start "), std::string::npos) << said;
  EXPECT_NE(list.find("pinned for the GPU "), std::string::npos) << said;
  before_ += "export FLUID_STAND_IN_OBJECT=0; ";
  const std::string nothing = succeed(train("--batch 32 --max-steps 1", "wide.fir"));
  EXPECT_NE(nothing.find("outside it nothing of 1 MiB\n"), std::string::npos) << nothing;
}

/// The arena, to the byte, on both places and with a GPU that is only described.
TEST_F(GpuPrograms, TakeWhatWasPlanned) {
  succeed("devices --json > gpu.json");
  for (const std::string flags :
       {"--place cpu", "--place cuda:0", "--place cpu --micro-batches 2 --amp o2",
        "--place cuda:0 --dtype f64", "--place cuda:0 --target gpu.json"}) {
    const std::string plan = succeed("plan line.fir --json --batch 32 " + flags);
    std::smatch planned;
    ASSERT_TRUE(std::regex_search(plan, planned, std::regex("\"arena_bytes\": ([0-9]+)"))) << plan;
    const std::string here = flags.substr(0, flags.find(" --target"));
    const std::string said =
        succeed("train line.fir --data synthetic-linear?limit=64 --batch 32 " + here);
    EXPECT_NE(said.find("(" + planned[1].str() + " bytes)"), std::string::npos) << plan << said;
  }
}

/// Also while steps are prepared, of the batch, of what is left of an epoch and of validation:
/// there are never two arenas.
TEST_F(GpuPrograms, RunWhereThePlanJustFits) {
  const std::string plan = succeed("plan line.fir --json --batch 40000 --place cuda:0");
  std::smatch planned;
  ASSERT_TRUE(std::regex_search(plan, planned, std::regex("\"arena_bytes\": ([0-9]+)"))) << plan;
  constexpr int64_t kWords = 64 << 10;  // error words, one page each
  const int64_t enough = std::stoll(planned[1]) + kWords;
  before_ += "export FLUID_STAND_IN_MEMORY=" + std::to_string(enough) + "; ";
  const std::string data = " --data synthetic-linear?limit=50000 --batch 40000 --place cuda:0";
  succeed("train line.fir" + data +
          " --val synthetic-linear?limit=45000 --save params.safetensors");
  succeed("eval line.fir" + data + " --params params.safetensors");
}

TEST_F(GpuPrograms, AreRejectedWhereTheyDoNotFit) {
  const std::tuple<int64_t, int, std::string> cases[] = {{8 << 10, 1000, "8.00 KiB"},
                                                         {3 << 20, 100'000, "3.00 MiB"}};
  for (const auto& [memory, batch, text] : cases) {
    const std::string samples = std::to_string(batch);
    before_ += "export FLUID_STAND_IN_MEMORY=" + std::to_string(memory) + "; ";
    const Result result = run("train line.fir --data synthetic-linear?limit=" + samples +
                              " --batch " + samples + " --place cuda:0");
    EXPECT_EQ(result.code, 3) << result.output;
    EXPECT_NE(result.output.find("a step of " + samples + " samples needs"), std::string::npos)
        << result.output;
    EXPECT_NE(result.output.find("cuda:0 has " + text + ", of which " + text +
                                 " are free; take a smaller batch, micro-batches or mixed "
                                 "precision"),
              std::string::npos)
        << result.output;
  }
}

}  // namespace
}  // namespace fluid::gpu_place_test
