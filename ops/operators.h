#pragma once

// The ops as C++ operators, and shorter spellings of some. A number becomes a scalar of the other
// side's dtype. Null operands and unequal dtypes are UserErrors of the ops themselves.

#include "ops/functions.h"

namespace fluid {

/// An operand with the place where the operator was written: the default arguments of this
/// conversion are the call's.
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

/// A scalar of `like`'s dtype in `like`'s graph.
Value scalar_like(Value like, double value, const Loc& loc = Loc::here());

/// `x` in another dtype; `x` itself when it has it already.
Value cast(Value x, DType dtype, const Loc& loc = Loc::here());

/// `x`'s elements, in order, under another shape. One extent may be -1: what is left, the batch
/// included ({-1, 784}).
Value reshape(Value x, const Shape& shape, const Loc& loc = Loc::here());

Value broadcast_to(Value x, const Shape& shape, const Loc& loc = Loc::here());

/// The mean (or largest element) of each channel's plane: [N, C, H, W] becomes [N, C, 1, 1].
Value global_avg_pool2d(Value x, const Loc& loc = Loc::here());
Value global_max_pool2d(Value x, const Loc& loc = Loc::here());

}  // namespace fluid
