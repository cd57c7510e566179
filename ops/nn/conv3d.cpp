#include "ops/nn/conv.h"

namespace fluid {

OpDef conv3d_op() { return conv_def(3, {}); }

}  // namespace fluid
