#include <cmath>

#include "ir/text.h"
#include "ops/source/source.h"

namespace fluid {

OpDef param_op() {
  OpDef def = variable("param", "A variable that training updates, known by its symbol.");
  def.attrs.value.insert(
      def.attrs.value.end(),
      {{"trainable", true, "false: it gets no gradient, no optimizer state and no update"},
       {"lr_scale", 1.0, "multiplies the learning rate of its update"},
       {"weight_decay", true, "false: the optimizer's weight decay skips it"}});
  def.infer = [](const InferCtx& c) {
    const double lr_scale = c.attrs().get_or("lr_scale", 1.0);
    c.require(
        std::isfinite(lr_scale) && lr_scale >= 0,
        "attribute 'lr_scale' must be a number of 0 or more, not " + ir::float_text(lr_scale));
    return c.ins();
  };
  return def;
}

}  // namespace fluid
