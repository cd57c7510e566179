#include "ops/nn/pool.h"

namespace fluid {

OpDef avg_pool3d_grad_op() { return avg_pool_grad_def(3); }

}  // namespace fluid
