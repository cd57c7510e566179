#pragma once

#include <map>
#include <set>

#include "ir/graph.h"

namespace fluid {

/// Reverse-mode differentiation of values with respect to other values of a graph. Appends the ops
/// that compute the gradients.
class Backward {
 public:
  /// Differentiates `ys` with respect to `xs`. Covers the ops that are in the graph at this time:
  /// ops appended later, such as the gradient ops, are not differentiated. Appended ops get the
  /// role `role`. `reason` completes the error message "<op> has no gradient, but ...".
  Backward(ir::Graph& graph, const Values& ys, const Values& xs, ir::Role role, std::string reason);

  /// Adds `gradient` to the gradient of `y`, one of `ys`. A value that is never seeded has gradient
  /// 0.
  void seed(Value y, Value gradient);
  /// Seeds `y` with ones, which differentiates the sum of the elements of `y`. Returns the tensor
  /// of ones.
  Value seed_with_ones(Value y);

  /// Makes run() collect the gradients that the users of `x` contribute, without summing them.
  /// contributions(x) returns these gradients, and gradient(x) is null.
  void collect_contributions(Value x) { contributions_[x]; }

  /// Appends the ops that compute the gradients. Throws UserError if an op between `xs` and `ys`
  /// has no gradient.
  void run();

  /// Returns the gradient of x. Null (a gradient of 0) if no path of differentiable ops leads from
  /// x to a seeded value.
  Value gradient(Value x) const;
  /// Whether a value of `ys` depends on x.
  bool is_ancestor(Value x) const;
  const Values& contributions(Value x) const { return contributions_.at(x); }

 private:
  void find_active_values();
  void differentiate(ir::Op& op);
  Values gradients_of_operands(ir::Op& op, const Values& dout);
  void accumulate(Value x, Value gradient, const Loc& loc);

  ir::Graph& graph_;
  Values ys_;
  ir::Role role_;
  std::string reason_;
  size_t count_;            ///< number of ops in the graph before gradients are appended
  std::set<Value> active_;  ///< values on a path from xs to ys
  std::map<Value, Value> gradients_;
  /// Value passed to collect_contributions() -> its contributions.
  std::map<Value, Values> contributions_;
};

}  // namespace fluid
