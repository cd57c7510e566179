#include <limits>

#include "codegen/emit_math.h"
#include "codegen/emit_math_ops.h"

namespace fluid::emit {
namespace {

using llvm::Value;

/// Returns floor(log2(x)) of a positive finite x, as an integer.
Value* exponent_of(MathOps& m, Value* x) {
  const int64_t bits = m.mantissa_bits(), bias = m.by_width<int64_t>(127, 1023);
  Value* subnormal = m.lt(x, m.constant(m.smallest_normal()));
  Value* normal = m.select(subnormal, m.mul(x, m.constant(m.by_width(0x1p23, 0x1p52))), x);
  Value* offset = m.select(subnormal, m.int_constant(bias + bits), m.int_constant(bias));
  return m.isub(m.lshr(m.to_bits(normal), bits), offset);
}

/// Returns fmod(x, d) with d = y * 2^k. k is the smallest number >= 0 for which x / d is below 2^p;
/// p is the number of mantissa bits. The result is exact, because the quotient and the remainder
/// are representable.
Value* reduce_once(MathOps& m, Value* x, Value* y) {
  Value* difference = m.isub(exponent_of(m, x), exponent_of(m, y));
  Value* shift =
      m.imax(m.isub(difference, m.int_constant(m.mantissa_bits() - 1)), m.int_constant(0));
  Value* divisor = m.ldexp(y, {m.to_float(shift), shift});
  Value* quotient = m.floor(m.div(x, divisor));
  Value* rest = m.exact_fma(m.neg(quotient), divisor, x);
  // The quotient is 1 too large if the division rounded up to the next integer.
  return m.select(m.lt(rest, m.constant(0)), m.add(rest, divisor), rest);
}

/// Returns fmod(x, y) for finite x >= 0 and y > 0.
Value* positive_remainder(MathOps& m, Value* x, Value* y) {
  return m.repeat_while_any(
      [&](Value* rest) { return m.le(y, rest); },
      [&](Value* rest) { return m.select(m.le(y, rest), reduce_once(m, rest, y), rest); }, x);
}

}  // namespace

Value* emit_float_mod(llvm::IRBuilder<>& b, Value* x, Value* y) {
  MathOps m(b, x->getType());
  Value* infinity = m.constant(std::numeric_limits<double>::infinity());
  Value *zero = m.constant(0), *magnitude = m.abs(x), *divisor = m.abs(y);
  Value* valid = m.logical_and(m.lt(magnitude, infinity),
                               m.logical_and(m.lt(zero, divisor), m.le(divisor, infinity)));
  Value* rest = positive_remainder(m, m.select(valid, magnitude, zero),
                                   m.select(valid, divisor, m.constant(1)));
  rest = m.copy_sign(rest, x);
  Value* signs_differ = m.logical_not(m.xnor(m.lt(rest, zero), m.lt(y, zero)));
  rest = m.select(m.logical_and(m.ne(rest, zero), signs_differ), m.add(rest, y), rest);
  return m.select(valid, rest, m.constant(std::numeric_limits<double>::quiet_NaN()));
}

}  // namespace fluid::emit
