#include "ops/op_def.h"

namespace fluid {

OpDef arg_op() {
  return OpDef{
      .name = "arg",
      .doc = "An operand of the fused op whose body holds it.",
      .inputs = {},
      .attrs = {{"index", int64_t{0}, "which operand of the fused op", true}},
      .outputs = {{"value", "of the recorded type"}},
      .infer = [](const InferCtx& c) { return c.ins(); },
      .grad = NoGrad{},
      .effects = Pure{},
      .amp = Amp::kFollow,
      .cost = [](const CostCtx&) { return Cost{.bytes = 0}; },
      .in_place = {},
      .lower = Source{},
      .kernels = {},
      .version = 1,
  };
}

}  // namespace fluid
