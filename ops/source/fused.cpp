#include "ops/op_def.h"

namespace fluid {

OpDef fused_op() {
  return OpDef{
      .name = "fused",
      .doc =
          "Ops that run as one kernel: those of the body graph, whose `arg` ops stand for the "
          "operands and whose outputs are the results.",
      .inputs = {{"x", "any", true, true}},
      .attrs = {{"body", GraphRef{}, "the graph of the ops", true}},
      .outputs = {{"y", "the body's outputs", true}},
      .infer = [](const InferCtx&) { return std::vector<Type>{}; },
      .grad = NoGrad{},
      .effects = Pure{},
      .amp = Amp::kFollow,
      .cost = [](const CostCtx&) { return Cost{}; },
      .in_place = {},
      .lower = Composite{},
      .kernels = {},
      .version = 1,
      .open_attrs = true,
  };
}

}  // namespace fluid
