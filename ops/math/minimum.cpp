#include "ops/elementwise.h"

namespace fluid {

OpDef minimum_op() {
  return elementwise_extremum_def(
      "minimum",
      "Elementwise minimum; NaN if either operand is NaN. Equal operands "
      "share the gradient evenly.",
      ScalarOp::min);
}

}  // namespace fluid
