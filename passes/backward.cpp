#include "passes/backward.h"

#include <algorithm>

#include "ops/functions.h"
#include "ops/scan.h"
#include "ops/table.h"
#include "passes/rewrite.h"
#include "passes/scan_gradient.h"

namespace fluid {

Backward::Backward(ir::Graph& graph, const Values& ys, const Values& xs, ir::Role role,
                   std::string reason)
    : graph_(graph),
      ys_(ys),
      role_(role),
      reason_(std::move(reason)),
      count_(graph.ops.size()),
      active_(xs.begin(), xs.end()) {}

void Backward::seed(Value y, Value gradient) { accumulate(y, gradient, y.op()->loc); }

Value Backward::seed_with_ones(Value y) {
  ir::ScopedRecording as(graph_, {role_, y.op()->loc, y.op()->scope, ""});
  const Value ones = fill(graph_, {.type = y.type(), .value = 1.0}, y.op()->loc);
  seed(y, ones);
  return ones;
}

void Backward::run() {
  find_active_values();
  for (size_t i = count_; i-- > 0;) differentiate(*graph_.ops[i]);
}

Value Backward::gradient(Value x) const {
  const auto found = gradients_.find(x);
  return found == gradients_.end() ? Value() : found->second;
}

bool Backward::is_ancestor(Value x) const { return ancestors(ys_).contains(x.op()); }

void Backward::find_active_values() {
  const std::set<const ir::Op*> needed = ancestors(ys_);
  for (size_t i = 0; i < count_; ++i) {
    ir::Op& op = *graph_.ops[i];
    const bool is_active = needed.contains(&op) && std::ranges::any_of(op.operands, [&](Value v) {
                             return active_.contains(v);
                           });
    for (size_t r = 0; is_active && r < op.results.size(); ++r) {
      if (is_float(op.results[r].type.dtype)) active_.insert(op.result(static_cast<int>(r)));
    }
  }
}

void Backward::differentiate(ir::Op& op) {
  Values dout;
  for (size_t r = 0; r < op.results.size(); ++r) {
    dout.push_back(gradient(op.result(static_cast<int>(r))));
  }
  const bool reached = std::ranges::any_of(dout, [](Value v) { return static_cast<bool>(v); });
  const bool is_active =
      std::ranges::any_of(op.operands, [&](Value v) { return active_.contains(v); });
  if (!reached || !is_active) return;
  ir::ScopedRecording as(graph_, {role_, op.loc, op.scope, ""});
  const size_t first = graph_.ops.size();
  const Values din = gradients_of_operands(op, dout);
  copy_loc_and_amp_exclusion(op, graph_, first);
  for (size_t i = 0; i < din.size(); ++i) {
    const Value of = op.operands[i];
    if (!din[i] || !active_.contains(of)) continue;
    check(din[i].type() == of.type(), [&] {
      return op.name + ": the gradient of operand " + std::to_string(i) + " is " +
             din[i].type().str() + ", not " + of.type().str();
    });
    accumulate(of, din[i], op.loc);
  }
}

Values Backward::gradients_of_operands(ir::Op& op, const Values& dout) {
  if (is_scan(op)) {
    std::vector<bool> active;
    for (const Value& v : op.operands) active.push_back(active_.contains(v));
    return append_scan_gradient(op, dout, active, reason_);
  }
  const auto* grad = std::get_if<GradFn>(&*def_of(op).grad);
  if (grad == nullptr) {
    throw UserError(op.loc, op.name + " has no gradient, but " + reason_ + " through it");
  }
  Values din = (*grad)(GradCtx(op, dout));
  check(din.size() == op.operands.size(),
        [&] { return op.name + ": the gradient has one value an operand"; });
  return din;
}

void Backward::accumulate(Value x, Value gradient, const Loc& loc) {
  if (const auto apart = contributions_.find(x); apart != contributions_.end()) {
    apart->second.push_back(gradient);
    return;
  }
  auto [it, first] = gradients_.try_emplace(x, gradient);
  if (!first) it->second = add(it->second, gradient, loc);
}

}  // namespace fluid
