#pragma once

// Scalar expressions compiled to a list of instructions, and the functions they are made of, for
// the interpreters.

#include <functional>
#include <map>
#include <vector>

#include "ops/expr.h"

namespace fluid::testing {

/// A scalar of either kind: floats use f, integers and bool use i.
struct Number {
  double f = 0;
  int64_t i = 0;
};

/// A function of one float by the C library, in double precision: neg, abs, sqrt, exp ... cos.
double apply_elementary(ScalarOp op, double x);
/// std::fmod(a, b), moved by b if the signs differ: torch.remainder.
double floored_remainder(double a, double b);

/// Result of a comparison: eq, ne, lt, le, gt or ge.
template <class T>
bool compare(ScalarOp op, T a, T b) {
  switch (op) {
    case ScalarOp::eq:
      return a == b;
    case ScalarOp::ne:
      return a != b;
    case ScalarOp::lt:
      return a < b;
    case ScalarOp::le:
      return a <= b;
    case ScalarOp::gt:
      return a > b;
    default:
      return a >= b;
  }
}

/// Reads operand `operand` at `index`, which is in range.
using ReadElement = std::function<Number(size_t operand, const std::vector<int64_t>& index)>;

class ScalarProgram {
 public:
  /// `extents`: the shape of each operand. `round`: whether each value of dtype f32 is rounded, not
  /// only the last one.
  ScalarProgram(const Expr& e, std::vector<std::vector<int64_t>> extents, bool round = false);

  /// The value with the loop variables set. Sets `index_error` when a checked index is out of
  /// range.
  Number run(const std::vector<int64_t>& vars, int64_t batch, const ReadElement& read,
             bool& index_error);

 private:
  struct Instruction {
    const ExprNode* node;
    std::vector<size_t> args;
  };
  Number read(const Instruction& in, const ReadElement& read, bool& index_error) const;

  Expr root_;
  std::vector<std::vector<int64_t>> extents_;
  bool round_;
  std::vector<Instruction> instructions_;
  std::vector<Number> values_;
};

}  // namespace fluid::testing
