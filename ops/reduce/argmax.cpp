#include "ops/reduction.h"

namespace fluid {

OpDef argmax_op() {
  return arg_extremum_def(
      "argmax", "Index of the first maximum along `axis`. NaN counts as the largest value.",
      [](Value x) { return x; });
}

}  // namespace fluid
