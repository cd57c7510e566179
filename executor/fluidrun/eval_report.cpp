#include "executor/fluidrun/eval_report.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <nlohmann/json.hpp>

#include "executor/fluidrun/flags.h"
#include "executor/fluidrun/help.h"
#include "executor/fluidrun/tensor_io.h"
#include "executor/launcher/print_to.h"
#include "executor/trainer/running_means.h"
#include "ir/atomic_file.h"

namespace fluid {
namespace {

constexpr int64_t kMatrixClasses = 20;  // a matrix of 20 columns fits in 200 characters
constexpr size_t kConfusedPairs = 20;
constexpr size_t kNameWidth = 20;  // longer names are truncated

std::string cut(const std::string& name) { return name.substr(0, kNameWidth); }

size_t width_of(const std::vector<std::string>& names) {
  size_t width = 5;
  for (const std::string& name : names) width = std::max(width, cut(name).size());
  return width;
}

int64_t count_of(const EvaluationReport& report, int64_t label, int64_t prediction) {
  return report.confusion()[static_cast<size_t>(label * report.classes() + prediction)];
}

void print_matrix(const EvaluationReport& report, const std::vector<std::string>& names) {
  const size_t width = width_of(names);
  print_to(stdout, "\nconfusion matrix: a row for each label, a column for each prediction\n{:{}}",
           "", width);
  for (const std::string& name : names) print_to(stdout, "  {:>6}", cut(name).substr(0, 6));
  for (int64_t label = 0; label < report.classes(); ++label) {
    print_to(stdout, "\n{:{}}", cut(names[static_cast<size_t>(label)]), width);
    for (int64_t prediction = 0; prediction < report.classes(); ++prediction) {
      print_to(stdout, "  {:>6}", count_of(report, label, prediction));
    }
  }
  print_to(stdout, "\n");
}

/// A label, a wrong prediction, and the number of samples with this label and prediction.
struct ConfusedPair {
  int64_t samples = 0, label = 0, prediction = 0;
};
std::vector<ConfusedPair> confused_pairs(const EvaluationReport& report) {
  std::vector<ConfusedPair> pairs;
  for (int64_t label = 0; label < report.classes(); ++label) {
    for (int64_t prediction = 0; prediction < report.classes(); ++prediction) {
      const int64_t samples = count_of(report, label, prediction);
      if (label != prediction && samples > 0) pairs.push_back({samples, label, prediction});
    }
  }
  std::ranges::stable_sort(pairs, std::greater(), &ConfusedPair::samples);
  return pairs;
}

void print_confused_pairs(const EvaluationReport& report, const std::vector<std::string>& names) {
  const std::vector<ConfusedPair> pairs = confused_pairs(report);
  print_to(stdout, "\nlabels and predictions that differ most often\n");
  for (size_t i = 0; i < std::min(pairs.size(), kConfusedPairs); ++i) {
    print_to(stdout, "  {:>6} x {} taken for {}\n", pairs[i].samples,
             names[static_cast<size_t>(pairs[i].label)],
             names[static_cast<size_t>(pairs[i].prediction)]);
  }
}

void print_scores(const EvaluationReport& report, const std::vector<std::string>& names) {
  const size_t width = width_of(names);
  print_to(stdout, "\n{:{}}  {:>9}  {:>9}  {:>9}  {:>9}\n", "class", width, "precision", "recall",
           "f1", "samples");
  const std::vector<ClassScores> scores = report.scores();
  for (size_t c = 0; c < scores.size(); ++c) {
    print_to(stdout, "{:{}}  {:>9.4f}  {:>9.4f}  {:>9.4f}  {:>9}\n", cut(names[c]), width,
             scores[c].precision, scores[c].recall, scores[c].f1, scores[c].samples);
  }
}

std::string name_in(const std::vector<std::string>& names, int64_t index) {
  const bool has_name = index >= 0 && index < std::ssize(names);
  return has_name ? names[static_cast<size_t>(index)] : std::to_string(index);
}

void print_worst(const EvaluationReport& report, const std::vector<std::string>& names) {
  if (report.worst().empty()) return;
  print_to(stdout, "\nsamples with the largest losses\n");
  for (const SampleLoss& sample : report.worst()) {
    print_to(stdout, "  loss {}  {}", format_scalar(clear_nan_sign(sample.loss)), sample.location);
    if (sample.label) {
      print_to(stdout, "  label {}  prediction {}", name_in(names, *sample.label),
               name_in(names, *sample.prediction));
    }
    print_to(stdout, "\n");
  }
}

nlohmann::ordered_json json_of(const EvaluationReport& report,
                               const std::vector<std::string>& names) {
  using Json = nlohmann::ordered_json;
  Json json;
  if (report.has_classes()) {
    json["classes"] = Json::array();
    const std::vector<ClassScores> scores = report.scores();
    for (size_t c = 0; c < scores.size(); ++c) {
      json["classes"].push_back({{"name", names[c]},
                                 {"samples", scores[c].samples},
                                 {"precision", scores[c].precision},
                                 {"recall", scores[c].recall},
                                 {"f1", scores[c].f1}});
    }
    json["confusion"] = Json::array();
    for (int64_t label = 0; label < report.classes(); ++label) {
      Json row = Json::array();
      for (int64_t p = 0; p < report.classes(); ++p) row.push_back(count_of(report, label, p));
      json["confusion"].push_back(row);
    }
  }
  json["worst"] = Json::array();
  for (const SampleLoss& sample : report.worst()) {
    Json entry = {
        {"row", sample.source_index}, {"location", sample.location}, {"loss", sample.loss}};
    if (sample.label) entry["label"] = *sample.label;
    if (sample.prediction) entry["prediction"] = *sample.prediction;
    json["worst"].push_back(entry);
  }
  return json;
}

}  // namespace

void add_report_flags(CLI::App& command, ReportFlags& flags) {
  begin_group(command, kDebuggingGroup);
  CLI::Option* report =
      add_file_flag(command, "--report", flags.file,
                    "print the confusion matrix of a classifier, the scores of its classes, and "
                    "the samples with the largest losses; --report=FILE.json also writes them");
  command.add_option("--worst", flags.worst, "number of samples in --report (default: 10)")
      ->check(validate_positive_integer)
      ->type_name("N")
      ->needs(report);
}

std::optional<EvaluationReport> start_report(Program& program, const ReportFlags& flags) {
  if (!flags.enabled()) return std::nullopt;
  if (flags.writes_file()) {
    check_extension(flags.file, {".json"}, "the report is");
    check_writable(flags.file);
  }
  EvaluationReportOptions options;
  if (flags.worst > 0) options.worst = flags.worst;
  return EvaluationReport(program, options);
}

void print_report(const EvaluationReport& report, const ReportFlags& flags) {
  const std::vector<std::string> names = report.class_names();
  if (report.has_classes()) {
    report.classes() <= kMatrixClasses ? print_matrix(report, names)
                                       : print_confused_pairs(report, names);
    print_scores(report, names);
  }
  print_worst(report, names);
  if (flags.writes_file()) {
    write_file_atomically(
        flags.file,
        json_of(report, names).dump(1, ' ', false, nlohmann::json::error_handler_t::replace) +
            "\n");
  }
}

}  // namespace fluid
