#include "ops/nn/dropout.h"

namespace fluid {

OpDef dropout2d_op() {
  return dropout_def(
      "dropout2d",
      "Sets whole channels to 0 with probability `p` and scales the others by 1 / (1 - p).",
      "float [N, C, ...]", 2);
}

}  // namespace fluid
