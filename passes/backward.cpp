#include "passes/backward.h"

#include <algorithm>

#include "ops/functions.h"
#include "ops/table.h"
#include "passes/rewrite.h"

namespace fluid {

Backward::Backward(ir::Graph& graph, Value y, const Values& xs, ir::Role role, std::string reason)
    : graph_(graph),
      y_(y),
      role_(role),
      reason_(std::move(reason)),
      count_(graph.ops.size()),
      active_(xs.begin(), xs.end()) {}

void Backward::run() {
  find_active_values();
  append_seed();
  for (size_t i = count_; i-- > 0;) differentiate(*graph_.ops[i]);
}

Value Backward::gradient(Value x) const {
  const auto found = gradients_.find(x);
  return found == gradients_.end() ? Value() : found->second;
}

void Backward::find_active_values() {
  const std::set<const ir::Op*> needed = ancestors({y_});
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

void Backward::append_seed() {
  ir::ScopedRecording as(graph_, {role_, y_.op()->loc, y_.op()->scope, ""});
  seed_ = fill(graph_, {.type = y_.type(), .value = 1.0}, y_.op()->loc);
  gradients_[y_] = seed_;
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
  const auto* grad = std::get_if<GradFn>(&*def_of(op).grad);
  if (grad == nullptr) {
    throw UserError(op.loc, op.name + " has no gradient, but " + reason_ + " through it");
  }
  ir::ScopedRecording as(graph_, {role_, op.loc, op.scope, ""});
  const size_t first = graph_.ops.size();
  const Values din = (*grad)(GradCtx(op, dout));
  copy_loc_and_no_amp(op, graph_, first);
  check(din.size() == op.operands.size(),
        [&] { return op.name + ": the gradient has one value an operand"; });
  for (size_t i = 0; i < din.size(); ++i) {
    if (din[i] && active_.contains(op.operands[i])) accumulate(op, i, din[i]);
  }
}

void Backward::accumulate(const ir::Op& op, size_t operand, Value gradient) {
  const Value of = op.operands[operand];
  check(gradient.type() == of.type(), [&] {
    return op.name + ": the gradient of operand " + std::to_string(operand) + " is " +
           gradient.type().str() + ", not " + of.type().str();
  });
  auto [it, first] = gradients_.try_emplace(of, gradient);
  if (!first) it->second = add(it->second, gradient, op.loc);
}

}  // namespace fluid
