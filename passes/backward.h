#pragma once

#include <map>
#include <set>

#include "ir/graph.h"

namespace fluid {

/// Reverse-mode differentiation of values with respect to other values of a graph. Appends the ops
/// that compute the gradients.
class Backward {
 public:
  /// Differentiates `ys`. The paths from `xs` to `ys` must lie within the ops that the graph has
  /// now. Appended ops get the role `role`. `reason` completes the message "<op> has no gradient,
  /// but ...".
  Backward(ir::Graph& graph, const Values& ys, const Values& xs, ir::Role role, std::string reason);

  /// Sets the gradient of `y`, one of `ys`. If it has one already, adds `gradient`.
  void seed(Value y, Value gradient);
  /// Sets the gradient of `y` to ones, as for the sum of its elements. Returns the ones.
  Value seed_with_ones(Value y);

  /// Makes run() keep apart the gradients that reach `x` from its readers. contributions(x) returns
  /// them, and gradient(x) is null.
  void keep_apart(Value x) { contributions_[x]; }

  /// Appends the gradients. Throws UserError if an op between `xs` and `ys` has no gradient.
  void run();

  Value gradient(Value x) const;  ///< null if no seeded y depends on x
  const Values& contributions(Value x) const { return contributions_.at(x); }

 private:
  void find_active_values();
  void differentiate(ir::Op& op);
  Values gradients_of_operands(ir::Op& op, const Values& dout);
  void accumulate(Value of, Value gradient, const Loc& loc);

  ir::Graph& graph_;
  Values ys_;
  ir::Role role_;
  std::string reason_;
  size_t count_;            ///< number of ops before the appended ones
  std::set<Value> active_;  ///< values on a path from xs to y
  std::map<Value, Value> gradients_;
  std::map<Value, Values> contributions_;  ///< the keys are the values of keep_apart()
};

}  // namespace fluid
