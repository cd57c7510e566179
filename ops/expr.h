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

/// What a scalar expression node does.
enum class Scalar : uint8_t {
  constant,  // fvalue (floats), ivalue (integers, bool)
  var,       // ivalue: loop variable of the iteration domain, i64
  batch,     // the batch extent, i64
  read,      // ivalue: operand; args: one i64 index a dimension
  // i64 index arithmetic and float arithmetic
  add,
  sub,
  mul,
  div,
  floordiv,
  mod,
  min,
  max,
  pow,
  fma,      // args: a, b, c; a * b + c, rounded once where the processor has such an instruction
  product,  // a * b whose addition to a sum is an fma
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
  ge,  // bool
  logical_and,
  logical_or,
  logical_not,
  isfinite,
  select,  // args: bool, then, else
  cast,    // to dtype: towards zero for floats to integers, != 0 for bool
  // in kernel IR only (codegen/kernel_ir.h):
  load,    // ivalue: buffer; args: i64 element offset, and optionally a bool: where false, fvalue
  let,     // ivalue: a value named by a Let
  acc,     // ivalue: an accumulator; args: constant indices into its array
  lanes,   // args[0]: an acc; its lanes combined in a fixed tree
  philox,  // args: i64 seed, i64 counter, i64 stream, i64 index -> 32 random bits as i64 in [0,
           // 2^32)
};

class Expr;

/// One immutable node; shared between expressions.
struct ExprNode {
  Scalar op = Scalar::constant;
  DType dtype = DType::f32;  ///< of the result; never a half: halves are read as f32
  std::vector<Expr> args;
  int64_t ivalue = 0;
  double fvalue = 0;
  /// read only: when true, an index out of the operand's shape gives `fvalue` instead of an error.
  bool guarded = false;
  /// read only: the index comes from data; it is clamped and an out-of-range one sets the error
  /// word.
  bool checked = false;
};

/// A scalar expression: the body of a Map or a Reduce. Index expressions are i64. Arithmetic needs
/// equal dtypes on both sides; a C++ number on one side takes the other's dtype.
/// `div` is for floats, `floordiv` and `mod` (result in [0, n) for n > 0) for integers.
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

// These fold constants, x-0 and x*1, and of integers x+0 and x*0.
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

Expr floordiv(const Expr& a, const Expr& b);  // fold (a*n + b) / n where 0 <= b < n is a constant
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

/// Rebuilds `e` bottom-up: `replace` may return a replacement for a node whose arguments are
/// already rewritten, or a null Expr to keep it. Shared nodes are visited once.
Expr rewrite(const Expr& e, const std::function<Expr(const Expr&)>& replace);
/// Calls `visit` once for every distinct node below `e`, arguments first.
void for_each_node(const Expr& e, const std::function<void(const Expr&)>& visit);

/// sum(coef[v] * v) + offset over loop variables.
struct Affine {
  std::vector<std::pair<int64_t, int64_t>> terms;  ///< (variable, coefficient != 0), sorted
  int64_t offset = 0;
  int64_t coefficient(int64_t var) const;
};
/// The affine form of an i64 expression, when it is one.
std::optional<Affine> as_affine(const Expr& e);

}  // namespace fluid
