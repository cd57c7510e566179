#include <cmath>

#include "ir/text.h"
#include "ops/lora_attributes.h"
#include "ops/source/kept_gradient.h"
#include "ops/source/source.h"

namespace fluid {

OpDef param_op() {
  OpDef def = variable_def("param", "A trainable variable, named by its symbol.");
  def.attrs.value.insert(
      def.attrs.value.end(),
      {{"trainable", true, "false: frozen, without gradient, optimizer state and update"},
       {"lr_scale", 1.0, "factor of the learning rate for this parameter"},
       {"weight_decay", true, "false: excluded from weight decay"},
       {"decay_scale", 1.0, "factor of the weight decay for this parameter"},
       {kLoraOf, std::string(), "for a low-rank adapter: the weight that it adapts"},
       {kLoraScale, 1.0, "for a low-rank adapter's second factor: multiplies the product"},
       {kKeepGradient, false, "true: training steps keep the gradient in the state NAME.gradient"},
       {"sparse", false,
        "true: a table whose gradient is kept as rows; an update changes the rows that the step "
        "read"},
       {"l1", 0.0, "factor of sum(|p|) in the loss"},
       {"l2", 0.0, "factor of sum(p^2) in the loss"},
       {"max_norm", 0.0, "upper bound of the L2 norm of the weights into each output; 0: none"}});
  def.infer = [](const InferCtx& c) {
    for (const char* name : {"lr_scale", "decay_scale", "l1", "l2", "max_norm"}) {
      const double value = c.attrs().get_or(name, 0.0);
      c.require(std::isfinite(value) && value >= 0, "attribute '" + std::string(name) +
                                                        "' must be a number of 0 or more, not " +
                                                        ir::float_text(value));
    }
    return c.ins();
  };
  return def;
}

}  // namespace fluid
