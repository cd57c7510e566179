#include "ops/reduction.h"

namespace fluid {

OpDef max_op() {
  return reduction_extremum_def(
      "max",
      "Maximum along `axes`; NaN if any element is NaN. Equal maxima share the gradient evenly.",
      Combine::max);
}

}  // namespace fluid
