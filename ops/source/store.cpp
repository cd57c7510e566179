#include "ops/op_def.h"

namespace fluid {

OpDef store_op() {
  return OpDef{
      .name = "store",
      .doc = "Writes the operand into the variable named by the symbol at the end of the step.",
      .inputs = {{"value", "of the variable's type"}},
      .attrs = {},
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
