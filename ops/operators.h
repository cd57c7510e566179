#pragma once

// C++ operators and convenience overloads of op functions. A C++ number becomes a scalar of the
// other operand's dtype. The functions throw UserError for null operands and for operands of
// unequal dtype.

#include "ops/functions.h"

namespace fluid {

/// An operand of a C++ operator, and the source location of the expression. The implicit conversion
/// from Value captures file and line through its default arguments.
struct LocatedValue {
  LocatedValue(Value v, const char* file = __builtin_FILE(),  // NOLINT: implicit conversion
               int line = __builtin_LINE())
      : value(v), loc{file, line} {}
  Value value;
  Loc loc;
};

Value operator+(LocatedValue a, Value b);
Value operator-(LocatedValue a, Value b);
Value operator*(LocatedValue a, Value b);
Value operator/(LocatedValue a, Value b);
Value operator-(LocatedValue a);
Value operator+(LocatedValue a, double b);
Value operator-(LocatedValue a, double b);
Value operator*(LocatedValue a, double b);
Value operator/(LocatedValue a, double b);
Value operator+(double a, LocatedValue b);
Value operator-(double a, LocatedValue b);
Value operator*(double a, LocatedValue b);
Value operator/(double a, LocatedValue b);

/// Records a scalar constant in the graph of `like`, with the dtype of `like`.
Value scalar_like(Value like, double value, const Loc& loc = Loc::here());

/// Casts `x` to `dtype`. Returns `x` itself when it already has this dtype.
Value cast(Value x, DType dtype, const Loc& loc = Loc::here());

/// Reshapes `x` in row-major order. One extent may be -1, as in {-1, 784}; the inferred extent may
/// be a multiple of the batch size.
Value reshape(Value x, const Shape& shape, const Loc& loc = Loc::here());

Value broadcast_to(Value x, const Shape& shape, const Loc& loc = Loc::here());

/// Mean or maximum over height and width: [N, C, H, W] becomes [N, C, 1, 1].
Value global_avg_pool2d(Value x, const Loc& loc = Loc::here());
Value global_max_pool2d(Value x, const Loc& loc = Loc::here());

}  // namespace fluid
