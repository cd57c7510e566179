#include "ops/metric/regression.h"
#include "ops/operators.h"

namespace fluid {
namespace {

constexpr size_t kSums = 3;  // sums per output: squared errors, targets, squared targets

int64_t number_of_outputs(const Shape& shape) {
  int64_t outputs = 1;
  for (size_t d = 1; d < shape.size(); ++d) outputs *= shape[d].size;
  return outputs;
}

Value compute_r2(const ExpandCtx& c) {
  const Shape& shape = c.in(0).shape();
  const Shape rows = {shape[0], number_of_outputs(shape)};
  const Value prediction = reshape(cast(c.in(0), f64), rows);
  const Value target = reshape(cast(c.in(1), f64), rows);
  const Value error = prediction - target;
  return concat_statistics({sum(error * error, {.axes = {0}}), sum(target, {.axes = {0}}),
                            sum(target * target, {.axes = {0}}), count_elements(c, {shape[0]})});
}

double r2_of(std::span<const double> statistics, const Attrs&) {
  const size_t outputs = statistics.size() / kSums;
  const double rows = statistics.back();
  double total = 0;
  for (size_t i = 0; i < outputs; ++i) {
    const double error = statistics[i], targets = statistics[outputs + i];
    const double variation = statistics[2 * outputs + i] - targets * targets / rows;
    total += variation > 0 ? 1 - error / variation : (error == 0 ? 1 : 0);
  }
  return total / static_cast<double>(outputs);
}

}  // namespace

OpDef r2_score_op() {
  return metric_def(
      {.name = "r2_score",
       .doc =
           "Coefficient of determination, as sklearn.metrics.r2_score: 1 minus the sum of squared "
           "errors divided by the sum of squared differences of the targets from their mean. The "
           "mean over the outputs [D...]. Targets whose mean is 1e6 times their deviation lose "
           "4 digits.",
       .inputs = {{"prediction", "float tensor [N] or [N, D...]"},
                  {"target", "of prediction's type"}},
       .shape =
           [](const InferCtx& c) {
             require_regression(c);
             const Shape& shape = c.in(0).shape;
             c.require(!shape.empty() && std::none_of(shape.begin() + 1, shape.end(),
                                                      [](const Dim& d) { return d.batch; }),
                       "expects predictions [N, D...], got " + c.in(0).str());
             return Shape{static_cast<int64_t>(kSums) * number_of_outputs(shape) + 1};
           },
       .statistics =
           "[3 D + 1]: sums of squared errors, of targets and of squared targets by output; N",
       .compute = compute_r2,
       .value = r2_of});
}

}  // namespace fluid
