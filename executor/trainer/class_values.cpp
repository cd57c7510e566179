#include "executor/trainer/class_values.h"

#include <vector>

#include "ops/functions.h"
#include "ops/operators.h"

namespace fluid {
namespace {

bool has_index_labels(const ir::Op& op) { return !is_float(op.operands[1].dtype()); }

/// The label without a loss: attribute `ignore_index`.
std::optional<int64_t> ignored_class(const ir::Op& op) {
  const auto ignored = op.attrs.get_or("ignore_index", std::vector<int64_t>());
  return ignored.empty() ? std::nullopt : std::optional(ignored.front());
}

/// Predicted class of each element of a binary output: 1 where `x` is above `threshold`, else 0.
Value binary_class(Value x, double threshold) {
  return cast(greater(x, scalar_like(x, threshold)), i64);
}

ClassValues of_scores(const ir::Op& op) {
  const Value scores = op.operands[0], target = op.operands[1];
  const auto axis = op.attrs.get<int64_t>("axis");
  const auto rank = static_cast<int64_t>(scores.shape().size());
  return {
      .label = has_index_labels(op) ? target : argmax(target, {.axis = axis}),
      .prediction = argmax(scores, {.axis = axis}),
      .classes = scores.shape()[static_cast<size_t>(axis < 0 ? axis + rank : axis)].size,
      .ignored_class = has_index_labels(op) ? ignored_class(op) : std::nullopt,
      .label_feed = has_index_labels(op) && target.op()->name == "data" ? target.op()->symbol : ""};
}

}  // namespace

std::optional<ClassValues> class_values(ir::Graph& graph, const std::set<const ir::Op*>& ops) {
  for (const auto& owned : graph.ops) {
    const ir::Op& op = *owned;  // stays valid when recording adds ops
    if (!ops.contains(&op)) continue;
    if (op.name == "softmax_cross_entropy" || op.name == "nll_loss") return of_scores(op);
    const bool has_logits = op.name == "binary_cross_entropy_with_logits";
    if (has_logits || op.name == "binary_cross_entropy") {
      return ClassValues{.label = binary_class(op.operands[1], 0.5),
                         .prediction = binary_class(op.operands[0], has_logits ? 0 : 0.5),
                         .classes = 2};
    }
  }
  return std::nullopt;
}

}  // namespace fluid
