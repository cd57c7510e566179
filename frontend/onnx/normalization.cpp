// Normalisation operators.

#include "frontend/onnx/context.h"
#include "ops/internal_functions.h"
#include "ops/operators.h"
#include "ops/record.h"

namespace fluid::onnx {
namespace {

constexpr double kEpsilon = 1e-5;

/// Reshapes `v` [C] so that it broadcasts to x [N, C, ...].
Value per_channel(Value v, Value x) {
  Shape shape(x.shape().size() - 1, Dim(1));
  shape[0] = v.shape()[0];
  return reshape(v, shape);
}

/// In inference, normalises by the running statistics. In training, normalises by the batch
/// statistics and also returns the updated running statistics. The variance is biased.
Operands batch_normalized(const Context& c) {
  const Value x = c.input(0);
  const int64_t rank = x.shape().rank();
  const bool old_training = c.opset() < 7 && !c.bool_attr("is_test", false);
  const bool training = c.bool_attr("training_mode", false) || old_training ||
                        (c.opset() < 14 && c.num_outputs() > 1);
  Value batch_mean = c.input(3), batch_var = c.input(4);
  Operands outputs(1);
  if (training) {
    Ints axes = {0};
    for (int64_t d = 2; d < rank; ++d) axes.push_back(d);
    const double momentum = c.float_attr("momentum", 0.9);
    batch_mean = mean(x, {.axes = axes});
    batch_var = var(x, {.axes = axes, .correction = 0});
    outputs.emplace_back(c.input(3) * momentum + batch_mean * (1 - momentum));
    outputs.emplace_back(c.input(4) * momentum + batch_var * (1 - momentum));
  }
  const Value scale = c.input(1) / sqrt(batch_var + c.float_attr("epsilon", kEpsilon));
  outputs[0] =
      (x - per_channel(batch_mean, x)) * per_channel(scale, x) + per_channel(c.input(2), x);
  return outputs;
}

/// Records op `name` with the node's inputs, `attrs` and the node's epsilon.
Value normalized(const Context& c, const char* name, Attrs attrs) {
  attrs.set("eps", c.float_attr("epsilon", kEpsilon));
  return record(c.graph(), name, c.inputs(), attrs, c.loc())[0];
}

/// LayerNormalization. Its optional outputs are Mean and InvStdDev over the normalised dimensions.
Operands layer_normalized(const Context& c) {
  const Value x = c.input(0);
  const int64_t axis = c.int_attr("axis", -1);
  Operands outputs = {normalized(c, "layer_norm", {{"axis", axis}})};
  if (!c.has_output(1) && !c.has_output(2)) return outputs;
  const int64_t rank = x.shape().rank();
  Ints axes;
  for (int64_t d = normalize_axis(axis, rank); d < rank; ++d) axes.push_back(d);
  const Value wide = cast(x, compute_dtype(x.dtype()));
  outputs.emplace_back(mean(wide, {.axes = axes, .keep_dims = true}));
  const Value variance = var(wide, {.axes = axes, .keep_dims = true, .correction = 0});
  outputs.emplace_back(reciprocal(sqrt(variance + c.float_attr("epsilon", kEpsilon))));
  return outputs;
}

Operands rms_normalized(const Context& c) {
  return {normalized(c, "rms_norm", {{"axis", c.int_attr("axis", -1)}})};
}

/// Before operator set 21, scale and bias have one element per group instead of per channel.
Operands group_normalized(const Context& c) {
  const Value x = c.input(0);
  const int64_t groups = c.int_attr("num_groups", 1);
  if (c.opset() >= 21) return {normalized(c, "group_norm", {{"groups", groups}})};
  const int64_t size = extent(c, x, 1) / groups;
  const auto by_channel = [&](Value v) {
    const Value column = unsqueeze(v, {.axes = 1});
    return reshape(broadcast_to(column, {groups, size}), {groups * size});
  };
  return {internal::group_norm(x, by_channel(c.input(1)), by_channel(c.input(2)),
                               {.groups = groups, .eps = c.float_attr("epsilon", kEpsilon)})};
}

Operands instance_normalized(const Context& c) { return {normalized(c, "instance_norm", {})}; }

/// Normalises x to mean 0 and variance 1 over `axes`.
Operands standardized(const Context& c) {
  const Value x = c.input(0);
  const Ints axes(c.ints_attr("axes", {0, 2, 3}));
  const Value centred = x - mean(x, {.axes = axes, .keep_dims = true});
  return {centred / (std(x, {.axes = axes, .keep_dims = true, .correction = 0}) + 1e-9)};
}

/// In ONNX, a window of even size starts (size - 1) / 2 channels before the normalised channel; in
/// op lrn, size / 2 channels before. Flipping the channels turns one convention into the other.
Operands lrn_normalized(const Context& c) {
  const Value x = c.input(0);
  const int64_t size = c.int_attr("size", 1);
  const LrnAttrs attrs{.size = size,
                       .alpha = c.float_attr("alpha", 1e-4),
                       .beta = c.float_attr("beta", 0.75),
                       .k = c.float_attr("bias", 1)};
  if (size % 2 == 1) return {lrn(x, attrs)};
  return {flip(lrn(flip(x, {.axes = 1}), attrs), {.axes = 1})};
}

Operands lp_normalized(const Context& c) {
  return {lp_normalize(c.input(0), {.axis = c.int_attr("axis", -1), .p = c.int_attr("p", 2)})};
}

}  // namespace

void add_normalization(Mappings& all) {
  all["BatchNormalization"] = batch_normalized;
  all["GroupNormalization"] = group_normalized;
  all["InstanceNormalization"] = instance_normalized;
  all["LRN"] = lrn_normalized;
  all["LayerNormalization"] = layer_normalized;
  all["LpNormalization"] = lp_normalized;
  all["MeanVarianceNormalization"] = standardized;
  all["RMSNormalization"] = rms_normalized;
}

}  // namespace fluid::onnx
