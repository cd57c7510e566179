#include "ops/nn/conv.h"

namespace fluid {

OpDef conv3d_grad_input_op() { return conv_grad_input_def(3, {}); }

}  // namespace fluid
