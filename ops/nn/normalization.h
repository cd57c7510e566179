#pragma once

#include "ops/ints.h"
#include "ops/op_def.h"

namespace fluid {

/// The shapes to which a normalisation op reshapes its operands, and the normalised axes. Elements
/// of x that differ only in their indices along `axes` share mean and variance.
struct NormalizedView {
  Shape x;      ///< shape to which operand 0 is reshaped
  Ints axes;    ///< normalised axes of `x`
  Shape scale;  ///< shape to which scale and bias are reshaped; broadcasts with `x`
};

/// View of layer_norm: x itself, normalised along the axes from attribute `axis` on.
NormalizedView trailing_view(const Shape& x, const Attrs& attrs);
/// View of group_norm: x [N, C, ...] as [N, groups, C / groups, ...], normalised within each sample
/// and group.
NormalizedView grouped_view(const Shape& x, int64_t groups);

/// Throws UserError unless operand 0 is a float tensor whose dimensions from attribute `axis` on
/// exist and do not depend on the batch size. Returns these dimensions.
Shape require_trailing_dims(const InferCtx& c);
/// Throws UserError unless operand 0 is a float tensor [N, C, ...] of rank `min_rank` or more. Only
/// N may depend on the batch size.
void require_channels(const InferCtx& c, int64_t min_rank);
/// Throws UserError unless the shape of each operand after x is `scale`, and its dtype is that of x
/// or of the statistics. The error message calls these operands `role`. Also throws UserError if
/// attribute `eps` is negative.
void require_scale(const InferCtx& c, const Shape& scale, const std::string& role);

/// Definitions of attribute `eps`, and of the operands and results of normalisation ops.
AttrDef eps_attr();
std::vector<PortDef> scale_and_bias_ports(const std::string& shape);
PortDef mean_port(const std::string& shape);
PortDef rstd_port(const std::string& shape);

/// Normalisation with the mean subtracted: y = (x - mean) * rstd * scale + bias, where rstd = 1 /
/// sqrt(var + eps). Scale and bias are optional. The statistics are computed in the compute dtype.
/// Returns y, mean and rstd.
Values normalize(const ExpandCtx& c, const NormalizedView& view);
/// Gradient of normalize(), with the sums factored out: dx = rstd * (g - mean(g) - xhat * mean(g *
/// xhat)), where g = dy * scale and xhat = (x - mean) * rstd (Ba, Kiros and Hinton, "Layer
/// normalization", 2016).
Values normalize_grad(const GradCtx& c, const NormalizedView& view);

/// Root mean square normalisation: y = x * rstd * scale, where rstd = 1 / sqrt(mean(x^2) + eps).
/// Returns y and rstd.
Values rms_normalize(const ExpandCtx& c, const NormalizedView& view);
/// Gradient of rms_normalize(): dx = rstd * (g - xhat * mean(g * xhat)), where g = dy * scale and
/// xhat = x * rstd.
Values rms_normalize_grad(const GradCtx& c, const NormalizedView& view);

}  // namespace fluid
