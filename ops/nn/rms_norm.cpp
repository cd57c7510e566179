#include "ops/nn/normalization.h"
#include "ops/reduction.h"

namespace fluid {
namespace {

std::vector<Type> infer_rms_norm(const InferCtx& c) {
  require_scale(c, require_trailing_dims(c), "the normalised dimensions of x");
  const Type& x = c.in(0);
  const NormalizedView view = trailing_view(x.shape, c.attrs());
  return {x, {compute_dtype(x.dtype), reduced_shape(x.shape, view.axes, true), {}}};
}

}  // namespace

OpDef rms_norm_op() {
  return OpDef{
      .name = "rms_norm",
      .doc =
          "Root mean square normalisation (Zhang and Sennrich, 2019): divides x by its root mean "
          "square over the dimensions from `axis` on and multiplies by scale. eps has ONNX's "
          "default; PyTorch's default is the machine epsilon.",
      .inputs = {{"x", "float tensor, rank >= 1"},
                 {.name = "scale",
                  .doc = "x's dimensions from `axis` on, x's dtype or f32",
                  .optional = true}},
      .attrs = {{"axis", int64_t{-1}, "first normalised axis; negative: counted from the end"},
                {"eps", 1e-5, "added to the mean square"}},
      .outputs = {{"y", "same type as x"},
                  {.name = "rstd",
                   .doc = "x's shape with extent 1 from `axis` on, f32 or wider: reciprocal of the "
                          "root mean square",
                   .auxiliary = true}},
      .infer = infer_rms_norm,
      .grad = GradFn([](const GradCtx& c) {
        return rms_normalize_grad(c, trailing_view(c.in(0).shape(), c.attrs()));
      }),
      .effects = Pure{},
      .amp = {Amp::kFollow, {1}},
      .cost = [](const CostCtx& c) { return Cost{.flops = 5 * c.numel_in(0)}; },
      .in_place = {},
      .lower = Expand{[](const ExpandCtx& c) {
        return rms_normalize(c, trailing_view(c.in(0).shape(), c.attrs()));
      }},
      .kernels = {},
      .version = 1,
      .internal = true,
  };
}

}  // namespace fluid
