// `fluidrun train` on a host that stands in for a GPU. It reads the results of a step after it
// starts the next step, but saves, shows and logs each result with its own step.

#include <fmt/format.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>
#include <tuple>
#include <utility>
#include <vector>

#include "ir/atomic_file.h"
#include "tests/support/dropping_program.h"
#include "tests/support/gpu_programs_test.h"

namespace fluid::gpu_late_steps_test {
namespace {

class GpuLateSteps : public GpuProgramsTest {
 protected:
  void SetUp() override {
    GpuProgramsTest::SetUp();
    before_ += "export FLUID_STAND_IN_PACE=late; ";
    write_plain(dir_.file("dropping.fir"), std::string(testing::kDropping));
  }

  static std::string train_dropping(const std::string& flags, int batch = 16) {
    return train("--batch " + std::to_string(batch) + " --epochs 3 --seed 5 " + flags,
                 "dropping.fir");
  }

  /// Trains to step 10, the third step of an epoch, on the first place. Resumes from the checkpoint
  /// of step 8 on the second place, as after a kill, and trains to step 18. Resumes from step 16 on
  /// the third place, and trains to the end.
  void train_in_parts(const std::array<std::string, 3>& places, const std::string& name,
                      const std::string& flags) const {
    const std::string command =
        train_dropping(flags + " --checkpoint-every 4 --checkpoint-dir " + name +
                       " --resume --log-json " + name + ".json --save " + name + ".safetensors");
    succeed(command + " --max-steps 10 --place " + places[0]);
    std::filesystem::remove_all(dir_.file(name + "/step-0000000010"));
    const std::string second = succeed(command + " --max-steps 18 --place " + places[1]);
    EXPECT_NE(second.find("step-0000000008: step 8 in epoch 2"), std::string::npos) << second;
    std::filesystem::remove_all(dir_.file(name + "/step-0000000018"));
    const std::string third = succeed(command + " --place " + places[2]);
    EXPECT_NE(third.find("step-0000000016: step 16 in epoch 3"), std::string::npos) << third;
  }

