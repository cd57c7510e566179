#include "ops/nn/pool.h"

namespace fluid {

OpDef avg_pool3d_op() { return avg_pool_def(3); }

}  // namespace fluid
