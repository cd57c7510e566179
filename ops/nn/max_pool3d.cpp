#include "ops/nn/pool.h"

namespace fluid {

OpDef max_pool3d_op() { return max_pool_def(3); }

}  // namespace fluid
