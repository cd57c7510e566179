#include "ops/elementwise.h"

namespace fluid {

OpDef minimum_op() {
  return elementwise_extremum(
      "minimum", "The smaller of a and b; nan when either is nan. Ties share the gradient.",
      Scalar::min);
}

}  // namespace fluid
