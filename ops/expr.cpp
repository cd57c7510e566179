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

/// Wraps around on integer overflow, as the generated code does.
int64_t wrapped(Scalar op, int64_t a, int64_t b) {
  const auto x = static_cast<uint64_t>(a);
  const auto y = static_cast<uint64_t>(b);
  switch (op) {
    case Scalar::add:
      return static_cast<int64_t>(x + y);
    case Scalar::sub:
      return static_cast<int64_t>(x - y);
    default:
      return static_cast<int64_t>(x * y);
  }
}

bool compares(Scalar op, double a, double b) {
  switch (op) {
    case Scalar::eq:
      return a == b;
    case Scalar::ne:
      return a != b;
    case Scalar::lt:
      return a < b;
    case Scalar::le:
      return a <= b;
    case Scalar::gt:
      return a > b;
    default:
      return a >= b;
  }
}

bool compares_ints(Scalar op, int64_t a, int64_t b) {
  return compares(op, static_cast<double>(a < b ? -1 : (a > b ? 1 : 0)), 0);
}

double picks(Scalar op, double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<double>::quiet_NaN();
  return op == Scalar::min ? std::min(a, b) : std::max(a, b);
}

double apply_unary(Scalar op, double x) {
  switch (op) {
    case Scalar::neg:
      return -x;
    case Scalar::abs:
      return std::fabs(x);
    case Scalar::sqrt:
      return std::sqrt(x);
    case Scalar::rsqrt:
      return 1 / std::sqrt(x);
    case Scalar::exp:
      return std::exp(x);
    case Scalar::expm1:
      return std::expm1(x);
    case Scalar::log:
      return std::log(x);
    case Scalar::log1p:
      return std::log1p(x);
    case Scalar::tanh:
      return std::tanh(x);
    case Scalar::erf:
      return std::erf(x);
    case Scalar::sigmoid:
      return 1 / (1 + std::exp(-x));
    case Scalar::floor:
      return std::floor(x);
    case Scalar::sin:
      return std::sin(x);
    case Scalar::cos:
      return std::cos(x);
    default:
      throw InternalError("not a unary function");
  }
}

/// Splits `e` into (quotient, rest) with e == quotient * n + rest. Multiples of n among the terms
/// of sums go into the quotient.
std::pair<Expr, Expr> split_multiple(const Expr& e, int64_t n) {
  const Expr zero = integer(e.dtype(), 0);
  if (is_constant(e)) {
    const int64_t quotient = floor_divide(e.node().ivalue, n);
    return {integer(e.dtype(), quotient), integer(e.dtype(), e.node().ivalue - quotient * n)};
  }
  if (e.op() == Scalar::add || e.op() == Scalar::sub) {
    auto [qa, ra] = split_multiple(e.args()[0], n);
    auto [qb, rb] = split_multiple(e.args()[1], n);
    return e.op() == Scalar::add ? std::pair(qa + qb, ra + rb) : std::pair(qa - qb, ra - rb);
  }
  if (e.op() == Scalar::mul && is_constant(e.args()[1]) && e.args()[1].node().ivalue % n == 0) {
    return {e.args()[0] * integer(e.dtype(), e.args()[1].node().ivalue / n), zero};
  }
  return {zero, e};
}

/// Whether x + e == x for every x. A float e must be -0, because -0 + 0 is +0.
bool adds_nothing(const Expr& e) {
  return is_constant(e, 0) && (!is_float(e.dtype()) || std::signbit(e.node().fvalue));
}

Expr fold_add(DType t, const Expr& a, const Expr& b) {
  if (adds_nothing(a)) return b;
  if (adds_nothing(b)) return a;
  if (is_float(t)) return {};
  if (is_constant(a)) return b + a;
  if (is_constant(b) && a.op() == Scalar::add && is_constant(a.args()[1])) {
    return a.args()[0] + (a.args()[1] + b);
  }
  if (b.op() == Scalar::add && is_constant(b.args()[1])) return (a + b.args()[0]) + b.args()[1];
  if (a.op() == Scalar::add && is_constant(a.args()[1])) return (a.args()[0] + b) + a.args()[1];
  return {};
}

Expr fold_sub(DType t, const Expr& a, const Expr& b) {
  if (is_constant(b) && adds_nothing(-b)) return a;
  if (is_float(t)) return {};
  if (same(a, b)) return integer(t, 0);
  if (is_constant(b)) return a + integer(t, wrapped(Scalar::sub, 0, b.node().ivalue));
  return {};
}

Expr fold_mul(DType t, const Expr& a, const Expr& b) {
  if (is_constant(a, 1)) return b;
  if (is_constant(b, 1)) return a;
  if (is_float(t)) return {};
  if (is_constant(a)) return b * a;
  if (is_constant(b, 0)) return b;
  if (is_constant(b) && a.op() == Scalar::mul && is_constant(a.args()[1])) {
    return a.args()[0] * (a.args()[1] * b);
  }
  if (is_constant(b) && a.op() == Scalar::add && is_constant(a.args()[1])) {
    return a.args()[0] * b + a.args()[1] * b;
  }
  return {};
}

