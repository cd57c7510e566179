#include "ops/nn/pool.h"

namespace fluid {

OpDef max_pool3d_grad_op() { return max_pool_grad_def(3); }

}  // namespace fluid
