#include "ops/op_def.h"

namespace fluid {

OpDef reduce_scatter_op() {
  return OpDef{
      .name = "reduce_scatter",
      .doc =
          "The sums of tensors over all processes, where they lie: one bucket of them, of which "
          "each process keeps its share. In what others keep there is 0.",
      .inputs = {{.name = "x",
                  .doc = "floats of one dtype, without a batch extent",
                  .variadic = true}},
      .attrs = {{"bucket", int64_t{0}, "number of the bucket"}},
      .outputs = {{"sum", "what this process keeps of the sum of one operand, of its type"}},
      .infer =
          [](const InferCtx& c) {
            for (const Type& type : c.ins()) {
              c.require(
                  is_float(type.dtype) && type.dtype == c.in(0).dtype && !type.shape.numel().batch,
                  "expects floats of one dtype and known size, got " + type.str());
            }
            return c.ins();
          },
      .grad = NoGrad{},
      .effects = Collective{},
      .amp = {Amp::kFollow},
      .cost = [](const CostCtx&) { return Cost{}; },
      .in_place = {{.out = 0, .in = 0}},
      .lower = Exchange{},
      .kernels = {},
      .version = 1,
  };
}

}  // namespace fluid
