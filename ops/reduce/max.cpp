#include "ops/reduction.h"

namespace fluid {

OpDef max_op() {
  return reduced_extremum(
      "max", "The largest element along `axes`; nan when one is nan. Ties share the gradient.",
      Combine::max);
}

}  // namespace fluid
