#include "ops/nn/normalization.h"

namespace fluid {
namespace {

std::vector<Type> infer_group_norm(const InferCtx& c) {
  require_channels(c, 2);
  const Type& x = c.in(0);
  const auto groups = c.attr<int64_t>("groups");
  c.require(groups > 0 && x.shape[1].size % groups == 0,
            std::to_string(groups) + " groups do not divide the " +
                std::to_string(x.shape[1].size) + " channels of " + x.str());
  require_scale(c, {x.shape[1]}, "one number per channel");
  const Type statistics{compute_dtype(x.dtype), {x.shape[0], groups}, {}};
  return {x, statistics, statistics};
}

NormalizedView group_view(const Shape& x, const Attrs& attrs) {
  return grouped_view(x, attrs.get<int64_t>("groups"));
}

}  // namespace

OpDef group_norm_op() {
  std::vector<PortDef> inputs = scale_and_bias_ports("[C]");
  inputs.insert(inputs.begin(), {"x", "float [N, C, ...]"});
  return OpDef{
      .name = "group_norm",
      .doc =
          "Group normalisation (Wu and He, 2018): divides the channels into groups, normalises "
          "each group of a sample over its channels and the other dimensions, multiplies by scale "
          "and adds bias.",
      .inputs = inputs,
      .attrs = {{"groups", int64_t{1}, "number of groups", true}, eps_attr()},
      .outputs = {{"y", "same type as x"}, mean_port("[N, groups]"), rstd_port("[N, groups]")},
      .infer = infer_group_norm,
      .grad = GradFn([](const GradCtx& c) {
        return normalize_grad(c, group_view(c.in(0).shape(), c.attrs()));
      }),
      .effects = Pure{},
      .amp = {Amp::kFollow, {1, 2}},
      .cost = [](const CostCtx& c) { return Cost{.flops = 8 * c.numel_in(0)}; },
      .in_place = {},
      .lower = Expand{[](const ExpandCtx& c) {
        return normalize(c, group_view(c.in(0).shape(), c.attrs()));
      }},
      .kernels = {},
      .version = 1,
      .internal = true,
  };
}

}  // namespace fluid
