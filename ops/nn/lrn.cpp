#include "ops/elementwise.h"
#include "ops/nn/normalization.h"
#include "ops/nn/window.h"
#include "ops/operators.h"

namespace fluid {
namespace {

std::vector<Type> infer_lrn(const InferCtx& c) {
  require_channels(c, 2);
  const auto size = c.attr<int64_t>("size");
  c.require(size >= 1 && size <= kMaxWindow, "attribute 'size' must lie between 1 and " +
                                                 std::to_string(kMaxWindow) + ", not be " +
                                                 std::to_string(size));
  for (const char* name : {"alpha", "beta", "k"}) require_finite(c, name);
  return {c.in(0)};
}

/// Returns the mean over a window of `size` channels for each channel of `v` [N, C, ...]. The
/// window of channel c begins at channel c - before. Out-of-range channels count as 0.
Value window_mean(Value v, int64_t size, int64_t before) {
  const Shape& x = v.shape();
  const Dim inner = Shape(x.begin() + 2, x.end()).numel();
  const AvgPool2dAttrs window{
      .kernel = {size, 1}, .stride = 1, .padding = {before, 0, size - 1 - before, 0}};
  return reshape(avg_pool2d(reshape(v, {x[0], 1, x[1], inner}), window), x);
}

/// Returns k + alpha * mean(x^2), with the mean over the window of each channel.
Value divisor_base(Value x, const Attrs& attrs) {
  const auto size = attrs.get<int64_t>("size");
  return attrs.get<double>("k") +
         attrs.get<double>("alpha") * window_mean(square(x), size, size / 2);
}

Value power_of_base(Value base, double exponent) { return pow(base, scalar_like(base, exponent)); }

Values lrn_grad(const GradCtx& c) {
  const Value x = cast(c.in(0), compute_dtype(c.in(0).dtype()));
  const Value dy = cast(c.dout(0), x.dtype());
  if (x.shape().numel().size == 0) return {c.dout(0)};
  const auto size = c.attr<int64_t>("size");
  const double beta = c.attr<double>("beta");
  const Value base = divisor_base(x, c.attrs());
  // The gradient of channel c sums over the channels whose windows contain c: the `size` channels
  // that begin (size - 1) / 2 channels before c.
  const Value pull = window_mean(dy * x * power_of_base(base, -beta - 1), size, (size - 1) / 2);
  const Value dx =
      dy * power_of_base(base, -beta) - 2 * c.attr<double>("alpha") * beta * (x * pull);
  return {cast(dx, c.in(0).dtype())};
}

}  // namespace

OpDef lrn_op() {
  return OpDef{
      .name = "lrn",
      .doc =
          "Local response normalisation (Krizhevsky, Sutskever and Hinton, 2012): x / (k + alpha * "
          "m)^beta, where m is the mean of x^2 over `size` channels, from size / 2 channels before "
          "a channel on. Channels out of range count as 0. ONNX places a window of even size one "
          "channel later.",
      .inputs = {{"x", "float [N, C, ...]"}},
      .attrs = {{"size", int64_t{5}, "number of channels in a window", true},
                {"alpha", 1e-4, "factor of the mean"},
                {"beta", 0.75, "exponent"},
                {"k", 1.0, "added to the mean"}},
      .outputs = {{"y", "same type as x"}},
      .infer = infer_lrn,
      .grad = GradFn(lrn_grad),
      .effects = Pure{},
      .amp = {Amp::kF32},
      .cost =
          [](const CostCtx& c) {
            return Cost{.flops = c.numel_in(0) *
                                 (25 + static_cast<double>(c.attrs.get<int64_t>("size")))};
          },
      .in_place = {},
      .lower = Expand{[](const ExpandCtx& c) {
        const Value x = cast(c.in(0), compute_dtype(c.in(0).dtype()));
        if (x.shape().numel().size == 0) return Values{c.in(0)};
        const Value y = x / power_of_base(divisor_base(x, c.attrs()), c.attr<double>("beta"));
        return Values{cast(y, c.in(0).dtype())};
      }},
      .kernels = {},
      .version = 1,
  };
}

}  // namespace fluid
