#include "ops/nn/pool.h"

namespace fluid {

OpDef max_pool1d_op() { return max_pool_def(1); }

}  // namespace fluid
