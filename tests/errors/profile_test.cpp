// fluidrun ... --profile.

#include <nlohmann/json.hpp>

#include "tests/support/fluidrun_test.h"

namespace fluid::profile_test {
namespace {

using ProfileTest = FluidrunTest;
const std::string kData = " --data 'synthetic-linear?n=100' --batch 10 --threads 1";

bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_F(ProfileTest, EveryCommandThatRunsStepsHasATable) {
  for (const auto& [command, kind] : {std::pair{"train", "training"},
                                      {"eval", "eval"},
                                      {"predict", "predict"},
                                      {"bench --steps 10 --repeat 1", "training"}}) {
    const Result result = run(std::string(command) + " line.fir --profile" + kData);
    EXPECT_EQ(result.code, 0) << result.output;
    EXPECT_TRUE(holds(result.output, std::string(kind) + " step of 10 samples: ")) << result.output;
    EXPECT_TRUE(holds(result.output, "total\n")) << result.output;
  }
}

TEST_F(ProfileTest, WritesATraceBesides) {
  const std::string steps = " --profile-steps 2 --profile-warmup 1";
  const Result result = run("train line.fir --profile=t.json" + steps + kData);
  EXPECT_EQ(result.code, 0) << result.output;
  EXPECT_TRUE(holds(result.output, "of 2 steps, after 1 unrecorded)")) << result.output;
  EXPECT_TRUE(holds(result.output, "saved t.json\n")) << result.output;
  const auto trace = nlohmann::json::parse(std::ifstream(dir_.file("t.json")));
  const auto& events = trace.at("traceEvents");
  const auto of_step = std::ranges::count_if(
      events, [](const auto& e) { return e.at("name") == "training step of 10 samples"; });
  EXPECT_EQ(of_step, 2);
}

TEST_F(ProfileTest, SaysThatNothingWasRecorded) {
  const Result result = run("eval line.fir --profile=t.json --profile-warmup 10" + kData);
  EXPECT_EQ(result.code, 0) << result.output;
  EXPECT_TRUE(holds(result.output, "nothing to profile: no batch size ran more than 10 steps\n"))
      << result.output;
  EXPECT_FALSE(std::filesystem::exists(dir_.file("t.json")));
}

TEST_F(ProfileTest, RejectsWhatCannotBe) {
  expect_error("train line.fir --profile=absent/t.json" + kData, "cannot write 'absent/t.json'");
  expect_error("train line.fir --profile-steps 5" + kData, "--profile-steps requires --profile");
  expect_error("train line.fir --profile --profile-steps 10001" + kData,
               "a profile of 10001 steps after 3 others: it has 1 to 10000");
  expect_error("train line.fir --profile --profile-steps 0" + kData,
               "--profile-steps: must be a positive integer, not 0");
  expect_error("train line.fir --profile --profile-warmup=-1" + kData,
               "--profile-warmup: must be an integer of at least 0, not -1");
}

}  // namespace
}  // namespace fluid::profile_test
