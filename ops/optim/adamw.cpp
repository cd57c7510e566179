#include "ops/optim/adam.h"

namespace fluid {

OpDef adamw_op() {
  return adam_def("adamw",
                  "AdamW (Loshchilov and Hutter, 2019), with PyTorch's rounding order: the "
                  "parameter loses lr * weight_decay of itself, then takes Adam's step.",
                  /*decoupled=*/true);
}

}  // namespace fluid
