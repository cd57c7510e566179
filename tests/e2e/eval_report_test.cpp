// `fluidrun eval --report`: what it prints and writes.

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/support/file_bytes.h"
#include "tests/support/fluidrun_test.h"

namespace fluid::testing {
namespace {

class EvalReport : public FluidrunTest {
 protected:
  /// A classifier whose scores are the feed x, and a csv file with one row for each (label,
  /// prediction).
  void write_classifier(int64_t classes, const std::vector<std::pair<int64_t, int64_t>>& rows) {
    const std::string n = std::to_string(classes);
    write_plain(dir_.file("classes.fir"),
                "program @classes {\n"
                "  %x = data \"x\" : f32[?, " +
                    n +
                    "]\n"
                    "  %y = data \"y\" : i64[?]\n"
                    "  %l = softmax_cross_entropy(%x, %y) : f32[?]\n"
                    "  %loss = mean(%l) : f32[]\n"
                    "  output \"loss\" = %loss\n}\n");
    std::string csv;
    for (int64_t c = 0; c < classes; ++c) csv += "x" + std::to_string(c) + ",";
    csv += "kind\n";
    for (const auto& [label, prediction] : rows) {
      for (int64_t c = 0; c < classes; ++c) csv += c == prediction ? "2," : "0,";
      csv += std::to_string(label) + "\n";
    }
    write_plain(dir_.file("rows.csv"), csv);
  }
  std::string report(const std::string& flags) {
    const Result result =
        run("eval classes.fir --data 'csv:rows.csv?label=kind&classes=1' " + flags);
    EXPECT_EQ(result.code, 0) << result.output;
    return result.output;
  }
  nlohmann::json written() {
    return nlohmann::json::parse(std::ifstream(dir_.file("report.json")));
  }
};

TEST_F(EvalReport, ShowsTheConfusionMatrixAndTheWorstSamples) {
  write_classifier(3, {{0, 0}, {1, 1}, {1, 2}, {2, 2}, {2, 2}});
  const std::string text = report("--report=report.json --worst 1");
  EXPECT_NE(text.find("0           1       0       0\n"
                      "1           0       1       1\n"
                      "2           0       0       2\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("rows.csv:4  label 1  prediction 2\n"), std::string::npos) << text;
  EXPECT_EQ(text.find("rows.csv:3"), std::string::npos) << text;
  EXPECT_EQ(text.find("report.loss"), std::string::npos) << text;
  const nlohmann::json json = written();
  EXPECT_EQ(json.at("confusion"), nlohmann::json({{1, 0, 0}, {0, 1, 1}, {0, 0, 2}}));
  EXPECT_EQ(json.at("classes").at(1).at("recall"), 0.5);
  EXPECT_EQ(json.at("worst").at(0).at("row"), 2);
}

TEST_F(EvalReport, OfManyClassesListsThePairsThatAreConfused) {
  write_classifier(21, {{20, 7}, {3, 4}, {20, 7}, {5, 5}});
  const std::string text = report("--report");
  EXPECT_NE(text.find("       2 x 20 taken for 7\n       1 x 3 taken for 4\n"), std::string::npos)
      << text;
  EXPECT_EQ(text.find("confusion matrix"), std::string::npos) << text;
}

TEST_F(EvalReport, MistakesAreNamed) {
  write_classifier(3, {{0, 0}});
  const std::string eval = "eval classes.fir --data 'csv:rows.csv?label=kind&classes=1' ";
  expect_error(eval + "--worst 3", "--worst requires --report");
  expect_error(eval + "--report=nowhere/r.json", "cannot write 'nowhere/r.json'");
  expect_error(eval + "--report=r.csv",
               "cannot write 'r.csv': the report is written as .json, not as .csv");
}

}  // namespace
}  // namespace fluid::testing
