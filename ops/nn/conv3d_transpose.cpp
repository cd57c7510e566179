#include "ops/nn/conv.h"

namespace fluid {

OpDef conv3d_transpose_op() { return conv_transpose_def(3); }

}  // namespace fluid
