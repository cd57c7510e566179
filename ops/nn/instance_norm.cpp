#include "ops/nn/normalization.h"

namespace fluid {
namespace {

std::vector<Type> infer_instance_norm(const InferCtx& c) {
  require_channels(c, 3);
  const Type& x = c.in(0);
  require_scale(c, {x.shape[1]}, "one number per channel");
  const Type statistics{compute_dtype(x.dtype), {x.shape[0], x.shape[1]}, {}};
  return {x, statistics, statistics};
}

NormalizedView instance_view(const Shape& x) { return grouped_view(x, x[1].size); }

}  // namespace

OpDef instance_norm_op() {
  std::vector<PortDef> inputs = scale_and_bias_ports("[C]");
  inputs.insert(inputs.begin(), {"x", "float [N, C, L, ...]"});
  return OpDef{
      .name = "instance_norm",
      .doc =
          "Instance normalisation (Ulyanov, Vedaldi and Lempitsky, 2016): normalises each channel "
          "of a sample over the other dimensions, multiplies by scale and adds bias. It has no "
          "running statistics.",
      .inputs = inputs,
      .attrs = {eps_attr()},
      .outputs = {{"y", "same type as x"}, mean_port("[N, C]"), rstd_port("[N, C]")},
      .infer = infer_instance_norm,
      .grad = GradFn(
          [](const GradCtx& c) { return normalize_grad(c, instance_view(c.in(0).shape())); }),
      .effects = Pure{},
      .amp = {Amp::kFollow, {1, 2}},
      .cost = [](const CostCtx& c) { return Cost{.flops = 8 * c.numel_in(0)}; },
      .in_place = {},
      .lower =
          Expand{[](const ExpandCtx& c) { return normalize(c, instance_view(c.in(0).shape())); }},
      .kernels = {},
      .version = 1,
      .internal = true,
  };
}

}  // namespace fluid
