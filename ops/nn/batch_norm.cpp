#include "ops/internal_functions.h"
#include "ops/operators.h"

namespace fluid {
namespace {

/// Returns the axes of x [N, C, ...] over which channel statistics are computed: all axes except 1.
std::vector<int64_t> channel_axes(const Shape& x) {
  std::vector<int64_t> axes = {0};
  for (int64_t axis = 2; axis < x.rank(); ++axis) axes.push_back(axis);
  return axes;
}

/// Casts `v` [C] to `dtype` and reshapes it to broadcast with x [N, C, ...].
Value per_channel(Value v, Value x, DType dtype) {
  Shape shape(x.shape().size() - 1, Dim(1));
  shape[0] = x.shape()[1];
  return reshape(cast(v, dtype), shape);
}

/// Operands of the normalisation, cast to the compute dtype (f32 if x is f16 or bf16).
struct Normalisation {
  Value x, gamma, beta;
};
Normalisation widened(Value x, Value gamma, Value beta) {
  const DType wide = compute_dtype(x.dtype());
  return {cast(x, wide), per_channel(gamma, x, wide), per_channel(beta, x, wide)};
}

std::vector<Type> infer_batch_norm(const InferCtx& c) {
  const Type& x = c.in(0);
  c.require(is_float(x.dtype) && x.shape.rank() >= 2 && !x.shape[1].batch,
            "expects a float [N, C, ...], got " + x.str());
  const Type statistics{compute_dtype(x.dtype), {x.shape[1]}, {}};
  for (size_t i = 1; i < c.arity(); ++i) {
    const bool fits = c.in(i).shape == statistics.shape &&
                      (c.in(i).dtype == x.dtype || c.in(i).dtype == statistics.dtype);
    c.require(fits, "operand " + std::to_string(i) + " must be " + statistics.str() +
                        ", one number per channel, got " + c.in(i).str());
  }
  const double eps = c.attr<double>("eps");
  c.require(eps >= 0, "attribute 'eps' must not be negative");
  return {x, statistics, statistics};
}

Values batch_norm_training(const ExpandCtx& c) {
  const auto [x, gamma, beta] = widened(c.in(0), c.in(1), c.in(2));
  const std::vector<int64_t> axes = channel_axes(x.shape());
  const Value mean = fluid::mean(x, {.axes = axes});
  const Value centred = x - per_channel(mean, x, x.dtype());
  const Value var = fluid::mean(square(centred), {.axes = axes});
  const Value scale = per_channel(rsqrt(var + c.attr<double>("eps")), x, x.dtype()) * gamma;
  return {cast(centred * scale + beta, c.in(0).dtype()), mean, var};
}

/// Inference: normalises x by the running statistics, and returns the running statistics in place
/// of the batch statistics.
Values batch_norm_inference(const ExpandCtx& c) {
  const auto [x, gamma, beta] = widened(c.in(0), c.in(1), c.in(2));
  const Value centred = x - per_channel(c.in(3), x, x.dtype());
  const Value var = cast(c.in(4), x.dtype());
  const Value scale = per_channel(rsqrt(var + c.attr<double>("eps")), x, x.dtype()) * gamma;
  return {cast(centred * scale + beta, c.in(0).dtype()), cast(c.in(3), c.out_type(1).dtype), var};
}

/// Returns the number of elements of one channel of `x` as a scalar. Computed at run time, because
/// the number depends on the batch size.
Value channel_size(Value x) {
  Type channel{x.dtype(), {}, {}};
  for (const int64_t axis : channel_axes(x.shape())) {
    channel.shape.push_back(x.shape()[static_cast<size_t>(axis)]);
  }
  return internal::numel(*x.op()->graph(), {.of = channel});
}

/// Gradient of batch normalization (Ioffe and Szegedy, "Batch normalization", ICML 2015, section
/// 3), with the channel sums factored out: dx = gamma * rstd * (dy - (sum(dy) + xhat * sum(dy *
/// xhat)) / N), where xhat = (x - mean) * rstd, and N is the number of elements of a channel.
Values batch_norm_grad(const GradCtx& c) {
  const auto [x, gamma, beta] = widened(c.in(0), c.in(1), c.in(2));
  const DType wide = x.dtype();
  const std::vector<int64_t> axes = channel_axes(x.shape());
  const Value count = channel_size(x);
  const Value centred = x - per_channel(c.out(1), x, wide);
  Value dx, dgamma, dbeta;
  if (c.dout(0)) {
    const Value dy = cast(c.dout(0), wide);
    const Value rstd = per_channel(rsqrt(c.out(2) + c.attr<double>("eps")), x, wide);
    const Value xhat = centred * rstd;
    dgamma = sum(dy * xhat, {.axes = axes});
    dbeta = sum(dy, {.axes = axes});
    const Value pull = per_channel(dbeta, x, wide) + xhat * per_channel(dgamma, x, wide);
    dx = (dy - pull / count) * (rstd * gamma);
  }
  const auto also = [&](Value part) { dx = dx ? dx + part : part; };
  if (c.dout(1)) also(broadcast_to(per_channel(c.dout(1), x, wide) / count, x.shape()));
  if (c.dout(2)) also(centred * (per_channel(c.dout(2), x, wide) * 2.0 / count));
  const auto given = [&](Value v, size_t operand) {
    return v ? cast(v, c.in(operand).dtype()) : Value();
  };
  return {given(dx, 0), given(dgamma, 1), given(dbeta, 2), {}, {}};
}

}  // namespace

OpDef batch_norm_op() {
  return OpDef{
      .name = "batch_norm",
      .doc =
          "Batch normalisation (Ioffe and Szegedy, 2015): normalises each channel over the other "
          "dimensions, multiplies by gamma and adds beta. Eval and predict use the running "
          "statistics instead of the batch statistics.",
      .inputs = {{"x", "float [N, C, ...]"},
                 {"gamma", "[C], x's dtype or f32"},
                 {"beta", "[C], x's dtype or f32"},
                 {"running_mean", "[C], x's dtype or f32"},
                 {"running_var", "[C], x's dtype or f32"}},
      .attrs = {{"eps", 1e-5, "added to the variance"}},
      .outputs = {{.name = "y", .doc = "same type as x"},
                  {.name = "mean",
                   .doc = "[C], f32 or wider: batch mean; in eval and predict the running mean",
                   .auxiliary = true},
                  {.name = "var",
                   .doc = "[C], f32 or wider: biased batch variance; in eval and predict the "
                          "running variance",
                   .auxiliary = true}},
      .infer = infer_batch_norm,
      .grad = GradFn(batch_norm_grad),
      .effects = Pure{},
      .amp = {Amp::kFollow, {1, 2, 3, 4}},
      .cost = [](const CostCtx& c) { return Cost{.flops = 8 * c.numel_in(0)}; },
      .in_place = {},
      .lower = Expand{batch_norm_training},
      .kernels = {},
      .version = 1,
      .inference = batch_norm_inference,
      .internal = true,
  };
}

}  // namespace fluid
