#include "ops/metric/confusion.h"

#include <cmath>

#include "ops/loss/label.h"
#include "ops/operators.h"

namespace fluid {
namespace {

/// Whether the scores have a class axis. If not, the classification is binary, and each score is
/// for class 1.
bool has_class_axis(const Type& scores, const Type& label) {
  return scores.shape.rank() > label.shape.rank();
}

Shape infer_confusion(const InferCtx& c) {
  const Type &x = c.in(0), &label = c.in(1);
  const auto average = c.attr<std::string>("average");
  const bool known =
      average == "binary" || average == "micro" || average == "macro" || average == "weighted";
  c.require(known, "attribute 'average' is '" + average +
                       "', which is not binary, micro, macro or weighted");
  int64_t classes = 2;
  if (has_class_axis(x, label)) {
    require_labels(c);
    classes = x.shape.back().size;
  } else {
    c.require(is_float(x.dtype) && is_integer(label.dtype) && x.shape == label.shape,
              "expects scores [..., C] or scores " + label.shape.str() +
                  " of class 1 for integer labels, got " + x.str() + " and " + label.str());
  }
  c.require(average != "binary" || classes == 2, "average 'binary' needs two classes, but " +
                                                     x.str() + " has " + std::to_string(classes));
  return {classes, classes};
}

Value compute_confusion(const ExpandCtx& c) {
  const Value x = c.in(0), label = cast(c.in(1), i64);
  const int64_t classes = c.op().results[0].type.shape[0].size;
  const Value predicted = has_class_axis(x.type(), label.type())
                              ? argmax(x, {.axis = -1})
                              : cast(greater(x, scalar_like(x, c.attr<double>("threshold"))), i64);
  const Value cell = label * static_cast<double>(classes) + predicted;
  const Value ones = fill(*c.op().graph(), {.type = Type{f64, label.shape(), {}}, .value = 1});
  const Value counts = segment_sum(ones, cell, {.segments = classes * classes});
  return reshape(counts, {classes, classes});
}

std::vector<ClassCounts> counts_by_class(std::span<const double> matrix) {
  const auto classes = static_cast<size_t>(std::lround(std::sqrt(matrix.size())));
  std::vector<ClassCounts> counts(classes);
  for (size_t label = 0; label < classes; ++label) {
    for (size_t predicted = 0; predicted < classes; ++predicted) {
      const double samples = matrix[label * classes + predicted];
      if (label == predicted) {
        counts[label].true_positives = samples;
      } else {
        counts[label].false_negatives += samples;
        counts[predicted].false_positives += samples;
      }
    }
  }
  return counts;
}

double averaged_score(std::span<const double> matrix, const std::string& average,
                      const std::function<double(const ClassCounts&)>& score) {
  const std::vector<ClassCounts> counts = counts_by_class(matrix);
  if (average == "binary") return score(counts[1]);
  ClassCounts total;
  double sum = 0, weights = 0;
  for (const ClassCounts& c : counts) {
    total.true_positives += c.true_positives;
    total.false_positives += c.false_positives;
    total.false_negatives += c.false_negatives;
    const double support = c.true_positives + c.false_negatives;
    const bool occurs = support + c.false_positives > 0;
    const double weight = average == "weighted" ? support : (occurs ? 1 : 0);
    sum += weight * score(c);
    weights += weight;
  }
  return average == "micro" ? score(total) : ratio_or_zero(sum, weights);
}

}  // namespace

double ratio_or_zero(double a, double b) { return b == 0 ? 0 : a / b; }

OpDef confusion_metric_def(std::string name, const std::string& formula,
                           std::function<double(const ClassCounts&)> score) {
  return metric_def(
      {.name = std::move(name),
       .doc =
           formula +
           ", where TP, FP and FN are the true positives, false positives and false negatives of "
           "a class; 0 if the divisor is 0. The predicted class is the argmax of the scores, as in "
           "accuracy. Equals scikit-learn's function of this purpose over the whole epoch.",
       .inputs = {{"x", "float scores [..., C], or [...]: scores of class 1 of two classes"},
                  {"label", "integer class indices [...]"}},
       .attrs = {{"average", std::string("macro"),
                  "binary: the score of class 1 of two classes. micro: the score of the counts of "
                  "all classes. macro: the mean over the classes that occur among the labels or "
                  "predictions. weighted: their mean, weighted by the number of labels"},
                 {"threshold", 0.0, "without a class axis, larger scores predict class 1"}},
       .shape = infer_confusion,
       .statistics = "[C, C]: number of samples by label and predicted class",
       .compute = compute_confusion,
       .value = [score = std::move(score)](std::span<const double> matrix, const Attrs& attrs) {
         return averaged_score(matrix, attrs.get<std::string>("average"), score);
       }});
}

}  // namespace fluid
