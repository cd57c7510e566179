#include <limits>
#include <span>
#include <vector>

#include "codegen/emit_math.h"
#include "codegen/emit_math_ops.h"
#include "codegen/math_coefficients.h"
#include "ir/error.h"

namespace fluid::emit {
namespace {

namespace coef = coefficients;
using llvm::Value;

/// Constants for sin, cos and tan with results of one dtype. All computations are in f64, even for
/// f32 results.
struct Precision {
  double far;  ///< smallest |x| for which the Cody-Waite reduction is too imprecise
  std::span<const double> half_pi;
  std::span<const double> sin_coefficients, cos_coefficients;
};
/// An f32 in [1/2, 2^30) is at least 2^-28 away from every multiple of pi/2. With pi/2 as a sum of
/// two doubles, the error of the reduced argument is below 2^-78.
constexpr Precision kForF32 = {0x1p30, std::span(coef::kHalfPi).first(2), coef::kSin32,
                               coef::kCos32};
constexpr Precision kForF64 = {0x1p20, coef::kHalfPi, coef::kSin64, coef::kCos64};

/// An angle, in f64: quadrant * pi/2 + r + low with |r| <= pi/4.
struct Angle {
  Value* r;
  Value* quadrant;       // i64; only the low two bits matter
  Value* low = nullptr;  // rounding error of r; null for an f32 result
};

/// Cody-Waite reduction for |x| < precision.far: pi/2 is a sum of constants, and n * pi/2 is
/// subtracted with fused multiply-adds. r is NaN if x is infinite or NaN.
Angle reduce_angle_near(MathOps& m, Value* x, const Precision& precision) {
  constexpr double kTwoOverPi = 0.63661977236758134308;
  Value* shifted = m.fma(x, m.constant(kTwoOverPi), m.constant(m.round_magic()));
  Value* n = m.sub(shifted, m.constant(m.round_magic()));
  const auto minus_half_pi = [&](size_t part) { return m.constant(-precision.half_pi[part]); };
  Value* quadrant = m.to_bits(shifted);
  Value* high = m.exact_fma(n, minus_half_pi(0), x);
  if (precision.half_pi.size() == 2) return {m.exact_fma(n, minus_half_pi(1), high), quadrant};
  Value* product = m.mul(n, minus_half_pi(1));
  Value* product_low = m.exact_fma(n, minus_half_pi(1), m.neg(product));
  DoubleDouble r = two_sum(m, high, product);
  return {r.high, quadrant, m.add(r.low, m.fma(n, minus_half_pi(2), product_low))};
}

/// Payne-Hanek reduction for finite |x| >= 2^-32. x is an integer times 2^e. Multiplies the integer
/// by the 192 bits of 2/pi that determine the product modulo 4. This product has 126 fraction bits.
Angle reduce_angle_far(MathOps& m, Value* x) {
  Value* bits = m.to_bits(m.abs(x));
  Value* mantissa = m.ior(m.iand(bits, m.mantissa_mask()), m.int_constant(int64_t{1} << 52));
  Value* start = m.isub(m.ashr(bits, 52), m.int_constant(1075 - 62));
  Value* word = m.ashr(start, 6);
  Value* shift = m.iand(start, 63);
  Value* table[4];
  for (int i = 0; i < 4; ++i) {
    table[i] = m.table_lookup(coef::kTwoOverPi, m.iadd(word, m.int_constant(i)));
  }
  Value* w[3];
  for (int i = 0; i < 3; ++i) w[i] = m.funnel_shift_left(table[i], table[i + 1], shift);
  Value* low = m.imul(mantissa, w[1]);
  Value* middle = m.iadd(low, m.mul_high_unsigned(mantissa, w[2]));
  Value* carry = m.bool_to_int(m.unsigned_less(middle, low));
  Value* high = m.iadd(m.iadd(m.imul(mantissa, w[0]), m.mul_high_unsigned(mantissa, w[1])), carry);
  Value* quadrant = m.lshr(m.iadd(high, m.int_constant(int64_t{1} << 61)), 62);
  Value* fraction = m.isub(high, m.shl(quadrant, 62));
  // The reduced angle is fraction * 2^-62 + middle * 2^-126 quarter turns. `turn` holds its leading
  // bits, which are exact in f64. `rest` holds the trailing bits.
  Value* leading = m.shl(m.ashr(fraction, 10), 10);
  Value* turn = m.mul(m.to_float(leading), m.constant(0x1p-62));
  Value* rest = m.fma(m.to_float(m.isub(fraction, leading)), m.constant(0x1p-62),
                      m.mul(m.to_float_unsigned(middle), m.constant(0x1p-126)));
  Value* half_pi = m.constant(coef::kHalfPi[0]);
  Value* r_high = m.mul(turn, half_pi);
  Value* r_low = m.fma(turn, m.constant(coef::kHalfPi[1]),
                       m.fma(rest, half_pi, m.exact_fma(turn, half_pi, m.neg(r_high))));
  Value* r = m.add(r_high, r_low);
  Value* lost = m.add(m.sub(r_high, r), r_low);
  Value* negative = m.lt(x, m.constant(0));
  return {m.select(negative, m.neg(r), r),
          m.select(negative, m.isub(m.int_constant(0), quadrant), quadrant),
          m.select(negative, m.neg(lost), lost)};
}

Angle reduce_angle(MathOps& m, Value* x, const Precision& precision) {
  Value* bound = m.constant(precision.far);
  Value* magnitude = m.abs(x);
  Value* infinity = m.constant(std::numeric_limits<double>::infinity());
  Value* is_far = m.logical_and(m.le(bound, magnitude), m.lt(magnitude, infinity));
  Angle near = reduce_angle_near(m, x, precision);
  const auto values = [&](const Angle& a) {
    return near.low ? std::vector<Value*>{a.r, a.quadrant, a.low}
                    : std::vector<Value*>{a.r, a.quadrant};
  };
  const std::vector<Value*> merged = m.branch_if_any(is_far, values(near), [&] {
    std::vector<Value*> list = values(reduce_angle_far(m, m.select(is_far, x, bound)));
    for (size_t i = 0; i < list.size(); ++i) {
      list[i] = m.select(is_far, list[i], values(near)[i]);
    }
    return list;
  });
  return {merged[0], merged[1], near.low ? merged[2] : nullptr};
}

struct SinCos {
  Value* sin;
  Value* cos;
};
/// Returns sin(r + low) and cos(r + low). If `low` is not null, compensates the rounding error of r
/// as fdlibm's k_sin.c and k_cos.c do. sin(-0) is +0.
SinCos sin_cos_near_zero(MathOps& m, const Angle& angle, const Precision& precision) {
  Value *r = angle.r, *one = m.constant(1);
  Value *z = m.mul(r, r), *cube = m.mul(r, z), *fourth = m.mul(z, z);
  Value* s = m.polynomial(precision.sin_coefficients, z);
  Value* c = m.polynomial(precision.cos_coefficients, z);
  Value* half_square = m.mul(z, m.constant(0.5));
  Value* near_one = m.sub(one, half_square);
  if (!angle.low) return {m.fma(cube, s, r), m.fma(fourth, c, near_one)};
  Value* lost = m.sub(m.sub(one, near_one), half_square);
  return {m.add(r, m.fma(cube, s, angle.low)),
          m.add(near_one, m.fma(fourth, c, m.fma(m.neg(r), angle.low, lost)))};
}

/// Returns sin(x + quarter_turns * pi / 2), in f64.
Value* sine(MathOps& m, Value* x, int64_t quarter_turns, const Precision& precision) {
  Angle a = reduce_angle(m, x, precision);
  SinCos at = sin_cos_near_zero(m, a, precision);
  Value* quadrant = m.iadd(a.quadrant, m.int_constant(quarter_turns));
  Value* y = m.select(m.test_bits(quadrant, 1), at.cos, at.sin);
  y = m.select(m.test_bits(quadrant, 2), m.neg(y), y);
  return quarter_turns == 0 ? m.select(m.eq(x, m.constant(0)), x, y) : y;
}

/// tan(x), in f64: sin(r) / cos(r), or -cos(r) / sin(r) in odd quadrants.
Value* tangent(MathOps& m, Value* x, const Precision& precision) {
  Angle a = reduce_angle(m, x, precision);
  SinCos at = sin_cos_near_zero(m, a, precision);
  Value* odd = m.test_bits(a.quadrant, 1);
  Value* y = m.div(m.select(odd, m.neg(at.cos), at.sin), m.select(odd, at.sin, at.cos));
  return m.select(m.eq(x, m.constant(0)), x, y);
}

/// The constant term of an inverse trigonometric function: high + low = quarter_turns * pi/2.
struct Offset {
  Value* high;
  Value* low;
};
Offset offset_of(MathOps& m, double quarter_turns) {
  return {m.constant(quarter_turns * m.by_width(coef::kHalfPi32[0], coef::kHalfPi[0])),
          m.constant(quarter_turns * m.by_width(coef::kHalfPi32[1], coef::kHalfPi[1]))};
}
Offset select(MathOps& m, Value* condition, const Offset& a, const Offset& b) {
  return {m.select(condition, a.high, b.high), m.select(condition, a.low, b.low)};
}

/// Returns offset + t + t z P(z), where P has the given coefficients. Requires |t| <= |offset.high|
/// or offset.high = 0.
Value* offset_series(MathOps& m, const Offset& offset, Value* t, Value* z,
                     std::span<const double> coefficients) {
  Value* rest = m.fma(m.mul(t, z), m.polynomial(coefficients, z), offset.low);
  Value* sum = m.add(offset.high, t);
  Value* lost = m.sub(t, m.sub(sum, offset.high));  // rounding error of sum
  return m.add(sum, m.add(rest, lost));
}

/// atan(x): a polynomial for |x| <= 1, else pi/2 + atan(-1 / |x|) with the sign of x.
Value* arctangent(MathOps& m, Value* x) {
  Value* magnitude = m.abs(x);
  Value* inverted = m.lt(m.constant(1), magnitude);
  Value* t = m.select(inverted, m.div(m.constant(-1), magnitude), magnitude);
  Offset offset = select(m, inverted, offset_of(m, 1), offset_of(m, 0));
  Value* y =
      offset_series(m, offset, t, m.mul(t, t), m.table_by_width(coef::kAtan32, coef::kAtan64));
  return m.copy_sign(y, x);
}

/// Argument z of the polynomial of asin(y) for y = |x|. If y <= 1/2, z = y^2. Otherwise
/// z = (1 - y) / 2, which is exact, and root = 2 sqrt(z), because asin(y) = pi/2 - 2 asin(sqrt(z)).
/// If y > 1, z is negative and root is NaN.
struct ArcsineArgument {
  Value* is_far;  // whether |x| > 1/2
  Value* z;
  Value* root;
};
ArcsineArgument reduce_arcsine(MathOps& m, Value* magnitude) {
  Value* is_far = m.lt(m.constant(0.5), magnitude);
  Value* complement = m.mul(m.sub(m.constant(1), magnitude), m.constant(0.5));
  Value* root = m.sqrt(complement);
  return {is_far, m.select(is_far, complement, m.mul(magnitude, magnitude)), m.add(root, root)};
}

Value* arcsine(MathOps& m, Value* x) {
  Value* magnitude = m.abs(x);
  ArcsineArgument a = reduce_arcsine(m, magnitude);
  Offset offset = select(m, a.is_far, offset_of(m, 1), offset_of(m, 0));
  Value* y = offset_series(m, offset, m.select(a.is_far, m.neg(a.root), magnitude), a.z,
                           m.table_by_width(coef::kAsin32, coef::kAsin64));
  return m.copy_sign(y, x);
}

/// acos(x): pi/2 - asin(x) for |x| <= 1/2. Otherwise, with z = (1 - |x|) / 2: 2 asin(sqrt(z)) for x
/// > 0, and pi - 2 asin(sqrt(z)) for x < 0.
Value* arccosine(MathOps& m, Value* x) {
  ArcsineArgument a = reduce_arcsine(m, m.abs(x));
  Offset far = select(m, m.lt(x, m.constant(0)), offset_of(m, 2), offset_of(m, 0));
  Offset offset = select(m, a.is_far, far, offset_of(m, 1));
  Value* t = m.select(a.is_far, m.copy_sign(a.root, x), m.neg(x));
  return offset_series(m, offset, t, a.z, m.table_by_width(coef::kAsin32, coef::kAsin64));
}

}  // namespace

Value* emit_trigonometric_function(llvm::IRBuilder<>& b, ScalarOp op, Value* x) {
  MathOps m(b, x->getType());
  switch (op) {
    case ScalarOp::asin:
      return arcsine(m, x);
    case ScalarOp::acos:
      return arccosine(m, x);
    case ScalarOp::atan:
      return arctangent(m, x);
    case ScalarOp::sin:
    case ScalarOp::cos:
    case ScalarOp::tan:
      return in_double(b, x, [&](MathOps& wide, llvm::Type* type) {
        const Precision precision = m.by_width(kForF32, kForF64);
        Value* angle = b.CreateFPCast(x, type);
        if (op == ScalarOp::tan) return tangent(wide, angle, precision);
        return sine(wide, angle, op == ScalarOp::cos ? 1 : 0, precision);
      });
    default:
      throw InternalError("a scalar that the emitter does not know");
  }
}

}  // namespace fluid::emit
