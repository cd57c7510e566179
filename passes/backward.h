#pragma once

#include <map>
#include <set>

#include "ir/graph.h"

namespace fluid {

/// Reverse-mode differentiation of a value with respect to other values of a graph. Appends the ops
/// that compute the gradients.
class Backward {
 public:
  /// Differentiates the sum of the elements of `y`. The path from `xs` to `y` must lie within the
  /// ops that the graph has now. Appended ops get the role `role`. `reason` completes the message
  /// "<op> has no gradient, but ...".
  Backward(ir::Graph& graph, Value y, const Values& xs, ir::Role role, std::string reason);

  /// Appends the gradients. Throws UserError if an op between `xs` and `y` has no gradient.
  void run();

  Value seed() const { return seed_; }  ///< the gradient of y with respect to itself: ones
  Value gradient(Value x) const;        ///< null if y does not depend on x

 private:
  void find_active_values();
  void append_seed();
  void differentiate(ir::Op& op);
  void accumulate(const ir::Op& op, size_t operand, Value gradient);

  ir::Graph& graph_;
  Value y_;
  ir::Role role_;
  std::string reason_;
  size_t count_;            ///< number of ops before the appended ones
  std::set<Value> active_;  ///< values on a path from xs to y
  std::map<Value, Value> gradients_;
  Value seed_;
};

}  // namespace fluid
