#include "ops/optim/adam.h"

namespace fluid {

OpDef adamw_op() {
  return adam_def("AdamW",
                  "AdamW (Loshchilov and Hutter, 2019), like torch.optim.AdamW: param *= 1 - lr * "
                  "weight_decay, followed by the step of adam.",
                  /*decoupled=*/true);
}

}  // namespace fluid
