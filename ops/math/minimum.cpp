#include "ops/elementwise.h"

namespace fluid {

OpDef minimum_op() {
  return elementwise_extremum("minimum",
                              "Elementwise minimum; NaN if either operand is NaN. Equal operands "
                              "share the gradient evenly.",
                              Scalar::min);
}

}  // namespace fluid