Expr fold_division(Scalar op, const Expr& a, const Expr& b) {
  if (!is_constant(b) || b.node().ivalue <= 0) return {};
  const int64_t n = b.node().ivalue;
  auto [quotient, rest] = split_multiple(a, n);
  if (is_constant(rest)) return op == Scalar::floordiv ? quotient : rest;
  if (n == 1) return op == Scalar::floordiv ? a : integer(a.dtype(), 0);
  if (is_constant(quotient, 0)) return {};
  return op == Scalar::floordiv ? quotient + scalar::floordiv(rest, b) : scalar::mod(rest, b);
}

Expr fold_logic(Scalar op, const std::vector<Expr>& args) {
  if (op == Scalar::logical_not) {
    if (is_constant(args[0])) return Expr::constant(DType::boolean, !args[0].node().ivalue);
    return args[0].op() == Scalar::logical_not ? args[0].args()[0] : Expr();
  }
  const bool neutral = op == Scalar::logical_and;
  for (size_t i = 0; i < 2; ++i) {
    if (is_constant(args[i])) {
      return (args[i].node().ivalue != 0) == neutral ? args[1 - i] : args[i];
    }
  }
  return {};
}

Expr fold_constants(Scalar op, DType t, const std::vector<Expr>& args) {
  const double a = number(args[0]);
  const double b = args.size() > 1 ? number(args[1]) : 0;
  const bool ints = !is_float(args[0].dtype());
  const int64_t i = args[0].node().ivalue;
  const int64_t j = args.size() > 1 ? args[1].node().ivalue : 0;
  switch (op) {
    case Scalar::add:
      return ints ? integer(t, wrapped(op, i, j)) : Expr::constant(t, a + b);
    case Scalar::sub:
      return ints ? integer(t, wrapped(op, i, j)) : Expr::constant(t, a - b);
    case Scalar::mul:
      return ints ? integer(t, wrapped(op, i, j)) : Expr::constant(t, a * b);
    case Scalar::div:
      return Expr::constant(t, a / b);
    case Scalar::floordiv:
    case Scalar::mod:
      return {};
    case Scalar::min:
      return ints ? integer(t, std::min(i, j)) : Expr::constant(t, picks(op, a, b));
    case Scalar::max:
      return ints ? integer(t, std::max(i, j)) : Expr::constant(t, picks(op, a, b));
    case Scalar::pow:
      return Expr::constant(t, std::pow(a, b));
    case Scalar::isfinite:
      return Expr::constant(t, std::isfinite(a));
    case Scalar::cast:
      if (t == DType::boolean) return Expr::constant(t, ints ? i != 0 : a != 0);
      // Rounds once, as the generated code does. Through double, i64 to f32 would round twice.
      if (t == DType::f32 && ints) return Expr::constant(t, static_cast<float>(i));
      if (is_float(t)) return Expr::constant(t, a);
      return ints ? integer(t, i) : Expr();
    case Scalar::neg:
      return ints ? integer(t, wrapped(Scalar::sub, 0, i)) : Expr::constant(t, -a);
    case Scalar::abs:
      return ints ? integer(t, i < 0 ? wrapped(Scalar::sub, 0, i) : i)
                  : Expr::constant(t, std::fabs(a));
    default:
      if (op >= Scalar::eq && op <= Scalar::ge) {
        return Expr::constant(t, ints ? compares_ints(op, i, j) : compares(op, a, b));
      }
      return Expr::constant(t, apply_unary(op, a));
  }
}

/// Returns a simpler expression of equal value, or null.
Expr fold(Scalar op, DType t, const std::vector<Expr>& args) {
  if (op < Scalar::add || op > Scalar::cast) return {};
  if (op == Scalar::fma || op == Scalar::product) return {};
  if (op == Scalar::select) {
    if (is_constant(args[0])) return args[args[0].node().ivalue != 0 ? 1 : 2];
    return same(args[1], args[2]) ? args[1] : Expr();
  }
  if (op >= Scalar::logical_and && op <= Scalar::logical_not) return fold_logic(op, args);
  if (all_constant(args)) {
    if (Expr e = fold_constants(op, t, args)) return e;
  }
  switch (op) {
    case Scalar::add:
      return fold_add(t, args[0], args[1]);
    case Scalar::sub:
      return fold_sub(t, args[0], args[1]);
    case Scalar::mul:
      return fold_mul(t, args[0], args[1]);
    case Scalar::div:
      return is_constant(args[1], 1) ? args[0] : Expr();
    case Scalar::floordiv:
    case Scalar::mod:
      return fold_division(op, args[0], args[1]);
    case Scalar::neg:
      return args[0].op() == Scalar::neg ? args[0].args()[0] : Expr();
    case Scalar::pow:
      if (is_constant(args[1], 1)) return args[0];
      return is_constant(args[1], 2) ? args[0] * args[0] : Expr();
    case Scalar::cast:
      return args[0].dtype() == t ? args[0] : Expr();
    default:
      return {};
  }
}

