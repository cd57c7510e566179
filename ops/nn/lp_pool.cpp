#include "ir/text.h"
#include "ops/nn/pool.h"
#include "ops/operators.h"
#include "ops/record.h"

namespace fluid {
namespace {

int lp_dims(const Type& x) { return static_cast<int>(x.shape.size()) - 2; }

/// Records the sum over each window. If `attrs` has "input", records the gradient of this sum.
Value window_sum(Value x, int dims, Attrs attrs, const Loc& loc) {
  attrs.erase("p");
  attrs.set("divisor_override", int64_t{1});
  const std::string op = "avg_pool" + std::to_string(dims) + "d";
  return record(*x.op()->graph(), attrs.has("input") ? op + "_grad" : op, {x}, attrs, loc)[0];
}

Value raised(Value x, double p) {
  if (p == 1) return x;
  if (p == 2) return square(x);
  return pow(x, scalar_like(x, p));
}

std::vector<Type> infer_lp_pool(const InferCtx& c) {
  const int dims = lp_dims(c.in(0));
  c.require(
      is_float(c.in(0).dtype) && dims >= 1 && dims <= 3,
      "expects a float tensor [N, C, ...] of 1 to 3 spatial dimensions, got " + c.in(0).str());
  const double p = c.attr<double>("p");
  c.require(p >= 1 && p <= 1024,
            "attribute 'p' must lie between 1 and 1024, not be " + ir::float_text(p));
  return {pool_type(c, c.in(0), dims)};
}

Values expand_lp_pool(const ExpandCtx& c) {
  const double p = c.attr<double>("p");
  const Value x = abs(cast(c.in(0), compute_dtype(c.in(0).dtype())));
  const Value sums = window_sum(raised(x, p), lp_dims(c.in(0).type()), c.attrs(), c.op().loc);
  const Value y = p == 2 ? sqrt(sums) : raised(sums, 1 / p);
  return {cast(y, c.out_type(0).dtype)};
}

Values lp_pool_gradients(const GradCtx& c) {
  const double p = c.attr<double>("p");
  const DType wide = compute_dtype(c.in(0).dtype());
  const Value x = cast(c.in(0), wide), y = cast(c.out(0), wide), dy = cast(c.dout(0), wide);
  const Value zero = scalar_like(y, 0);
  const Value scale = p == 1 ? dy : where(equal(y, zero), zero, dy * raised(y, 1 - p));
  Attrs attrs = c.attrs();
  attrs.set("input", Type{wide, x.shape(), {}});
  const Value sums = window_sum(scale, lp_dims(c.in(0).type()), attrs, c.op().loc);
  const Value dx =
      p == 2 ? sums * x : sums * sign(x) * (p == 1 ? scalar_like(x, 1) : raised(abs(x), p - 1));
  return {cast(dx, c.in(0).dtype())};
}

}  // namespace

OpDef lp_pool_op() {
  return OpDef{
      .name = "lp_pool",
      .doc =
          "Lp norm of each window, like LpPool of ONNX: (sum |x|^p)^(1 / p). For even p, or x not "
          "negative, like torch.nn.functional.lp_pool1d, 2d and 3d, but for the partial windows of "
          "ceil_mode, which PyTorch scales to the size of whole windows. The gradient of a norm "
          "that is 0 is 0.",
      .inputs = {{"x", "float [N, C, ...] of 1 to 3 spatial dimensions"}},
      .attrs = pool_attrs(0, {{"p", 2.0, "exponent, between 1 and 1024"}}),
      .outputs = {{"y", "[N, C, ...]"}},
      .infer = infer_lp_pool,
      .grad = GradFn(lp_pool_gradients),
      .effects = Pure{},
      .amp = {Amp::kF32},
      .cost =
          [](const CostCtx& c) {
            const WindowAxes window = pool_windows(c.attrs, c.in[0].shape);
            return Cost{.flops = 15 * (c.numel_in(0) + c.numel_out()) +
                                 c.numel_out() * static_cast<double>(taps_of(window))};
          },
      .in_place = {},
      .lower = Expand{expand_lp_pool},
      .kernels = {},
      .version = 1,
  };
}

}  // namespace fluid
