#include "ops/expr.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ir/error.h"

namespace fluid {
namespace {

Expr node_of(ExprNode n) { return Expr(std::make_shared<const ExprNode>(std::move(n))); }

Expr integer(DType dtype, int64_t value) {
  ExprNode n;
  n.dtype = dtype;
  n.ivalue = dtype == DType::i32  ? static_cast<int32_t>(value)
             : dtype == DType::u8 ? static_cast<uint8_t>(value)
             : dtype == DType::i8 ? static_cast<int8_t>(value)
                                  : value;
  return node_of(std::move(n));
}

double number(const Expr& e) {
  return is_float(e.dtype()) ? e.node().fvalue : static_cast<double>(e.node().ivalue);
}

bool all_constant(const std::vector<Expr>& args) {
  return std::all_of(args.begin(), args.end(), [](const Expr& a) { return is_constant(a); });
}

int64_t floor_divide(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }

/// Computes `a op b` on int64 with wrap-around on overflow, as the generated code does.
int64_t wrapping_op(ScalarOp op, int64_t a, int64_t b) {
  const auto x = static_cast<uint64_t>(a);
  const auto y = static_cast<uint64_t>(b);
  switch (op) {
    case ScalarOp::add:
      return static_cast<int64_t>(x + y);
    case ScalarOp::sub:
      return static_cast<int64_t>(x - y);
    default:
      return static_cast<int64_t>(x * y);
  }
}

bool compare_floats(ScalarOp op, double a, double b) {
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

bool compare_ints(ScalarOp op, int64_t a, int64_t b) {
  return compare_floats(op, static_cast<double>(a < b ? -1 : (a > b ? 1 : 0)), 0);
}

double min_or_max(ScalarOp op, double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<double>::quiet_NaN();
  return op == ScalarOp::min ? std::min(a, b) : std::max(a, b);
}

double apply_unary(ScalarOp op, double x) {
  switch (op) {
    case ScalarOp::neg:
      return -x;
    case ScalarOp::abs:
      return std::fabs(x);
    case ScalarOp::sqrt:
      return std::sqrt(x);
    case ScalarOp::rsqrt:
      return 1 / std::sqrt(x);
    case ScalarOp::exp:
      return std::exp(x);
    case ScalarOp::exp2:
      return std::exp2(x);
    case ScalarOp::expm1:
      return std::expm1(x);
    case ScalarOp::log:
      return std::log(x);
    case ScalarOp::log2:
      return std::log2(x);
    case ScalarOp::log1p:
      return std::log1p(x);
    case ScalarOp::sinh:
      return std::sinh(x);
    case ScalarOp::cosh:
      return std::cosh(x);
    case ScalarOp::tanh:
      return std::tanh(x);
    case ScalarOp::asin:
      return std::asin(x);
    case ScalarOp::acos:
      return std::acos(x);
    case ScalarOp::atan:
      return std::atan(x);
    case ScalarOp::erf:
      return std::erf(x);
    case ScalarOp::sigmoid:
      return 1 / (1 + std::exp(-x));
    case ScalarOp::floor:
      return std::floor(x);
    case ScalarOp::tan:
      return std::tan(x);
    case ScalarOp::sin:
      return std::sin(x);
    case ScalarOp::cos:
      return std::cos(x);
    default:
      throw InternalError("not a unary function");
  }
}

/// Splits `e` into (quotient, remainder) with e == quotient * n + remainder. If `e` is a sum, the
/// quotient contains the terms that are multiples of n. The remainder may be outside [0, n).
std::pair<Expr, Expr> split_multiple(const Expr& e, int64_t n) {
  const Expr zero = integer(e.dtype(), 0);
  if (is_constant(e)) {
    const int64_t quotient = floor_divide(e.node().ivalue, n);
    return {integer(e.dtype(), quotient), integer(e.dtype(), e.node().ivalue - quotient * n)};
  }
  if (e.op() == ScalarOp::add || e.op() == ScalarOp::sub) {
    auto [qa, ra] = split_multiple(e.args()[0], n);
    auto [qb, rb] = split_multiple(e.args()[1], n);
    return e.op() == ScalarOp::add ? std::pair(qa + qb, ra + rb) : std::pair(qa - qb, ra - rb);
  }
  if (e.op() == ScalarOp::mul && is_constant(e.args()[1]) && e.args()[1].node().ivalue % n == 0) {
    return {e.args()[0] * integer(e.dtype(), e.args()[1].node().ivalue / n), zero};
  }
  return {zero, e};
}

/// Whether `e` is a constant with x + e == x for every x. A float constant must be -0, because -0 +
/// 0 is +0.
bool is_additive_identity(const Expr& e) {
  return is_constant(e, 0) && (!is_float(e.dtype()) || std::signbit(e.node().fvalue));
}

/// Whether `e` is the sum of a float and +0, which is never -0.
bool adds_zero(const Expr& e) {
  return e.op() == ScalarOp::add && is_float(e.dtype()) &&
         std::ranges::any_of(e.args(), [](const Expr& a) {
           return is_constant(a, 0) && !std::signbit(a.node().fvalue);
         });
}

Expr fold_add(DType t, const Expr& a, const Expr& b) {
  if (is_additive_identity(a)) return b;
  if (is_additive_identity(b)) return a;
  if (is_constant(b, 0) && adds_zero(a)) return a;
  if (is_constant(a, 0) && adds_zero(b)) return b;
  if (is_float(t)) return {};
  if (is_constant(a)) return b + a;
  if (is_constant(b) && a.op() == ScalarOp::add && is_constant(a.args()[1])) {
    return a.args()[0] + (a.args()[1] + b);
  }
  if (b.op() == ScalarOp::add && is_constant(b.args()[1])) return (a + b.args()[0]) + b.args()[1];
  if (a.op() == ScalarOp::add && is_constant(a.args()[1])) return (a.args()[0] + b) + a.args()[1];
  return {};
}

Expr fold_sub(DType t, const Expr& a, const Expr& b) {
  if (is_constant(b) && is_additive_identity(-b)) return a;
  if (is_float(t)) return {};
  if (structurally_equal(a, b)) return integer(t, 0);
  if (is_constant(b)) return a + integer(t, wrapping_op(ScalarOp::sub, 0, b.node().ivalue));
  return {};
}

Expr fold_mul(DType t, const Expr& a, const Expr& b) {
  if (is_constant(a, 1)) return b;
  if (is_constant(b, 1)) return a;
  if (is_float(t)) return {};
  if (is_constant(a)) return b * a;
  if (is_constant(b, 0)) return b;
  if (is_constant(b) && a.op() == ScalarOp::mul && is_constant(a.args()[1])) {
    return a.args()[0] * (a.args()[1] * b);
  }
  if (is_constant(b) && a.op() == ScalarOp::add && is_constant(a.args()[1])) {
    return a.args()[0] * b + a.args()[1] * b;
  }
  return {};
}

Expr fold_division(ScalarOp op, const Expr& a, const Expr& b) {
  if (is_float(a.dtype()) || !is_constant(b) || b.node().ivalue <= 0) return {};
  const int64_t n = b.node().ivalue;
  auto [quotient, rest] = split_multiple(a, n);
  if (is_constant(rest)) {
    const int64_t carry = floor_divide(rest.node().ivalue, n);
    return op == ScalarOp::floordiv ? quotient + integer(a.dtype(), carry)
                                    : integer(a.dtype(), rest.node().ivalue - carry * n);
  }
  if (n == 1) return op == ScalarOp::floordiv ? a : integer(a.dtype(), 0);
  if (is_constant(quotient, 0)) return {};
  return op == ScalarOp::floordiv ? quotient + scalar::floordiv(rest, b) : scalar::mod(rest, b);
}

Expr fold_logic(ScalarOp op, const std::vector<Expr>& args) {
  if (op == ScalarOp::logical_not) {
    if (is_constant(args[0])) return Expr::constant(DType::boolean, !args[0].node().ivalue);
    return args[0].op() == ScalarOp::logical_not ? args[0].args()[0] : Expr();
  }
  const bool neutral = op == ScalarOp::logical_and;
  for (size_t i = 0; i < 2; ++i) {
    if (is_constant(args[i])) {
      return (args[i].node().ivalue != 0) == neutral ? args[1 - i] : args[i];
    }
  }
  return {};
}

Expr fold_constants(ScalarOp op, DType t, const std::vector<Expr>& args) {
  const double a = number(args[0]);
  const double b = args.size() > 1 ? number(args[1]) : 0;
  const bool ints = !is_float(args[0].dtype());
  const int64_t i = args[0].node().ivalue;
  const int64_t j = args.size() > 1 ? args[1].node().ivalue : 0;
  switch (op) {
    case ScalarOp::add:
      return ints ? integer(t, wrapping_op(op, i, j)) : Expr::constant(t, a + b);
    case ScalarOp::sub:
      return ints ? integer(t, wrapping_op(op, i, j)) : Expr::constant(t, a - b);
    case ScalarOp::mul:
      return ints ? integer(t, wrapping_op(op, i, j)) : Expr::constant(t, a * b);
    case ScalarOp::div:
      return Expr::constant(t, a / b);
    case ScalarOp::floordiv:
    case ScalarOp::mod:
      return {};
    case ScalarOp::min:
      return ints ? integer(t, std::min(i, j)) : Expr::constant(t, min_or_max(op, a, b));
    case ScalarOp::max:
      return ints ? integer(t, std::max(i, j)) : Expr::constant(t, min_or_max(op, a, b));
    case ScalarOp::pow:
      return Expr::constant(t, std::pow(a, b));
    case ScalarOp::isfinite:
      return Expr::constant(t, std::isfinite(a));
    case ScalarOp::cast:
      if (t == DType::boolean) return Expr::constant(t, ints ? i != 0 : a != 0);
      // Converts directly from i64 to f32, as the generated code does. A conversion through double
      // would round twice.
      if (t == DType::f32 && ints) return Expr::constant(t, static_cast<float>(i));
      if (is_float(t)) return Expr::constant(t, a);
      return ints ? integer(t, i) : Expr();
    case ScalarOp::neg:
      return ints ? integer(t, wrapping_op(ScalarOp::sub, 0, i)) : Expr::constant(t, -a);
    case ScalarOp::abs:
      return ints ? integer(t, i < 0 ? wrapping_op(ScalarOp::sub, 0, i) : i)
                  : Expr::constant(t, std::fabs(a));
    default:
      if (op >= ScalarOp::eq && op <= ScalarOp::ge) {
        return Expr::constant(t, ints ? compare_ints(op, i, j) : compare_floats(op, a, b));
      }
      return Expr::constant(t, apply_unary(op, a));
  }
}

/// Returns a simpler expression that is equal to op(args), or null if no simplification applies.
Expr fold(ScalarOp op, DType t, const std::vector<Expr>& args) {
  if (op < ScalarOp::add || op > ScalarOp::cast) return {};
  if (op == ScalarOp::fma || op == ScalarOp::product) return {};
  if (op == ScalarOp::select) {
    if (is_constant(args[0])) return args[args[0].node().ivalue != 0 ? 1 : 2];
    return structurally_equal(args[1], args[2]) ? args[1] : Expr();
  }
  if (op >= ScalarOp::logical_and && op <= ScalarOp::logical_not) return fold_logic(op, args);
  if (all_constant(args)) {
    if (Expr e = fold_constants(op, t, args)) return e;
  }
  switch (op) {
    case ScalarOp::add:
      return fold_add(t, args[0], args[1]);
    case ScalarOp::sub:
      return fold_sub(t, args[0], args[1]);
    case ScalarOp::mul:
      return fold_mul(t, args[0], args[1]);
    case ScalarOp::div:
      return is_constant(args[1], 1) ? args[0] : Expr();
    case ScalarOp::floordiv:
    case ScalarOp::mod:
      return fold_division(op, args[0], args[1]);
    case ScalarOp::neg:
      return args[0].op() == ScalarOp::neg ? args[0].args()[0] : Expr();
    case ScalarOp::pow:
      if (is_constant(args[1], 1)) return args[0];
      return is_constant(args[1], 2) ? args[0] * args[0] : Expr();
    case ScalarOp::cast:
      return args[0].dtype() == t ? args[0] : Expr();
    default:
      return {};
  }
}

Expr binary(ScalarOp op, const Expr& a, const Expr& b) {
  check(a.dtype() == b.dtype(), "scalar arithmetic on unequal dtypes");
  return Expr::make(op, a.dtype(), {a, b});
}

}  // namespace

Expr Expr::constant(DType dtype, double value) {
  check(!is_half_precision(dtype), "scalar constants cannot have half precision");
  if (!is_float(dtype)) {
    if (dtype == DType::boolean) return integer(dtype, value != 0);
    return integer(dtype, static_cast<int64_t>(value));
  }
  ExprNode n;
  n.dtype = dtype;
  n.fvalue = dtype == DType::f32 ? static_cast<double>(static_cast<float>(value)) : value;
  return node_of(std::move(n));
}

Expr Expr::index(int64_t value) { return integer(DType::i64, value); }

Expr Expr::var(int64_t id) {
  ExprNode n;
  n.op = ScalarOp::var;
  n.dtype = DType::i64;
  n.ivalue = id;
  return node_of(std::move(n));
}

Expr Expr::make(ScalarOp op, DType dtype, std::vector<Expr> args) {
  if (Expr e = fold(op, dtype, args)) return e;
  ExprNode n;
  n.op = op;
  n.dtype = dtype;
  n.args = std::move(args);
  return node_of(std::move(n));
}

bool is_constant(const Expr& e) { return e.op() == ScalarOp::constant; }
bool is_constant(const Expr& e, double value) { return is_constant(e) && number(e) == value; }

bool structurally_equal(const Expr& a, const Expr& b) {
  if (a.get() == b.get()) return true;
  if (!a || !b) return false;
  const ExprNode& x = a.node();
  const ExprNode& y = b.node();
  const bool equal_values = x.fvalue == y.fvalue ? std::signbit(x.fvalue) == std::signbit(y.fvalue)
                                                 : std::isnan(x.fvalue) && std::isnan(y.fvalue);
  if (x.op != y.op || x.dtype != y.dtype || x.ivalue != y.ivalue || !equal_values ||
      x.guarded != y.guarded || x.checked != y.checked) {
    return false;
  }
  return std::equal(x.args.begin(), x.args.end(), y.args.begin(), y.args.end(), structurally_equal);
}

Expr operator+(const Expr& a, const Expr& b) { return binary(ScalarOp::add, a, b); }
Expr operator-(const Expr& a, const Expr& b) { return binary(ScalarOp::sub, a, b); }
Expr operator*(const Expr& a, const Expr& b) { return binary(ScalarOp::mul, a, b); }
Expr operator/(const Expr& a, const Expr& b) {
  check(is_float(a.dtype()), "div is for floats: use floordiv");
  return binary(ScalarOp::div, a, b);
}
Expr operator-(const Expr& a) { return Expr::make(ScalarOp::neg, a.dtype(), {a}); }
Expr operator+(const Expr& a, double b) { return a + Expr::constant(a.dtype(), b); }
Expr operator-(const Expr& a, double b) { return a - Expr::constant(a.dtype(), b); }
Expr operator*(const Expr& a, double b) { return a * Expr::constant(a.dtype(), b); }
Expr operator/(const Expr& a, double b) { return a / Expr::constant(a.dtype(), b); }
Expr operator+(double a, const Expr& b) { return Expr::constant(b.dtype(), a) + b; }
Expr operator-(double a, const Expr& b) { return Expr::constant(b.dtype(), a) - b; }
Expr operator*(double a, const Expr& b) { return Expr::constant(b.dtype(), a) * b; }
Expr operator/(double a, const Expr& b) { return Expr::constant(b.dtype(), a) / b; }

namespace scalar {

Expr floordiv(const Expr& a, const Expr& b) { return binary(ScalarOp::floordiv, a, b); }
Expr mod(const Expr& a, const Expr& b) { return binary(ScalarOp::mod, a, b); }
Expr min(const Expr& a, const Expr& b) { return binary(ScalarOp::min, a, b); }
Expr max(const Expr& a, const Expr& b) { return binary(ScalarOp::max, a, b); }
Expr pow(const Expr& a, const Expr& b) { return binary(ScalarOp::pow, a, b); }

Expr compare(ScalarOp op, const Expr& a, const Expr& b) {
  check(op >= ScalarOp::eq && op <= ScalarOp::ge, "not a comparison");
  check(a.dtype() == b.dtype(), "comparison of unequal dtypes");
  return Expr::make(op, DType::boolean, {a, b});
}
Expr logical_and(const Expr& a, const Expr& b) { return binary(ScalarOp::logical_and, a, b); }
Expr logical_or(const Expr& a, const Expr& b) { return binary(ScalarOp::logical_or, a, b); }
Expr logical_not(const Expr& a) { return Expr::make(ScalarOp::logical_not, DType::boolean, {a}); }

Expr select(const Expr& condition, const Expr& then, const Expr& otherwise) {
  check(then.dtype() == otherwise.dtype(), "select between unequal dtypes");
  return Expr::make(ScalarOp::select, then.dtype(), {condition, then, otherwise});
}

Expr cast(const Expr& a, DType dtype) {
  return Expr::make(ScalarOp::cast, compute_dtype(dtype), {a});
}

Expr unary(ScalarOp op, const Expr& a) {
  return Expr::make(op, op == ScalarOp::isfinite ? DType::boolean : a.dtype(), {a});
}

Expr philox(const Expr& seed, const Expr& counter, const Expr& stream, const Expr& index) {
  return Expr::make(ScalarOp::philox, DType::i64, {seed, counter, stream, index});
}

}  // namespace scalar
}  // namespace fluid