Expr binary(Scalar op, const Expr& a, const Expr& b) {
  check(a.dtype() == b.dtype(), "scalar arithmetic on unequal dtypes");
  return Expr::make(op, a.dtype(), {a, b});
}

}  // namespace

Expr Expr::constant(DType dtype, double value) {
  check(!is_half(dtype), "scalar constants cannot have half precision");
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
  n.op = Scalar::var;
  n.dtype = DType::i64;
  n.ivalue = id;
  return node_of(std::move(n));
}

Expr Expr::make(Scalar op, DType dtype, std::vector<Expr> args) {
  if (Expr e = fold(op, dtype, args)) return e;
  ExprNode n;
  n.op = op;
  n.dtype = dtype;
  n.args = std::move(args);
  return node_of(std::move(n));
}

bool is_constant(const Expr& e) { return e.op() == Scalar::constant; }
bool is_constant(const Expr& e, double value) { return is_constant(e) && number(e) == value; }

bool same(const Expr& a, const Expr& b) {
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
  return std::equal(x.args.begin(), x.args.end(), y.args.begin(), y.args.end(), same);
}

Expr operator+(const Expr& a, const Expr& b) { return binary(Scalar::add, a, b); }
Expr operator-(const Expr& a, const Expr& b) { return binary(Scalar::sub, a, b); }
Expr operator*(const Expr& a, const Expr& b) { return binary(Scalar::mul, a, b); }
Expr operator/(const Expr& a, const Expr& b) {
  check(is_float(a.dtype()), "div is for floats: use floordiv");
  return binary(Scalar::div, a, b);
}
Expr operator-(const Expr& a) { return Expr::make(Scalar::neg, a.dtype(), {a}); }
Expr operator+(const Expr& a, double b) { return a + Expr::constant(a.dtype(), b); }
Expr operator-(const Expr& a, double b) { return a - Expr::constant(a.dtype(), b); }
Expr operator*(const Expr& a, double b) { return a * Expr::constant(a.dtype(), b); }
Expr operator/(const Expr& a, double b) { return a / Expr::constant(a.dtype(), b); }
Expr operator+(double a, const Expr& b) { return Expr::constant(b.dtype(), a) + b; }
Expr operator-(double a, const Expr& b) { return Expr::constant(b.dtype(), a) - b; }
Expr operator*(double a, const Expr& b) { return Expr::constant(b.dtype(), a) * b; }
Expr operator/(double a, const Expr& b) { return Expr::constant(b.dtype(), a) / b; }

namespace scalar {

Expr floordiv(const Expr& a, const Expr& b) { return binary(Scalar::floordiv, a, b); }
Expr mod(const Expr& a, const Expr& b) { return binary(Scalar::mod, a, b); }
Expr min(const Expr& a, const Expr& b) { return binary(Scalar::min, a, b); }
Expr max(const Expr& a, const Expr& b) { return binary(Scalar::max, a, b); }
Expr pow(const Expr& a, const Expr& b) { return binary(Scalar::pow, a, b); }

Expr compare(Scalar op, const Expr& a, const Expr& b) {
  check(op >= Scalar::eq && op <= Scalar::ge, "not a comparison");
  check(a.dtype() == b.dtype(), "comparison of unequal dtypes");
  return Expr::make(op, DType::boolean, {a, b});
}
Expr logical_and(const Expr& a, const Expr& b) { return binary(Scalar::logical_and, a, b); }
Expr logical_or(const Expr& a, const Expr& b) { return binary(Scalar::logical_or, a, b); }
Expr logical_not(const Expr& a) { return Expr::make(Scalar::logical_not, DType::boolean, {a}); }

Expr select(const Expr& condition, const Expr& then, const Expr& otherwise) {
  check(then.dtype() == otherwise.dtype(), "select between unequal dtypes");
  return Expr::make(Scalar::select, then.dtype(), {condition, then, otherwise});
}

Expr cast(const Expr& a, DType dtype) {
  return Expr::make(Scalar::cast, compute_dtype(dtype), {a});
}

Expr unary(Scalar op, const Expr& a) {
  return Expr::make(op, op == Scalar::isfinite ? DType::boolean : a.dtype(), {a});
}

Expr philox(const Expr& seed, const Expr& counter, const Expr& stream, const Expr& index) {
  return Expr::make(Scalar::philox, DType::i64, {seed, counter, stream, index});
}

}  // namespace scalar
}  // namespace fluid
