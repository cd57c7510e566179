#include "executor/session/rejection.h"

#include <fmt/format.h>

#include "ops/group.h"
#include "ops/source_kind.h"
#include "passes/memory_plan.h"

namespace fluid {
namespace {

/// Returns the operand of `fused` that is passed to its body as argument `v`; null if the body
/// computes `v`.
Value operand_of(const ir::Op& fused, Value v) {
  if (source_kind(*v.op()) != SourceKind::argument) return {};
  return fused.operands.at(static_cast<size_t>(v.op()->attrs.get<int64_t>("index")));
}

/// Returns the location of the first sample that contains `value`: ", in t.csv:7" or
/// ", in sample 3 of the batch". Returns "" if no sample contains the value.
std::string sample_text(const ir::Op& feed, const RejectedFeeds& rejected, int64_t value) {
  const std::string found = rejected.find_sample ? rejected.find_sample(feed.symbol, value) : "";
  if (!found.empty()) return ", in " + found;
  const Tensor* fed = rejected.feeds.find(feed.symbol);
  const Shape& shape = feed.results.at(0).type.shape;
  if (fed == nullptr || shape.empty() || !shape.front().batch) return "";
  for (int64_t i = 0; i < fed->numel(); ++i) {
    if (fed->at(i) != static_cast<double>(value)) continue;
    return fmt::format(", in sample {} of the batch",
                       rejected.first + i / (fed->numel() / rejected.feeds.size));
  }
  return "";
}

/// Returns the name of the op that the user recorded, and the layer that recorded it, if any:
/// "gather in embedding0".
std::string op_in_layer(const ir::Op& op) {
  const std::string name = op.attrs.get_or("part_of", op.name);
  return op.scope.empty() ? name : name + " in " + op.scope;
}

/// Returns a prefix such as "in the previous step: ". Returns "" if the call that reports the error
/// also ran the step.
std::string step_text(const RejectedStep& step) {
  if (step.reported_by == step.number) return "";
  if (step.reported_by == step.number + 1) return "in the previous step: ";
  if (step.reported_by != 0) return "in the second step before this one: ";
  return step.last == step.number ? "in the last step: " : "in the step before the last one: ";
}

}  // namespace

UserError rejection_error(const StepStatus& status, const RejectedFeeds& rejected) {
  const ir::Op& fused = *status.op;
  const Value read = fused.operands.at(static_cast<size_t>(status.operand));
  const ir::Op* op = &fused;
  std::string what = fmt::format("index {}", status.index), range, sample;
  const auto& body = fused.attrs.get<GraphRef>("body").name;
  for (const auto& inner : fused.graph()->program().find(body)->ops) {
    const auto checked = checked_operands(*inner);
    Value from, index;
    size_t dim = 0;
    for (size_t i = 0; i < inner->operands.size(); ++i) {
      const Value v = inner->operands[i];
      const auto at = checked.find(static_cast<int64_t>(i));
      if (at != checked.end() && operand_of(fused, v) == read) {
        from = v;
        dim = at->second;
      } else if (!is_float(v.dtype())) {
        index = v;
      }
    }
    if (!from || !index) continue;
    op = inner.get();
    if (dim < from.shape().size()) {
      range = fmt::format(" [0, {})", from.shape()[dim].at(rejected.feeds.size));
    }
    const Value fed = operand_of(fused, root_of(index));
    if (!fed) continue;
    const ir::Op* root = root_of(fed).op();
    if (source_kind(*root) != SourceKind::feed) continue;
    what = fmt::format("value {} of feed '{}'", status.index, root->symbol);
    sample = sample_text(*root, rejected, status.index);
  }
  return UserError(op->loc,
                   fmt::format("{}: {} is out of range{}{}; the step was not applied{}",
                               op_in_layer(*op), what, range, sample,
                               rejected.later_step_in_flight ? ", nor was the step after it" : ""));
}

UserError with_step_position(const UserError& error, const RejectedStep& step) {
  return UserError(step_text(step) + error.what());
}

}  // namespace fluid
