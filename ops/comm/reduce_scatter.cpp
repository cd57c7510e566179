#include "ops/comm/exchange.h"

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
      .infer = infer_exchange,
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
