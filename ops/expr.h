#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ir/type.h"

namespace fluid {

/// Operator of a scalar expression node.
enum class Scalar : uint8_t {
  constant,  // value in fvalue (floats) or ivalue (integers, bool)
  var,       // ivalue: index of the loop variable; dtype i64
  batch,     // the batch size, i64
  read,      // ivalue: operand; args: one i64 index per dimension
  // Arithmetic on i64 indices and on floats.
  add,
  sub,
  mul,
  div,
  floordiv,
  mod,
  min,
  max,
  pow,
  fma,      // args: a, b, c; a * b + c, rounded once where the CPU or GPU has an fma instruction
  product,  // a * b as the body of a sum; each addition is an fma
  neg,
  abs,
  sqrt,
  rsqrt,
  exp,
  expm1,
  log,
  log1p,
  tanh,
  erf,
  sigmoid,
  floor,
  sin,
  cos,
  eq,
  ne,
  lt,
  le,
  gt,
  ge,  // comparisons, bool
  logical_and,
  logical_or,
  logical_not,
  isfinite,
  select,  // args: bool, then, else
  cast,    // to dtype; float to integer truncates, bool is x != 0
  // Only in kernel IR (codegen/kernel_ir.h):
  load,    // ivalue: buffer; args: i64 element offset, optional bool mask (false gives fvalue)
  let,     // ivalue: a value defined by a Let
  acc,     // ivalue: an accumulator; args: constant indices into its array
  lanes,   // args[0]: an acc; reduces its SIMD lanes in a fixed tree
  philox,  // args: seed, counter, stream, index (i64); 32 random bits as i64 in [0, 2^32)
};

class Expr;

/// An immutable node of an expression DAG. Expressions share nodes.
struct ExprNode {
  Scalar op = Scalar::constant;
  DType dtype = DType::f32;  ///< of the result; never f16 or bf16: half-precision reads give f32
  std::vector<Expr> args;
  int64_t ivalue = 0;
  double fvalue = 0;
  /// For reads: an index outside the operand's shape gives `fvalue` instead of an error.
  bool guarded = false;
  /// For reads: the index comes from data. It is clamped, and an out-of-range index sets the error
  /// word.
  bool checked = false;
};

/// A scalar expression: the body of a Map or a Reduce. Index expressions are i64. Both operands of
/// an arithmetic node have one dtype; a C++ number takes the dtype of the other operand. `div` is
/// for floats, `floordiv` and `mod` (result in [0, n) for n > 0) are for integers.
class Expr {
 public:
  Expr() = default;
  explicit Expr(std::shared_ptr<const ExprNode> node) : node_(std::move(node)) {}
  static Expr constant(DType dtype, double value);
  static Expr index(int64_t value);  ///< an i64 constant
  static Expr var(int64_t id);
  static Expr make(Scalar op, DType dtype, std::vector<Expr> args);

  explicit operator bool() const { return node_ != nullptr; }
  const ExprNode& node() const { return *node_; }
  const ExprNode* get() const { return node_.get(); }
  Scalar op() const { return node_->op; }
  DType dtype() const { return node_->dtype; }
  const std::vector<Expr>& args() const { return node_->args; }
  /// Prints as "max(read0[i0, i1] + 1.0, 0.0)".
  std::string str() const;

 private:
  std::shared_ptr<const ExprNode> node_;
};

bool is_constant(const Expr& e);  ///< any constant
bool is_constant(const Expr& e, double value);
bool same(const Expr& a, const Expr& b);  ///< structurally equal

// The operators fold constants, x - 0 and x * 1; for integers also x + 0 and x * 0.
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

Expr floordiv(const Expr& a, const Expr& b);  // folds (a * n + b) / n for a constant n
Expr mod(const Expr& a, const Expr& b);
Expr min(const Expr& a, const Expr& b);
Expr max(const Expr& a, const Expr& b);  ///< NaN when either is NaN, as in PyTorch
Expr pow(const Expr& a, const Expr& b);
Expr compare(Scalar op, const Expr& a, const Expr& b);
Expr logical_and(const Expr& a, const Expr& b);
Expr logical_or(const Expr& a, const Expr& b);
Expr logical_not(const Expr& a);
Expr select(const Expr& condition, const Expr& then, const Expr& otherwise);
Expr cast(const Expr& a, DType dtype);  ///< to compute_dtype(dtype)
Expr unary(Scalar op, const Expr& a);   ///< neg abs sqrt rsqrt exp ... floor, isfinite
/// 32 random bits of Philox4x32-10 (Salmon et al., SC'11) with key `seed` and counter
/// (index, counter, stream): as an i64 in [0, 2^32).
Expr philox(const Expr& seed, const Expr& counter, const Expr& stream, const Expr& index);

}  // namespace scalar

/// Rebuilds `e` bottom-up. `replace` gets each node with its arguments already rewritten and
/// returns a replacement, or a null Expr to keep the node. Shared nodes are visited once.
Expr rewrite(const Expr& e, const std::function<Expr(const Expr&)>& replace);
/// Calls `visit` once for every distinct node of `e`, arguments before their users.
void for_each_node(const Expr& e, const std::function<void(const Expr&)>& visit);

/// An affine function of loop variables: sum(coefficient[v] * v) + offset.
struct Affine {
  std::vector<std::pair<int64_t, int64_t>> terms;  ///< (variable, coefficient != 0), sorted
  int64_t offset = 0;
  int64_t coefficient(int64_t var) const;
};
/// The affine form of an i64 expression, or nullopt when it is not affine.
std::optional<Affine> as_affine(const Expr& e);

}  // namespace fluid
