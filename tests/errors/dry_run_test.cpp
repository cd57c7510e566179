// `train --dry-run`: the sizes that it runs, and that it writes nothing.

#include <gtest/gtest.h>

#include <map>
#include <regex>
#include <sstream>

#include "tests/support/fluidrun_test.h"

namespace fluid::dry_run_test {
namespace {

struct Line {
  int64_t steps = 0;
  double ms = 0;
};

class DryRun : public FluidrunTest {
 protected:
  /// Runs `arguments`, and expects no new file. Returns the output.
  std::string run_dry(const std::string& arguments) const {
    const std::set<std::string> before = files();
    const Result result = run(arguments);
    EXPECT_EQ(result.code, 0) << result.output;
    EXPECT_EQ(files(), before);
    return result.output;
  }
  /// The lines of the table: (step, samples) -> steps an epoch, milliseconds.
  static std::map<std::pair<std::string, int64_t>, Line> table_of(const std::string& output) {
    std::map<std::pair<std::string, int64_t>, Line> table;
    std::istringstream lines(output);
    for (std::string line; std::getline(lines, line);) {
      std::istringstream words(line);
      std::string name;
      int64_t samples = 0;
      Line row;
      if (words >> name >> samples >> row.steps >> row.ms) table[{name, samples}] = row;
    }
    return table;
  }
  static double number_after(const std::string& output, const std::string& text) {
    std::smatch found;
    EXPECT_TRUE(std::regex_search(output, found, std::regex(text + "([0-9.e+-]+)"))) << output;
    return found.empty() ? 0 : std::stod(found[1]);
  }
};

const std::string kData = "--data synthetic-linear?n=25 --val synthetic-linear?n=47 --batch 10 ";

TEST_F(DryRun, TimesEachSizeAndWritesNothing) {
  const std::string output =
      run_dry("train line.fir " + kData +
              "--epochs 4 --dry-run --save w.safetensors --save-best b --best "
              "loss:min --checkpoint-dir run --log-json log --history h.csv "
              "--tensorboard board --profile=trace.json");
  auto table = table_of(output);
  ASSERT_EQ(table.size(), 4u) << output;
  EXPECT_EQ((table[{"training", 10}].steps), 2);
  EXPECT_EQ((table[{"training", 5}].steps), 1);
  EXPECT_EQ((table[{"validation", 10}].steps), 4);
  EXPECT_EQ((table[{"validation", 7}].steps), 1);
  for (const auto& [size, line] : table) EXPECT_GT(line.ms, 0) << size.first << size.second;
  const double epoch = number_after(output, "an epoch takes about ");
  EXPECT_GT(epoch, 0);
  EXPECT_NEAR(number_after(output, "the training "), 4 * epoch, 0.03 * epoch);
  EXPECT_TRUE(states(output, "of it for variables")) << output;
}

TEST_F(DryRun, KnowsDropLastAndMaxSteps) {
  const std::string output =
      run_dry("train line.fir " + kData + "--drop-last --epochs 8 --max-steps 6 --dry-run");
  auto table = table_of(output);
  ASSERT_EQ(table.size(), 3u) << output;
  EXPECT_EQ((table[{"training", 10}].steps), 2);
  const double epoch = number_after(output, "an epoch takes about ");
  EXPECT_NEAR(number_after(output, "the training "), 3 * epoch, 0.03 * epoch);
}

TEST_F(DryRun, OfOneSmallBatch) {
  auto table = table_of(
      run_dry("train line.fir --data synthetic-linear?n=7 --batch 10 --dry-run --dump w.grad"));
  ASSERT_EQ(table.size(), 1u);
  EXPECT_EQ((table[{"training", 7}].steps), 1);
}

TEST_F(DryRun, OfTwoRanksSplitsTheBatches) {
  const std::string output =
      run_dry("launch --nproc 2 -- " + kFluidrun + " train line.fir " + kData + "--dry-run");
  auto table = table_of(output);
  EXPECT_EQ((table[{"training", 20}].steps), 1) << output;
  EXPECT_EQ((table[{"training", 5}].steps), 1) << output;
  EXPECT_EQ((table[{"validation", 20}].steps), 2) << output;
  EXPECT_EQ((table[{"validation", 7}].steps), 1) << output;
}

TEST_F(DryRun, ChecksTheOptionsOfTheTraining) {
  expect_late_error("train line.fir " + kData + "--dry-run --best line:min",
                    "no scalar output has the name 'line'");
}

}  // namespace
}  // namespace fluid::dry_run_test
