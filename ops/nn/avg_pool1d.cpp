#include "ops/nn/pool.h"

namespace fluid {

OpDef avg_pool1d_op() { return avg_pool_def(1); }

}  // namespace fluid
