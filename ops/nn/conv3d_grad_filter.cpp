#include "ops/nn/conv.h"

namespace fluid {

OpDef conv3d_grad_filter_op() { return conv_grad_filter_def(3, {}); }

}  // namespace fluid
