#include "ops/op_def.h"

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
