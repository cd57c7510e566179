#include "codegen/emit_math.h"

#include <iterator>
#include <limits>
#include <span>

#include "codegen/emit_math_ops.h"
#include "codegen/math_coefficients.h"

namespace fluid::emit {
namespace {

namespace coef = coefficients;
using llvm::Value;

/// Range-reduced argument of exp: x = n ln 2 + r + low with an integer n and |r| <= ln(2) / 2.
struct Reduced {
  Value* r;
  Value* low;  // rounding error of r; null in f32, where the error changes exp by 1/4 ulp at most
  MathOps::Exponent n;
};

/// Cody-Waite range reduction, with ln 2 as a sum of two constants. The product of n and the first
/// constant is exact.
Reduced reduce_exp(MathOps& m, Value* x) {
  constexpr double kLog2E = 1.44269504088896340736;
  MathOps::Exponent n = m.round(m.fma(x, m.constant(kLog2E), m.constant(m.round_magic())));
  Value* ln2_low = m.constant(-m.by_width(coef::kLn2Low32, coef::kLn2Low64));
  Value* high = m.fma(n.as_float, m.constant(-m.by_width(coef::kLn2High32, coef::kLn2High64)), x);
  Value* r = m.fma(n.as_float, ln2_low, high);
  Value* low = m.wide() ? m.fma(n.as_float, ln2_low, m.sub(high, r)) : nullptr;
  return {r, low, n};
}

/// Returns exp(r + low) - 1.
Value* expm1_near_zero(MathOps& m, const Reduced& a) {
  Value* p = m.polynomial(m.table_by_width(coef::kExp32, coef::kExp64), a.r);
  Value* square = m.mul(a.r, a.r);
  return a.low ? m.add(a.r, m.fma(square, p, a.low)) : m.fma(square, p, a.r);
}

/// Returns exp(x + low). The result may be subnormal. `low` is for f64.
Value* exp_of(MathOps& m, Value* x, Value* low = nullptr) {
  x = m.clamp(x, m.by_width(-104.0, -746.0), m.by_width(89.0, 710.0));
  Reduced a = reduce_exp(m, x);
  if (low) {
    Value* r = m.add(a.r, low);
    a.low = m.add(a.low, m.add(m.sub(a.r, r), low));
    a.r = r;
  }
  return m.ldexp(m.add(m.constant(1), expm1_near_zero(m, a)), a.n);
}

/// exp2(x) = 2^n exp(r ln 2) with x = n + r and |r| <= 1/2. The result may be subnormal.
Value* exp2_of(MathOps& m, Value* x) {
  constexpr double kLn2 = 0.69314718055994530942;
  x = m.clamp(x, m.by_width(-152.0, -1078.0), m.by_width(129.0, 1025.0));
  const MathOps::Exponent n = m.round(m.add(x, m.constant(m.round_magic())));
  Value* r = m.mul(m.sub(x, n.as_float), m.constant(kLn2));
  return m.ldexp(m.add(m.constant(1), expm1_near_zero(m, {r, nullptr, n})), n);
}

Value* expm1_of(MathOps& m, Value* x) {
  Value* clamped = m.clamp(x, m.by_width(-30.0, -60.0), m.by_width(89.0, 710.0));
  Reduced a = reduce_exp(m, clamped);
  Value* p = expm1_near_zero(m, a);
  Value* s = m.pow2(m.isub(a.n.as_int, m.int_constant(1)));  // 2^(n-1), because 2^n may overflow
  Value* y = m.fma(s, p, m.sub(s, m.constant(0.5)));
  return m.select(m.eq(x, m.constant(0)), x, m.add(y, y));
}

/// Splits x > 0, which may be subnormal, into x = 2^k m with m in [sqrt(1/2), sqrt(2)).
struct Split {
  Value* k;  // exponent of 2, an integer stored as a float
  Value* m;
};
Split split(MathOps& m, Value* x) {
  const double rescale = m.by_width(0x1p25, 0x1p54);
  Value* tiny = m.lt(x, m.constant(m.smallest_normal()));
  x = m.select(tiny, m.mul(x, m.constant(rescale)), x);
  Value* origin = m.to_bits(m.constant(0.70710678118654752440));
  Value* offset = m.isub(m.to_bits(x), origin);
  Value* k = m.to_float(m.ashr(offset, m.mantissa_bits()));
  k = m.sub(k, m.select(tiny, m.constant(m.by_width(25.0, 54.0)), m.constant(0)));
  Value* fraction = m.iadd(m.iand(offset, m.mantissa_mask()), origin);
  return {k, m.from_bits(fraction)};
}

/// log(1 + f) = f - half_square + s * sum, as in fdlibm's e_log.c: s = f / (2 + f),
/// half_square = f^2/2, sum = f^2/2 + R(s^2).
struct LogSeries {
  Value* s;
  Value* half_square;
  Value* sum;
};
LogSeries log_series(MathOps& m, Value* f) {
  Value* s = m.div(f, m.add(m.constant(2), f));
  Value* z = m.mul(s, s);
  Value* rest = m.mul(z, m.polynomial(m.table_by_width(coef::kLog32, coef::kLog64), z));
  Value* half_square = m.mul(m.mul(m.constant(0.5), f), f);
  return {s, half_square, m.add(half_square, rest)};
}

/// Returns k ln 2 + log(1 + f) + correction, as in fdlibm's e_log.c and s_log1p.c.
Value* log_of_parts(MathOps& m, Value* k, Value* f, Value* correction) {
  LogSeries a = log_series(m, f);
  Value* low = m.fma(k, m.constant(m.by_width(coef::kLn2Low32, coef::kLn2Low64)), correction);
  Value* tail = m.fma(a.s, a.sum, low);
  Value* small = m.sub(m.sub(a.half_square, tail), f);
  return m.fma(k, m.constant(m.by_width(coef::kLn2High32, coef::kLn2High64)), m.neg(small));
}

/// Extends `y`, the logarithm for 0 < x < inf, to every x. Returns -inf for x = 0, NaN for x < 0,
/// and x itself if x is inf or NaN.
Value* log_special(MathOps& m, Value* x, Value* y) {
  const double infinity = std::numeric_limits<double>::infinity();
  y = m.select(m.lt(x, m.constant(infinity)), y, x);  // if x is inf or NaN, the result is x
  y = m.select(m.eq(x, m.constant(0)), m.constant(-infinity), y);
  return m.select(m.lt(x, m.constant(0)), m.constant(std::numeric_limits<double>::quiet_NaN()), y);
}

Value* log_of(MathOps& m, Value* x) {
  Split a = split(m, x);
  return log_special(m, x, log_of_parts(m, a.k, m.sub(a.m, m.constant(1)), m.constant(0)));
}

/// log2(x) = k + log(m) / ln 2, as in FreeBSD's e_log2.c. Both log(m) and 1 / ln 2 are represented
/// as sums high + low, and the product of the two high parts is exact. log2 of a power of 2 is
/// exact.
Value* log2_of(MathOps& m, Value* x) {
  const int64_t leading_bits = m.by_width(~int64_t{0xfff}, ~int64_t{0xffffffff});
  Value* log2_e_high = m.constant(m.by_width(coef::kLog2EHigh32, coef::kLog2EHigh64));
  Value* log2_e_low = m.constant(m.by_width(coef::kLog2ELow32, coef::kLog2ELow64));
  Split a = split(m, x);
  Value* f = m.sub(a.m, m.constant(1));
  LogSeries log = log_series(m, f);
  Value* high = m.from_bits(m.iand(m.to_bits(m.sub(f, log.half_square)), leading_bits));
  Value* low = m.fma(log.s, log.sum, m.sub(m.sub(f, high), log.half_square));
  Value* product = m.mul(high, log2_e_high);
  Value* rest = m.fma(m.add(low, high), log2_e_low, m.mul(low, log2_e_high));
  Value* sum = m.add(a.k, product);
  Value* lost = m.add(m.sub(a.k, sum), product);  // rounding error of sum
  return log_special(m, x, m.add(m.add(rest, lost), sum));
}

Value* log1p_of(MathOps& m, Value* x) {
  Value* u = m.add(m.constant(1), x);
  Split a = split(m, u);
  // Rounding error of u = 1 + x.
  Value* lost = m.select(m.lt(m.constant(1), x), m.sub(m.constant(1), m.sub(u, x)),
                         m.sub(x, m.sub(u, m.constant(1))));
  Value* near = m.eq(a.k, m.constant(0));
  Value* f = m.select(near, x, m.sub(a.m, m.constant(1)));
  Value* correction = m.select(near, m.constant(0), m.div(lost, u));
  Value* y = log_special(m, u, log_of_parts(m, a.k, f, correction));
  return m.select(m.eq(x, m.constant(0)), x, y);
}

/// For x >= 0, returns (exp(x) + exp(-x)) / 2, or (exp(x) - exp(-x)) / 2 if `subtract` is true. If
/// exp(x) = 2^n (1 + p), then exp(-x) = 2^-n (1 - p / (1 + p)). The powers of 2 and the other terms
/// are summed separately, because rounding 1 + p would cost up to 1 ulp.
Value* half_exp_sum(MathOps& m, Value* x, bool subtract) {
  Reduced a = reduce_exp(m, m.clamp(x, 0, m.by_width(89.6, 710.7)));
  Value* p = expm1_near_zero(m, a);
  Value* q = m.div(p, m.add(m.constant(1), p));
  Value* n = a.n.as_int;
  Value* large = m.pow2(m.isub(n, m.int_constant(2)));  // 2^n / 4, because 2^n may overflow
  Value* small = m.pow2(m.isub(m.int_constant(-2), n));
  small = m.select(m.test_bits(n, -64), m.constant(0), small);  // negligible for n >= 64
  if (subtract) small = m.neg(small);
  Value* y = m.add(m.add(large, small), m.fma(large, p, m.neg(m.mul(small, q))));
  return m.add(y, y);
}

/// sinh(x): a polynomial for |x| < 1, else (exp(|x|) - exp(-|x|)) / 2 with the sign of x.
Value* sinh_of(MathOps& m, Value* x) {
  Value* magnitude = m.abs(x);
  Value* z = m.mul(x, x);
  Value* near =
      m.fma(m.mul(x, z), m.polynomial(m.table_by_width(coef::kSinh32, coef::kSinh64), z), x);
  Value* far = half_exp_sum(m, magnitude, true);
  return m.copy_sign(m.select(m.lt(magnitude, m.constant(1)), near, far), x);
}

/// tanh(x): a polynomial for |x| < 0.62, else 1 - 2 / (exp(2 |x|) + 1) with the sign of x.
Value* tanh_of(MathOps& m, Value* x) {
  Value* magnitude = m.abs(x);
  Value* z = m.mul(x, x);
  Value* near =
      m.fma(m.mul(x, z), m.polynomial(m.table_by_width(coef::kTanh32, coef::kTanh64), z), x);
  Value* e = exp_of(m, m.clamp(m.add(magnitude, magnitude), 0, m.by_width(20.0, 44.0)));
  Value* far = m.sub(m.constant(1), m.div(m.constant(2), m.add(e, m.constant(1))));
  return m.copy_sign(m.select(m.lt(magnitude, m.constant(0.62)), near, far), x);
}

/// sigmoid(x): 1 / (1 + exp(-x)) for x > 0, else exp(x) / (1 + exp(x)).
Value* sigmoid_of(MathOps& m, Value* x) {
  Value* e = exp_of(m, m.neg(m.abs(x)));
  Value* t = m.add(m.constant(1), e);
  Value* y = m.div(m.select(m.lt(m.constant(0), x), m.constant(1), e), t);
  // `lost` is the rounding error of t = 1 + e. lost / t need not be precise, so a linear function
  // approximates 1 / t on [1, 2].
  Value* lost = m.sub(e, m.sub(t, m.constant(1)));
  Value* relative = m.mul(lost, m.fma(t, m.constant(-0.5), m.constant(1.457)));
  return m.fma(m.neg(y), relative, y);
}

/// erf(x): x + x P(x^2) for |x| < 1, else 1 - exp(-x^2) Q(|x| - 2) with the sign of x. Computes
/// exp(-x^2) from x alone, so that it is shared with the derivative of erf in one kernel.
Value* erf_of(MathOps& m, Value* x) {
  Value* z = m.mul(x, x);
  Value* near = m.fma(x, m.polynomial(m.table_by_width(coef::kErf32, coef::kErf64), z), x);
  Value* magnitude = m.abs(x);
  Value* u = m.sub(m.at_most(magnitude, m.by_width(4.0, 6.0)), m.constant(2));
  Value* q = m.polynomial(m.table_by_width(coef::kErfc32, coef::kErfc64), u);
  Value* far = m.fma(m.neg(exp_of(m, m.neg(z))), q, m.constant(1));
  return m.select(m.lt(magnitude, m.constant(1)), near, m.copy_sign(far, x));
}

/// log(x) of an f64 x > 0, as k ln 2 + 2s + 2 s^3/3 + s^5 T(s^2). The first three terms are summed
/// in double-double arithmetic (Dekker's and Knuth's error-free transformations), so the error of
/// the result is about 2^-65.
DoubleDouble log_double_double(MathOps& m, Value* x) {
  Split a = split(m, x);
  Value* f = m.sub(a.m, m.constant(1));
  Value* t = m.add(m.constant(2), f);
  Value* t_low = m.sub(f, m.sub(t, m.constant(2)));
  Value* s = m.div(f, t);
  Value* remainder = m.sub(m.exact_fma(m.neg(s), t, f), m.mul(s, t_low));
  Value* s_low = m.div(remainder, t);
  Value* z = m.mul(s, s);
  Value* z_low = m.fma(m.add(s, s), s_low, m.exact_fma(s, s, m.neg(z)));
  Value* cube = m.mul(z, s);
  Value* cube_low = m.fma(z, s_low, m.fma(z_low, s, m.exact_fma(z, s, m.neg(cube))));
  Value* third = m.mul(cube, m.constant(coef::kTwoThirds[0]));
  Value* third_low = m.fma(cube_low, m.constant(coef::kTwoThirds[0]),
                           m.fma(cube, m.constant(coef::kTwoThirds[1]),
                                 m.exact_fma(cube, m.constant(coef::kTwoThirds[0]), m.neg(third))));
  Value* tail = m.mul(m.mul(z, cube), m.polynomial(coef::kLogTail64, z));

  DoubleDouble exponent = two_sum(m, m.mul(a.k, m.constant(coef::kLn2High64)), m.add(s, s));
  DoubleDouble all = two_sum(m, exponent.high, third);
  Value* low = m.add(m.add(tail, m.mul(a.k, m.constant(coef::kLn2Low64))),
                     m.add(third_low, m.add(s_low, s_low)));
  return two_sum(m, all.high, m.add(low, m.add(exponent.low, all.low)));
}

Value* power_of_positive(MathOps& m, Value* x, Value* y) {
  DoubleDouble l = log_double_double(m, x);
  Value* product = m.mul(y, l.high);
  Value* low = m.fma(y, l.low, m.exact_fma(y, l.high, m.neg(product)));
  Value* in_range = m.lt(m.abs(product), m.constant(1000));
  return exp_of(m, product, m.select(in_range, low, m.constant(0)));
}

/// Computes x^y in f64. For f32 the caller converts the operands and the result.
Value* power_of(MathOps& m, Value* x, Value* y) {
  const double infinity = std::numeric_limits<double>::infinity();
  Value *zero = m.constant(0), *one = m.constant(1), *inf = m.constant(infinity);
  Value* magnitude = m.abs(x);
  Value* result = power_of_positive(m, magnitude, y);
  Value* grows = m.xnor(m.lt(one, magnitude), m.lt(zero, y));
  Value* extreme =
      m.logical_or(m.logical_or(m.eq(magnitude, zero), m.eq(magnitude, inf)), m.eq(m.abs(y), inf));
  result = m.select(extreme, m.select(grows, inf, zero), result);
  result = m.select(m.eq(magnitude, one), one, result);

  Value* is_integer = m.eq(m.floor(y), y);
  Value* half = m.mul(y, m.constant(0.5));
  Value* is_odd =
      m.logical_and(m.logical_and(is_integer, m.lt(m.abs(y), inf)), m.ne(m.floor(half), half));
  result = m.select(is_odd, m.copy_sign(result, x), result);
  Value* undefined =
      m.logical_and(m.logical_and(m.lt(x, zero), m.lt(magnitude, inf)), m.logical_not(is_integer));
  undefined = m.logical_or(undefined, m.logical_or(m.ne(x, x), m.ne(y, y)));
  result = m.select(undefined, m.constant(std::numeric_limits<double>::quiet_NaN()), result);
  return m.select(m.logical_or(m.eq(y, zero), m.eq(x, one)), one, result);
}

}  // namespace

Value* emit_elementary_function(llvm::IRBuilder<>& b, ScalarOp op, Value* x, bool avx512) {
  MathOps m(b, x->getType(), avx512);
  switch (op) {
    case ScalarOp::exp:
      return exp_of(m, x);
    case ScalarOp::exp2:
      return exp2_of(m, x);
    case ScalarOp::expm1:
      return expm1_of(m, x);
    case ScalarOp::log:
      return log_of(m, x);
    case ScalarOp::log2:
      return log2_of(m, x);
    case ScalarOp::log1p:
      return log1p_of(m, x);
    case ScalarOp::sinh:
      return sinh_of(m, x);
    case ScalarOp::cosh:
      return half_exp_sum(m, m.abs(x), false);
    case ScalarOp::tanh:
      return tanh_of(m, x);
    case ScalarOp::erf:
      return erf_of(m, x);
    case ScalarOp::sigmoid:
      return sigmoid_of(m, x);
    default:
      return emit_trigonometric_function(b, op, x);
  }
}

Value* emit_pow(llvm::IRBuilder<>& b, Value* x, Value* y) {
  return in_double(b, x, [&](MathOps& m, llvm::Type* type) {
    return power_of(m, b.CreateFPCast(x, type), b.CreateFPCast(y, type));
  });
}

}  // namespace fluid::emit
