#include "executor/trainer/class_values.h"

#include <vector>

#include "ops/functions.h"
#include "ops/operators.h"

namespace fluid {
namespace {

bool has_index_labels(const ir::Op& op) { return !is_float(op.operands[1].dtype()); }

/// Returns the label that the loss ignores (attribute `ignore_index`); nullopt if there is none.
std::optional<int64_t> ignored_class(const ir::Op& op) {
  const auto ignored = op.attrs.get_or("ignore_index", std::vector<int64_t>());
  return ignored.empty() ? std::nullopt : std::optional(ignored.front());
}

/// Class of each element of `x`: 1 if the element is above `threshold`, else 0.
Value binary_class(Value x, double threshold) {
  return cast(greater(x, scalar_like(x, threshold)), i64);
}

bool is_multiclass_loss(const ir::Op& op) {
  return op.name == "softmax_cross_entropy" || op.name == "nll_loss";
}

int64_t num_classes(const ir::Op& op) {
  const Shape& shape = op.operands[0].shape();
  const auto axis = op.attrs.get<int64_t>("axis");
  const auto rank = static_cast<int64_t>(shape.size());
  return shape[static_cast<size_t>(axis < 0 ? axis + rank : axis)].size;
}

/// Returns the name of the feed that holds the labels of loss op `op`. Empty if the labels are
/// computed or not integers.
std::string label_feed(const ir::Op& op) {
  const ir::Op& target = *op.operands[1].op();
  return has_index_labels(op) && target.name == "data" ? target.symbol : "";
}

ClassValues multiclass_values(const ir::Op& op) {
  const Value scores = op.operands[0], target = op.operands[1];
  const auto axis = op.attrs.get<int64_t>("axis");
  return {.label = has_index_labels(op) ? target : argmax(target, {.axis = axis}),
          .prediction = argmax(scores, {.axis = axis}),
          .classes = num_classes(op),
          .ignored_class = has_index_labels(op) ? ignored_class(op) : std::nullopt,
          .label_feed = label_feed(op)};
}

}  // namespace

std::optional<ClassValues> class_values(ir::Graph& graph, const std::set<const ir::Op*>& ops) {
  for (const auto& owned : graph.ops) {
    const ir::Op& op = *owned;  // stays valid when ops are recorded below
    if (!ops.contains(&op)) continue;
    if (is_multiclass_loss(op)) return multiclass_values(op);
    const bool has_logits = op.name == "binary_cross_entropy_with_logits";
    if (has_logits || op.name == "binary_cross_entropy") {
      return ClassValues{.label = binary_class(op.operands[1], 0.5),
                         .prediction = binary_class(op.operands[0], has_logits ? 0 : 0.5),
                         .classes = 2};
    }
  }
  return std::nullopt;
}

std::vector<std::string> class_names(const ir::Graph& graph, const ColumnTable* table) {
  if (table == nullptr) return {};
  for (const auto& op : graph.ops) {
    if (!is_multiclass_loss(*op)) continue;
    std::vector<std::string> names = table->classes_of_feed(label_feed(*op));
    const int64_t classes = num_classes(*op);
    if (names.empty() || std::ssize(names) > classes) continue;
    for (auto i = std::ssize(names); i < classes; ++i) names.push_back(std::to_string(i));
    return names;
  }
  return {};
}

}  // namespace fluid
