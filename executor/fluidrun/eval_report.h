#pragma once

#include <optional>
#include <string>

#include "executor/trainer/evaluation_report.h"
#include "frontend/program.h"

namespace CLI {
class App;
}

namespace fluid {

/// Values of --report and --worst.
struct ReportFlags {
  std::string file = "false";  ///< path of the JSON file; "true": no file, "false": no report
  int64_t worst = 0;           ///< --worst: number of worst samples; 0: not given
  bool enabled() const { return file != "false"; }
  bool writes_file() const { return enabled() && file != "true"; }
};
void add_report_flags(CLI::App& command, ReportFlags& flags);

/// Adds the report's outputs to `program`, if the flags request a report.
std::optional<EvaluationReport> start_report(Program& program, const ReportFlags& flags);

/// Prints a report: the confusion matrix, the precision, recall and F1 of each class and the worst
/// samples. With more than kMatrixClasses classes, prints the most frequent confusions instead of
/// the matrix. Writes the report to the file of --report, if given.
void print_report(const EvaluationReport& report, const ReportFlags& flags);

}  // namespace fluid
