#include "ops/nn/pool.h"

namespace fluid {

OpDef avg_pool1d_grad_op() { return avg_pool_grad_def(1); }

}  // namespace fluid
