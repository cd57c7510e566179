#include "ops/nn/conv.h"

namespace fluid {

OpDef conv1d_op() {
  OpDef def = conv_def(1, {});
  def.lower = Expand{[](const ExpandCtx& c) {
    return Values{record_conv(c.in(0), c.in(1), c.attrs(), c.op().loc)};
  }};
  return def;
}

}  // namespace fluid
