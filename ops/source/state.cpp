#include "ops/op_def.h"

namespace fluid {

OpDef state_op() {
  return OpDef{
      .name = "state",
      .doc =
          "A variable that is no parameter (moments, counters, running statistics), known by its "
          "symbol.",
      .inputs = {},
      .attrs = {{"init", std::string("zeros"), "the initialiser; its settings are attributes too"}},
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
      .open_attrs = true,
  };
}

}  // namespace fluid
