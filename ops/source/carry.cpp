#include "ops/op_def.h"

namespace fluid {

OpDef carry_op() {
  return OpDef{
      .name = "carry",
      .doc = "Leaves the operand for the next slice of the batch, which reads it as `carried`.",
      .inputs = {{"value", "without a batch extent"}},
      .attrs = {{"offset", int64_t{0}, "as that of `carried`", true}},
      .outputs = {},
      .infer = [](const InferCtx&) { return std::vector<Type>{}; },
      .grad = NoGrad{},
      .effects = Pure{},
      .amp = Amp::kFollow,
      .cost = [](const CostCtx&) { return Cost{.bytes = 0}; },
      .in_place = {},
      .lower = Store{},
      .kernels = {},
      .version = 1,
  };
}

}  // namespace fluid
