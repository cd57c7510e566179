#include "ops/comm/exchange.h"

namespace fluid {

OpDef all_gather_op() {
  return OpDef{
      .name = "all_gather",
      .doc =
          "A bucket of tensors, where they lie, of which each process has computed its share and "
          "gets those of the others.",
      .inputs = {{.name = "x",
                  .doc = "floats of one dtype, without a batch extent",
                  .variadic = true}},
      .attrs = {{"bucket", int64_t{0}, "number of the bucket"}},
      .outputs = {{"y", "one of each operand, whole, of its type"}},
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
