#include <algorithm>
#include <limits>

#include "ops/metric/statistics.h"
#include "ops/operators.h"

namespace fluid {
namespace {

/// Fraction of the pairs (sample of class 1, sample of class 0) in which the sample of class 1 has
/// the larger score; equal scores count 1/2. `rows`: score and label of each sample.
double area_under_roc(std::span<const double> rows, const Attrs&) {
  std::vector<std::pair<double, bool>> samples;
  for (size_t i = 0; i + 1 < rows.size(); i += 2) samples.emplace_back(rows[i], rows[i + 1] != 0);
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

}  // namespace

OpDef roc_auc_op() {
  return metric_def(
      {.name = "roc_auc",
       .doc =
           "Area under the ROC curve of two classes, as sklearn.metrics.roc_auc_score, exact over "
           "the whole epoch: scores and labels of all samples stay in host memory, 16 bytes a "
           "sample. NaN if a class has no sample or a score is NaN.",
       .inputs = {{"score", "float [N]: scores of class 1"}, {"label", "integer [N]: 0 or 1"}},
       .shape =
           [](const InferCtx& c) {
             const Type &score = c.in(0), &label = c.in(1);
             c.require(is_float(score.dtype) && is_integer(label.dtype) &&
                           score.shape == label.shape && score.shape.rank() == 1 &&
                           score.shape[0].batch,
                       "expects float scores [N] and integer labels [N] with one element per "
                       "sample of the batch, got " +
                           score.str() + " and " + label.str());
             return Shape{score.shape[0], 2};
           },
       .statistics = "[N, 2]: score and label",
       .compute =
           [](const ExpandCtx& c) {
             return stack({cast(c.in(0), f64), cast(c.in(1), f64)}, {.axis = 1});
           },
       .value = area_under_roc});
}

}  // namespace fluid
