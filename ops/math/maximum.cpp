#include "ops/elementwise.h"

namespace fluid {

OpDef maximum_op() {
  return elementwise_extremum_def(
      "maximum",
      "Elementwise maximum; NaN if either operand is NaN. Equal operands "
      "share the gradient evenly.",
      ScalarOp::max);
}

}  // namespace fluid
