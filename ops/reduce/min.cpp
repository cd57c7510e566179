#include "ops/reduction.h"

namespace fluid {

OpDef min_op() {
  return reduced_extremum(
      "min", "The smallest element along `axes`; nan when one is nan. Ties share the gradient.",
      Combine::min);
}

}  // namespace fluid
