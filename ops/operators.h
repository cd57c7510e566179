#pragma once

// The ops as C++ operators, and shorter spellings of some. A number becomes a scalar of the other
// side's dtype. Null operands and unequal dtypes are UserErrors of the ops themselves.

#include "ops/functions.h"

namespace fluid {

Value operator+(Value a, Value b);
Value operator-(Value a, Value b);
Value operator*(Value a, Value b);
Value operator/(Value a, Value b);
Value operator-(Value a);
Value operator+(Value a, double b);
Value operator-(Value a, double b);
Value operator*(Value a, double b);
Value operator/(Value a, double b);
Value operator+(double a, Value b);
Value operator-(double a, Value b);
Value operator*(double a, Value b);
Value operator/(double a, Value b);

/// A scalar of `like`'s dtype in `like`'s graph.
Value scalar_like(Value like, double value, const Loc& loc = Loc::here());

/// `x` in another dtype; `x` itself when it has it already.
Value cast(Value x, DType dtype, const Loc& loc = Loc::here());

/// `x`'s elements, in order, under another shape. One extent may be -1: what is left, the batch
/// included ({-1, 784}).
Value reshape(Value x, const Shape& shape, const Loc& loc = Loc::here());

Value broadcast_to(Value x, const Shape& shape, const Loc& loc = Loc::here());

}  // namespace fluid
