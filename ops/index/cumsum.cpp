#include "ops/elementwise.h"
#include "ops/index/cumulative.h"
#include "ops/operators.h"

namespace fluid {

OpDef cumsum_op() {
  return OpDef{
      .name = "cumsum",
      .doc =
          "Cumulative sum along `axis`, like torch.cumsum, and CumSum of ONNX. Half precision is "
          "summed in f32.",
      .inputs = {{"x", "numeric tensor, rank >= 1"}},
      .attrs = cumulative_attrs("sum"),
      .outputs = {{"y", "same type as x"}},
      .infer = infer_cumulative,
      .grad = GradFn([](const GradCtx& c) {
        return Values{cumsum(c.dout(0), {.axis = c.attr<int64_t>("axis"),
                                         .exclusive = c.attr<bool>("exclusive"),
                                         .reverse = !c.attr<bool>("reverse")})};
      }),
      .effects = Pure{},
      .amp = {Amp::kF32},
      .cost = cost_per_element(1),
      .in_place = {{0, 0}},
      .lower = cumulative_lowering(Combine::sum),
      .kernels = {},
      .version = 1,
  };
}

}  // namespace fluid
