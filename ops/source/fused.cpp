#include "ops/op_def.h"

namespace fluid {

OpDef fused_op() {
  return OpDef{
      .name = "fused",
      .doc =
          "Runs the ops of the body graph as one kernel. The body's `arg` ops stand for the "
          "operands, and its outputs are the results.",
      .inputs = {{"x", "operands of any type", true, true}},
      .attrs = {{"body", GraphRef{}, "the body graph", true}},
      .outputs = {{"y", "the outputs of the body graph", true}},
      .infer = [](const InferCtx&) { return std::vector<Type>{}; },
      .grad = NoGrad{},
      .effects = Pure{},
      .amp = Amp::kFollow,
      .cost = [](const CostCtx&) { return Cost{}; },
      .in_place = {},
      .lower = FusedOp{},
      .kernels = {},
      .version = 1,
      .open_attrs = true,
  };
}

}  // namespace fluid
