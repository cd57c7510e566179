#pragma once

// C++ operators for ops, and shorter overloads. A C++ number becomes a scalar of the other
// operand's dtype. The ops throw UserError for null operands and unequal dtypes.

#include "ops/functions.h"

namespace fluid {

/// An operand with its call site. The default arguments of the implicit conversion capture file and
/// line of the operator expression.
struct Located {
  Located(Value v, const char* file = __builtin_FILE(), int line = __builtin_LINE())  // NOLINT
      : value(v), loc{file, line} {}
  Value value;
  Loc loc;
};

Value operator+(Located a, Value b);
Value operator-(Located a, Value b);
Value operator*(Located a, Value b);
Value operator/(Located a, Value b);
Value operator-(Located a);
Value operator+(Located a, double b);
Value operator-(Located a, double b);
Value operator*(Located a, double b);
Value operator/(Located a, double b);
Value operator+(double a, Located b);
Value operator-(double a, Located b);
Value operator*(double a, Located b);
Value operator/(double a, Located b);

/// Records a scalar of `like`'s dtype in `like`'s graph.
Value scalar_like(Value like, double value, const Loc& loc = Loc::here());

/// Casts `x` to `dtype`. Returns `x` itself when it has this dtype already.
Value cast(Value x, DType dtype, const Loc& loc = Loc::here());

/// Reshapes `x` in row-major order. One extent may be -1; it is inferred, the batch included ({-1,
/// 784}).
Value reshape(Value x, const Shape& shape, const Loc& loc = Loc::here());

Value broadcast_to(Value x, const Shape& shape, const Loc& loc = Loc::here());

/// Mean (or maximum) of each channel's plane: [N, C, H, W] becomes [N, C, 1, 1].
Value global_avg_pool2d(Value x, const Loc& loc = Loc::here());
Value global_max_pool2d(Value x, const Loc& loc = Loc::here());

}  // namespace fluid
