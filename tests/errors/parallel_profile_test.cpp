// Ranks with --profile: each has a trace of its own.

#include <nlohmann/json.hpp>

#include "tests/support/fluidrun_test.h"

namespace fluid::parallel_profile_test {
namespace {

using ParallelProfileTest = FluidrunTest;

TEST_F(ParallelProfileTest, EveryRankWritesItsOwn) {
  const Result result =
      run("launch --nproc 2 --log-dir logs -- train line.fir --data 'synthetic-linear?n=100' "
          "--batch 10 --profile=t.json --profile-warmup 1");
  ASSERT_EQ(result.code, 0) << result.output;
  EXPECT_NE(result.output.find("concurrent: "), std::string::npos) << result.output;
  for (const int rank : {0, 1}) {
    const std::string file = "t.rank" + std::to_string(rank) + ".json";
    const auto trace = nlohmann::json::parse(std::ifstream(dir_.file(file)));
    const auto exchanges = std::ranges::count_if(
        trace.at("traceEvents"), [](const auto& e) { return e.value("cat", "") == "comm"; });
    EXPECT_GT(exchanges, 0) << file;
    EXPECT_EQ(trace.at("traceEvents").at(0).at("pid"), rank);
  }
}

}  // namespace
}  // namespace fluid::parallel_profile_test
