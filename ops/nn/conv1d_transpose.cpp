#include "ops/nn/conv.h"

namespace fluid {

OpDef conv1d_transpose_op() { return conv_transpose_def(1); }

}  // namespace fluid
