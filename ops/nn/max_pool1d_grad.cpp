#include "ops/nn/pool.h"

namespace fluid {

OpDef max_pool1d_grad_op() { return max_pool_grad_def(1); }

}  // namespace fluid
