#include "ops/operators.h"
#include "ops/reduction.h"

namespace fluid {
namespace {

/// Maps the elements of `x` so that their order is reversed: the minimum becomes the maximum.
/// Integers use -1 - x (255 - x for u8), which does not overflow, unlike -x. NaN stays NaN.
Value reversed(Value x) {
  if (is_float(x.dtype())) return -x;
  return (x.dtype() == DType::u8 ? 255.0 : -1.0) - x;
}

}  // namespace

OpDef argmin_op() {
  return arg_extremum_def(
      "argmin", "Index of the first minimum along `axis`. NaN counts as the smallest value.",
      reversed);
}

}  // namespace fluid
