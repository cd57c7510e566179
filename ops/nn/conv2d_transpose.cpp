#include "ops/nn/conv.h"

namespace fluid {

OpDef conv2d_transpose_op() { return conv_transpose_def(2); }

}  // namespace fluid
