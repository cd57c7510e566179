#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ir/function_ref.h"
#include "ir/type.h"

namespace fluid {

/// Operator of a scalar expression node.
enum class ScalarOp : uint8_t {
  constant,  // a literal: `fvalue` for floats, `ivalue` for integers and bool
  var,       // an i64 loop variable; ivalue: its id
  batch,     // the batch size as i64
  read,      // an element of an operand; ivalue: operand index; args: one i64 index per dimension
  // The operators from `add` to `cast` are arithmetic, comparisons, logic and conversion.
  add,
  sub,
  mul,
  div,
  floordiv,
  mod,
  min,
  max,
  pow,
  fma,      // args a, b, c: a * b + c, rounded once where the CPU or GPU has an fma instruction
  product,  // args a, b: the body a * b of a sum reduction, which accumulates with an fma
  neg,
  abs,
  sqrt,
  rsqrt,
  exp,
  exp2,
  expm1,
  log,
  log2,
  log1p,
  sinh,
  cosh,
  tanh,
  asin,
  acos,
  atan,
  erf,
  sigmoid,
  floor,
  tan,
  sin,
  cos,
  eq,
  ne,
  lt,
  le,
  gt,
  ge,  // eq, ne, lt, le, gt and ge are comparisons: the result is bool
  logical_and,
  logical_or,
  logical_not,
  isfinite,
  select,  // args: bool condition, value if true, value if false
  cast,    // converts args[0] to dtype; float to integer truncates; to bool: args[0] != 0
  // `load`, `let`, `acc` and `lanes` occur only in kernel IR (ops/kernel_ir.h), and `let` also in
  // FusionRoot::body.
  load,   // element args[0] (i64) of buffer `ivalue`; fvalue if the optional mask args[1] is false
  let,    // the value that the Let statement with id `ivalue` defines
  acc,    // an element of the accumulator array with id `ivalue`; args: constant indices
  lanes,  // horizontal reduction of the lanes of accumulator args[0], in a fixed tree order
  // `philox` occurs in op bodies and in kernel IR.
  philox,  // 32 random bits as i64 in [0, 2^32); args: seed, counter, stream, index (i64)
};

class Expr;

/// An immutable node of an expression DAG. Several expressions may share a node.
struct ExprNode {
  ScalarOp op = ScalarOp::constant;
  DType dtype = DType::f32;  ///< dtype of the value; f32 for elements of f16 and bf16 tensors
  std::vector<Expr> args;
  int64_t ivalue = 0;
  double fvalue = 0;
  /// For `read`: whether an out-of-range index is legal and yields `fvalue`.
  bool guarded = false;
  /// For `read`: whether the index depends on data. The kernel clamps an out-of-range index and
  /// sets the error word.
  bool checked = false;
};

/// A scalar expression, such as the body of a Map or a Reduce. Index expressions are i64. Both
/// operands of an arithmetic operator have the same dtype; a C++ number is converted to the dtype
/// of the other operand. `div` takes floats, `floordiv` integers. mod(a, n) has the sign of n, as
/// in Python. For floats it is exact if a and n have the same sign, and rounded otherwise.
class Expr {
 public:
  Expr() = default;
  explicit Expr(std::shared_ptr<const ExprNode> node) : node_(std::move(node)) {}
  static Expr constant(DType dtype, double value);
  static Expr index(int64_t value);  ///< an i64 constant
  static Expr var(int64_t id);
  static Expr make(ScalarOp op, DType dtype, std::vector<Expr> args);

  explicit operator bool() const { return node_ != nullptr; }
  const ExprNode& node() const { return *node_; }
  const ExprNode* get() const { return node_.get(); }
  ScalarOp op() const { return node_->op; }
  DType dtype() const { return node_->dtype; }
  const std::vector<Expr>& args() const { return node_->args; }
  /// Returns a readable form, such as "max(read0[i0, i1] + 1.0, 0.0)".
  std::string str() const;

 private:
  std::shared_ptr<const ExprNode> node_;
};

/// Whether `e` is a constant. The second overload also compares the value with `value`.
bool is_constant(const Expr& e);
bool is_constant(const Expr& e, double value);
/// Whether `a` and `b` are structurally equal; they need not share nodes.
bool structurally_equal(const Expr& a, const Expr& b);

// Arithmetic operators that fold constants, x - 0, x * 1 and (x + 0) + 0, and for integers also x +
// 0 and x * 0.
Expr operator+(const Expr& a, const Expr& b);
Expr operator-(const Expr& a, const Expr& b);
Expr operator*(const Expr& a, const Expr& b);
Expr operator/(const Expr& a, const Expr& b);
Expr operator-(const Expr& a);
Expr operator+(const Expr& a, double b);
Expr operator-(const Expr& a, double b);
Expr operator*(const Expr& a, double b);
Expr operator/(const Expr& a, double b);
Expr operator+(double a, const Expr& b);
Expr operator-(double a, const Expr& b);
Expr operator*(double a, const Expr& b);
Expr operator/(double a, const Expr& b);

namespace scalar {

Expr floordiv(const Expr& a, const Expr& b);  ///< folds (a * n + b) / n to a + b / n
Expr mod(const Expr& a, const Expr& b);
Expr min(const Expr& a, const Expr& b);
Expr max(const Expr& a, const Expr& b);  ///< NaN if a or b is NaN, as in PyTorch
Expr pow(const Expr& a, const Expr& b);
Expr compare(ScalarOp op, const Expr& a, const Expr& b);
Expr logical_and(const Expr& a, const Expr& b);
Expr logical_or(const Expr& a, const Expr& b);
Expr logical_not(const Expr& a);
Expr select(const Expr& condition, const Expr& then, const Expr& otherwise);
/// Casts `a` to compute_dtype(dtype).
Expr cast(const Expr& a, DType dtype);
/// Applies a unary operator: neg, abs, sqrt, ..., cos or isfinite.
Expr unary(ScalarOp op, const Expr& a);
/// Returns 32 random bits of Philox4x32-10 (Salmon et al., SC'11) as an i64 in [0, 2^32). The key
/// is `seed`; the counter is (index, counter, stream).
Expr philox(const Expr& seed, const Expr& counter, const Expr& stream, const Expr& index);

}  // namespace scalar

/// Returns `e` with other arguments, without folding.
Expr with_args(const Expr& e, std::vector<Expr> args);
/// Applies `change` to each argument of `e`, and returns the new arguments. Returns an empty vector
/// if no argument changes.
std::vector<Expr> changed_args(const Expr& e, FunctionRef<Expr(const Expr&)> change);
/// Rebuilds `e` bottom-up. Calls `replace` for each node after its arguments have been rewritten.
/// `replace` returns a replacement, or a null Expr to keep the node. Visits a shared node once.
Expr rewrite(const Expr& e, FunctionRef<Expr(const Expr&)> replace);
/// Calls `visit` once for every distinct node of `e`, in topological order: arguments before their
/// users.
void for_each_node(const Expr& e, FunctionRef<void(const Expr&)> visit);

/// An affine function of loop variables: sum(coefficient[v] * v) + offset.
struct Affine {
  std::vector<std::pair<int64_t, int64_t>> terms;  ///< (variable, nonzero coefficient), sorted
  int64_t offset = 0;
  int64_t coefficient(int64_t var) const;
};
/// Returns the affine form of an i64 expression, or nullopt when it is not affine.
std::optional<Affine> as_affine(const Expr& e);

}  // namespace fluid
