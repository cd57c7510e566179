#include "ops/reduction.h"

namespace fluid {

OpDef min_op() {
  return reduction_extremum_def(
      "min",
      "Minimum along `axes`; NaN if any element is NaN. Equal minima share the gradient evenly.",
      Combine::min);
}

}  // namespace fluid
