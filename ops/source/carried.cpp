#include "ops/op_def.h"

namespace fluid {

OpDef carried_op() {
  return OpDef{
      .name = "carried",
      .doc =
          "What the slice of the batch before left by `carry` under this symbol. It lies at a "
          "place of its own in the transient memory, which is the same in all slices.",
      .inputs = {},
      .attrs = {{"offset", int64_t{0}, "bytes, from the start of the transient memory", true}},
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
