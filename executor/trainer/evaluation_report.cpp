#include "executor/trainer/evaluation_report.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "executor/trainer/class_values.h"
#include "ir/error.h"
#include "ops/functions.h"
#include "ops/optim/recipes.h"
#include "ops/record.h"
#include "passes/rewrite.h"

namespace fluid {
namespace {

constexpr const char *kLoss = "report.loss", *kLabel = "report.label",
                     *kPrediction = "report.prediction";

bool has_rows(Value v) { return !v.shape().empty() && v.shape()[0] == kBatch; }

/// The loss of the recipe if there is exactly one, else output `loss`; null if there is none.
Value loss_of(const ir::Graph& graph) {
  const std::vector<ir::Op*> recipes = recipes_of(graph);
  if (recipes.size() == 1) return unpenalized_loss(*recipes.front());
  for (const ir::Output& o : graph.outputs) {
    if (o.name == "loss") return o.value;
  }
  return {};
}

/// Returns the per-sample terms of `op`: the operand of a mean or sum, or the value of a loss op,
/// which this function records again with reduction "none". Null for other ops, and for terms
/// without one row per sample.
Value terms_of(ir::Graph& graph, const ir::Op& op) {
  if ((op.name == "mean" || op.name == "sum") && has_rows(op.operands[0])) return op.operands[0];
  if (op.attrs.find("reduction") == nullptr) return {};
  Attrs attrs = op.attrs;
  attrs.set("reduction", std::string("none"));
  const Value terms = record(graph, op.name, op.operands, attrs, op.loc).at(0);
  return has_rows(terms) ? terms : Value();
}

/// Returns `loss` itself if it has one row per sample. Otherwise searches the scalar ops on which
/// `loss` depends, in program order, and returns the first terms_of() that is not null. Null if
/// there is none.
Value loss_terms(ir::Graph& graph, Value loss) {
  if (has_rows(loss)) return loss;
  const std::set<const ir::Op*> needed = ancestors({loss});
  std::vector<const ir::Op*> ops;
  for (const auto& op : graph.ops) {
    if (needed.contains(op.get()) && op->results[0].type.shape.empty()) ops.push_back(op.get());
  }
  for (const ir::Op* op : ops) {
    if (const Value terms = terms_of(graph, *op)) return terms;
  }
  return {};
}

/// The mean of each row of `v` [N, ...], as [N].
Value row_means(Value v) {
  std::vector<int64_t> axes;
  for (int64_t axis = 1; axis < v.shape().rank(); ++axis) axes.push_back(axis);
  return axes.empty() ? v : mean(v, {.axes = axes});
}

/// Whether the loss of `a` is larger than the loss of `b`. NaN is the largest loss.
bool is_worse(const SampleLoss& a, const SampleLoss& b) {
  if (std::isnan(a.loss) || std::isnan(b.loss)) return std::isnan(a.loss) && !std::isnan(b.loss);
  return a.loss > b.loss;
}

}  // namespace

EvaluationReport::EvaluationReport(Program& program, const EvaluationReportOptions& options)
    : options_(options) {
  ir::Graph& graph = program.ir().main();
  const Value loss = loss_of(graph);
  if (!loss)
    throw UserError("a report needs a program that minimizes one loss, or an output 'loss'");
  const std::optional<ClassValues> classes = class_values(graph, ancestors({loss}));
  const Value terms = loss_terms(graph, loss);
  if (!terms) {
    throw UserError("a report needs a loss that is a mean or a sum over the samples of a batch");
  }
  program.output(kLoss, row_means(terms));
  if (!classes || classes->classes > options.max_classes) return;
  classes_ = classes->classes;
  label_column_ = classes->label_feed;
  ignored_class_ = classes->ignored_class;
  confusion_.resize(static_cast<size_t>(classes_ * classes_));
  program.output(kLabel, classes->label);
  program.output(kPrediction, classes->prediction);
}

bool EvaluationReport::is_report_output(const std::string& output) {
  return output == kLoss || output == kLabel || output == kPrediction;
}

BatchObserver EvaluationReport::observer(const Reader& data) {
  return
      [this, &data](const Batch& batch, const OutputViews& outputs) { add(data, batch, outputs); };
}

void EvaluationReport::add(const Reader& data, const Batch& batch, const OutputViews& outputs) {
  const SampleData& source = data.source();
  const std::span<const int64_t> indices = data.sample_indices();
  if (class_names_.empty() && !label_column_.empty()) class_names_ = source.classes(label_column_);
  const Tensor& losses = outputs[kLoss];
  const bool one_class = has_classes() && outputs[kLabel].numel() == batch.size;
  for (int64_t i = 0; i < batch.size; ++i) {
    SampleLoss sample{.source_index = 0, .location = "", .loss = losses.at(i)};
    const bool is_kept =
        std::ssize(worst_) < options_.worst || (!worst_.empty() && is_worse(sample, worst_.back()));
    if (!is_kept) continue;
    const int64_t index = indices[static_cast<size_t>(i)];
    sample.source_index = source.source_index(index);
    sample.location = source.location(index);
    if (one_class) {
      sample.label = static_cast<int64_t>(outputs[kLabel].at(i));
      sample.prediction = static_cast<int64_t>(outputs[kPrediction].at(i));
    }
    worst_.insert(std::ranges::upper_bound(worst_, sample, is_worse), std::move(sample));
    if (std::ssize(worst_) > options_.worst) worst_.pop_back();
  }
  if (has_classes()) add_classes(outputs);
}

void EvaluationReport::add_classes(const OutputViews& outputs) {
  const Tensor &labels = outputs[kLabel], &predictions = outputs[kPrediction];
  for (int64_t i = 0; i < labels.numel(); ++i) {
    const auto label = static_cast<int64_t>(labels.at(i));
    const auto prediction = static_cast<int64_t>(predictions.at(i));
    if (label < 0 || label >= classes_ || label == ignored_class_) continue;
    ++confusion_[static_cast<size_t>(label * classes_ + prediction)];
  }
}

std::vector<std::string> EvaluationReport::class_names() const {
  std::vector<std::string> names = class_names_;
  for (auto i = std::ssize(names); i < classes_; ++i) names.push_back(std::to_string(i));
  return names;
}

std::vector<ClassScores> EvaluationReport::scores() const {
  const auto ratio = [](int64_t part, int64_t whole) {
    return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
  };
  std::vector<ClassScores> all;
  for (int64_t c = 0; c < classes_; ++c) {
    int64_t labels = 0, predictions = 0;
    for (int64_t k = 0; k < classes_; ++k) {
      labels += confusion_[static_cast<size_t>(c * classes_ + k)];
      predictions += confusion_[static_cast<size_t>(k * classes_ + c)];
    }
    const int64_t hits = confusion_[static_cast<size_t>(c * classes_ + c)];
    all.push_back({labels, ratio(hits, predictions), ratio(hits, labels),
                   ratio(2 * hits, labels + predictions)});
  }
  return all;
}

}  // namespace fluid
