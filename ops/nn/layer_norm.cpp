#include "ops/nn/normalization.h"
#include "ops/reduction.h"

namespace fluid {
namespace {

std::vector<Type> infer_layer_norm(const InferCtx& c) {
  require_scale(c, require_trailing_dims(c), "the normalised dimensions of x");
  const Type& x = c.in(0);
  const NormalizedView view = trailing_view(x.shape, c.attrs());
  const Type statistics{compute_dtype(x.dtype), reduced_shape(x.shape, view.axes, true), {}};
  return {x, statistics, statistics};
}

}  // namespace

OpDef layer_norm_op() {
  const std::string rows = "x's shape with extent 1 from `axis` on";
  std::vector<PortDef> inputs = scale_and_bias_ports("x's dimensions from `axis` on");
  inputs.insert(inputs.begin(), {"x", "float tensor, rank >= 1"});
  return OpDef{
      .name = "layer_norm",
      .doc =
          "Layer normalisation (Ba, Kiros and Hinton, 2016): normalises x over its dimensions from "
          "`axis` on, multiplies by scale and adds bias.",
      .inputs = inputs,
      .attrs = {{"axis", int64_t{-1}, "first normalised axis; negative: counted from the end"},
                eps_attr()},
      .outputs = {{"y", "same type as x"}, mean_port(rows), rstd_port(rows)},
      .infer = infer_layer_norm,
      .grad = GradFn([](const GradCtx& c) {
        return normalize_grad(c, trailing_view(c.in(0).shape(), c.attrs()));
      }),
      .effects = Pure{},
      .amp = {Amp::kFollow, {1, 2}},
      .cost = [](const CostCtx& c) { return Cost{.flops = 8 * c.numel_in(0)}; },
      .in_place = {},
      .lower = Expand{[](const ExpandCtx& c) {
        return normalize(c, trailing_view(c.in(0).shape(), c.attrs()));
      }},
      .kernels = {},
      .version = 1,
      .internal = true,
  };
}

}  // namespace fluid
