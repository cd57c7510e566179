#include "ops/op_def.h"

namespace fluid {

OpDef data_op() {
  return OpDef{
      .name = "data",
      .doc = "A feed, known by its symbol. Its first dimension is usually the batch.",
      .inputs = {},
      .attrs = {{"scale", 1.0, "the feed's values are multiplied by it when they are read"}},
      .outputs = {{"value", "of the recorded type"}},
      .infer = [](const InferCtx&) { return std::vector<Type>{}; },
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