  /// The fields of a logged step, without its loss and times.
  using Step = std::tuple<int, int, double, double, bool>;
  std::vector<Step> steps(const std::string& log) const {
    std::vector<Step> all;
    std::ifstream file(dir_.file(log));
    for (std::string line; std::getline(file, line);) {
      const auto step = nlohmann::json::parse(line);
      if (step.contains("event")) continue;
      all.emplace_back(step.at("epoch"), step.at("step"), step.at("lr"),
                       step.value("loss_scale", 0.0), step.at("skipped"));
    }
    return all;
  }
};

TEST_F(GpuLateSteps, ACheckpointWithinAnEpochGoesOnOnTheOtherPlaceAndBack) {
  const std::string flags = "--dtype f64";
  succeed(train_dropping(flags + " --place cpu --log-json whole.json"));
  ASSERT_EQ(losses("whole.json").size(), 21U);
  for (const auto& places : {std::array<std::string, 3>{"cuda", "cpu", "cuda"},
                             std::array<std::string, 3>{"cpu", "cuda", "cpu"}}) {
    const std::string name = places[0] + "_first";
    train_in_parts(places, name, flags);
    expect_losses(name + ".json", "whole.json");
    EXPECT_EQ(steps(name + ".json"), steps("whole.json"));
  }
}

TEST_F(GpuLateSteps, ACheckpointWithinAnEpochGoesOnBitForBit) {
  const std::string flags = "--amp o1 --amp-dtype f16 --loss-scale-init 16777216";
  succeed(train_dropping(flags + " --place cuda --log-json whole.json --save whole.safetensors"));
  train_in_parts({"cuda", "cuda", "cuda"}, "parts", flags);
  EXPECT_EQ(losses("parts.json"), losses("whole.json"));
  EXPECT_EQ(steps("parts.json"), steps("whole.json"));
  EXPECT_EQ(read_file(dir_.file("parts.safetensors")), read_file(dir_.file("whole.safetensors")));
}

/// Same as on the CPU, where the results of a step are available at once.
TEST_F(GpuLateSteps, TheLossScaleAndSkippedStepsAreThoseOfTheStepTheyAreSaidOf) {
  const std::string flags =
      "--amp o1 --amp-dtype f16 --loss-scale-init 16777216 --loss-scale-interval 4 --log-json ";
  const auto report = [](const std::string& said) {
    const size_t at = said.rfind("loss scale ");
    return at == std::string::npos ? said : said.substr(at, said.find('\n', at) - at);
  };
  constexpr int kSteps = 103;  // one sample per step: the bar is redrawn within an epoch
  const std::string expected = report(succeed(train_dropping(flags + "cpu.json --place cpu", 1)));
  EXPECT_EQ(report(succeed(train_dropping(flags + "cuda.json --place cuda", 1))), expected);
  const std::vector<Step> all = steps("cpu.json");
  EXPECT_EQ(steps("cuda.json"), all);
  std::vector<std::pair<double, int>> scaling;  // after each step: the scale, and skips until then
  scaling.reserve(all.size());
  for (const auto& [epoch, step, lr, scale, skipped] : all) {
    scaling.emplace_back(scale, (scaling.empty() ? 0 : scaling.back().second) + skipped);
  }
  EXPECT_GT(scaling.back().second, 3) << expected;
  EXPECT_NE(scaling.back().first, scaling[3].first);

  if (std::system("script -qec true /dev/null < /dev/null > /dev/null 2>&1") != 0) {
    GTEST_SKIP() << "script(1) makes no terminal here: the bar is not looked at";
  }
  const std::string command = train_dropping(flags + "bar.json --place cuda", 1);
  const std::string bars = run_command("script -qec \"stty cols 200; " + before_ + "TERM=xterm " +
                                       kFluidrun + " " + command + "\" /dev/null < /dev/null")
                               .output;
  const std::regex bar(
      R"(epoch (\d)/3 \[[^\]]*\] (\d+)/103 .*?  scale ([0-9.e+]+), (\d+) skipped)");
  int drawn = 0;
  for (std::sregex_iterator found(bars.begin(), bars.end(), bar), end; found != end;
       ++found, ++drawn) {
    const std::smatch& m = *found;
    const auto& [scale, skipped] =
        scaling.at(static_cast<size_t>((std::stoi(m[1]) - 1) * kSteps + std::stoi(m[2]) - 1));
    EXPECT_NEAR(std::stod(m[3]), scale, 1e-5 * scale) << m.str();  // six digits are drawn
    EXPECT_EQ(std::stoi(m[4]), skipped) << m.str();
  }
  EXPECT_GT(drawn, 0) << bars;
}

/// The first wait, one on the way, the last; of steps, and for what is saved.
TEST_F(GpuLateSteps, AWaitThatFailsIsToldWhicheverItIs) {
  constexpr int kBefore = 2;  // for the step that fills the variables, and the first small write
  for (const std::string function : {"event_synchronize", "stream_synchronize"}) {
    int failures = 0;
    for (;; ++failures) {
      ASSERT_LT(failures, 100) << function;
      const std::string setting = fmt::format("export FLUID_STAND_IN_FAILS='{} {}'; timeout 60 {} ",
                                              function, failures, kFluidrun);
      const Result result =
          run_command(before_ + setting + train_dropping("--place cuda --save saved.safetensors"));
      if (result.code == 0) break;
      EXPECT_EQ(result.code, 3) << result.output;
      const bool of_step = function == "event_synchronize" && failures >= kBefore;
      const std::string after =
          of_step ? "fluidrun: after step " + std::to_string(failures - kBefore) + ": " : "";
      EXPECT_NE(result.output.find(after + function + " was told to fail\n"), std::string::npos)
          << result.output;
      EXPECT_FALSE(std::filesystem::exists(dir_.file("saved.safetensors"))) << failures;
    }
    EXPECT_GE(failures, function == "event_synchronize" ? 22 : 3);
    std::filesystem::remove(dir_.file("saved.safetensors"));
  }
}

}  // namespace
}  // namespace fluid::gpu_late_steps_test
