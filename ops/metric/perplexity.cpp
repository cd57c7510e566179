#include <cmath>

#include "ops/loss/label.h"
#include "ops/metric/statistics.h"
#include "ops/operators.h"

namespace fluid {
namespace {

Value compute_perplexity(const ExpandCtx& c) {
  const std::vector<int64_t> ignored = c.attr<std::vector<int64_t>>("ignore_index");
  const Value x = cast(c.in(0), f64), label = cast(c.in(1), i64);
  const int64_t classes = x.shape().back().size;
  const Value rows = reshape(x, {label.shape().numel(), classes});
  const Value labels = reshape(label, {label.shape().numel()});
  const Value loss = softmax_cross_entropy(
      rows, labels, {.ignore_index = ignored, .reduction = std::string("sum")});
  Value count = count_elements(c, label.shape());
  for (const int64_t i : ignored)
    count = count - sum(cast(equal(labels, scalar_like(labels, static_cast<double>(i))), f64));
  return concat_statistics({loss, count});
}

}  // namespace

OpDef perplexity_op() {
  return metric_def(
      {.name = "perplexity",
       .doc =
           "Exponential of the mean of -log(softmax(x)[label]) over the rows of the epoch, without "
           "the rows whose label is ignore_index.",
       .inputs = {{"x", "float logits [..., C]"},
                  {"label", "integer class indices, x's shape without C"}},
       .attrs = {{"ignore_index", std::vector<int64_t>{}, "label to ignore; empty: none"}},
       .shape =
           [](const InferCtx& c) {
             require_labels(c);
             c.require(c.attr<std::vector<int64_t>>("ignore_index").size() <= 1,
                       "attribute 'ignore_index' holds at most one label");
             return Shape{2};
           },
       .statistics = "[2]: sum of the losses, number of rows that count",
       .compute = compute_perplexity,
       .value = [](std::span<const double> statistics,
                   const Attrs& attrs) { return std::exp(mean_of_statistics(statistics, attrs)); },
       .flops = [](const CostCtx& c) { return 14 * c.numel_in(0); }});
}

}  // namespace fluid
