#include <algorithm>
#include <limits>

#include "ops/metric/statistics.h"
#include "ops/operators.h"

namespace fluid {
namespace {

/// A score of a class, and whether the sample is of this class.
using ScoredSample = std::pair<double, bool>;

/// Fraction of the pairs (sample of the class, other sample) in which the sample of the class has
/// the larger score; equal scores count 1/2. Sorts `samples`.
double area_under_roc(std::vector<ScoredSample>& samples) {
  std::ranges::sort(samples);
  double negatives = 0, positives = 0, ordered_pairs = 0;
  for (size_t begin = 0, end = 0; begin < samples.size(); begin = end) {
    double equal_negatives = 0, equal_positives = 0;
    for (; end < samples.size() && samples[end].first == samples[begin].first; ++end)
      (samples[end].second ? equal_positives : equal_negatives) += 1;
    if (end == begin) return std::numeric_limits<double>::quiet_NaN();  // NaN score: NaN != NaN
    ordered_pairs += equal_positives * (negatives + equal_negatives / 2);
    negatives += equal_negatives;
    positives += equal_positives;
  }
  return ordered_pairs / (positives * negatives);
}

/// Mean of the areas of all classes, each against the rest. Of two classes, only class 1 counts.
/// `rows`: scores and label of each sample.
double mean_area_under_roc(std::span<const double> rows, const Attrs& attrs) {
  const auto classes = static_cast<size_t>(attrs.get<int64_t>("classes"));
  const size_t scores = classes == 2 ? 1 : classes, width = scores + 1;
  for (size_t row = 0; row + width <= rows.size(); row += width) {
    const double label = rows[row + scores];
    const bool is_class = label >= 0 && label < static_cast<double>(classes);
    if (!is_class) return std::numeric_limits<double>::quiet_NaN();
  }
  double sum = 0;
  for (size_t score = 0; score < scores; ++score) {
    const auto label = static_cast<double>(classes == 2 ? 1 : score);
    std::vector<ScoredSample> samples;
    for (size_t row = 0; row + width <= rows.size(); row += width) {
      samples.emplace_back(rows[row + score], rows[row + scores] == label);
    }
    sum += area_under_roc(samples);
  }
  return sum / static_cast<double>(scores);
}

/// Checks the operands of roc_auc. Returns the number of scores of a sample.
int64_t check_scores(const InferCtx& c) {
  const Type &score = c.in(0), &label = c.in(1);
  const auto classes = c.attr<int64_t>("classes");
  c.require(classes >= 2, "attribute 'classes' is " + std::to_string(classes) + ", less than 2");
  Shape expected = label.shape;
  if (classes > 2) expected.emplace_back(classes);
  const bool is_row_of_batch = label.shape.rank() == 1 && label.shape[0].batch;
  c.require(is_float(score.dtype) && is_integer(label.dtype) && is_row_of_batch &&
                score.shape == expected,
            "expects float scores [N" + (classes > 2 ? ", " + std::to_string(classes) : "") +
                "] and integer labels [N] with one element per sample of the batch, got " +
                score.str() + " and " + label.str());
  return classes > 2 ? classes : 1;
}

}  // namespace

OpDef roc_auc_op() {
  return metric_def(
      {.name = "roc_auc",
       .doc =
           "Area under the ROC curve, as sklearn.metrics.roc_auc_score, exact over the whole "
           "epoch: scores and labels of all samples stay in host memory, 8 bytes each. With more "
           "than two `classes`, the mean over the classes, each against the rest "
           "(multi_class=\"ovr\", average=\"macro\"). NaN if a class has no sample, a label is no "
           "class or a score is NaN.",
       .inputs = {{"score",
                   "float [N]: scores of class 1; or [N, classes]: scores, such as "
                   "probabilities, of more than two classes"},
                  {"label", "integer [N]: class indices"}},
       .attrs = {{"classes", int64_t{2}, "number of classes"}},
       .shape =
           [](const InferCtx& c) {
             const int64_t scores = check_scores(c);
             return Shape{c.in(1).shape[0], scores + 1};
           },
       .statistics = "[N, 1 + scores of a sample]: scores and label",
       .compute =
           [](const ExpandCtx& c) {
             Shape column = c.in(1).shape();
             column.emplace_back(1);
             const Value label = reshape(cast(c.in(1), f64), column);
             const bool is_binary = c.attr<int64_t>("classes") == 2;
             const Value score = cast(c.in(0), f64);
             return concat({is_binary ? reshape(score, column) : score, label}, {.axis = 1});
           },
       .value = mean_area_under_roc});
}

}  // namespace fluid
