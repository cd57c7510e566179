#include "ops/elementwise.h"

namespace fluid {

OpDef maximum_op() {
  return elementwise_extremum(
      "maximum", "The larger of a and b; nan when either is nan. Ties share the gradient.",
      Scalar::max);
}

}  // namespace fluid
