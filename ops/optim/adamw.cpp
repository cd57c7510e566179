#include "ops/optim/adam.h"

namespace fluid {

OpDef adamw_op() {
  return adam_def("adamw",
                  "AdamW (Loshchilov and Hutter, 2019), with PyTorch's rounding order: param *= 1 "
                  "- lr * weight_decay, followed by the step of adam.",
                  /*decoupled=*/true);
}

}  // namespace fluid
