#pragma once

#include "ops/nn/window.h"

namespace fluid {

/// Type inference of conv2d and its gradients. Returns the type of the output. Throws UserError
/// unless input [N, C, H, W] and filter [O, C / groups, KH, KW] have the same float dtype and
/// matching shapes.
Type conv2d_type(const InferCtx& c, const Type& input, const Type& filter);

/// Cost of the convolution; a multiply-add counts as two flops.
Cost conv2d_cost(const Type& filter, const Type& output);

/// Returns the definitions of the attributes stride, padding, dilation and groups, followed by
/// `more`.
std::vector<AttrDef> conv2d_attrs(std::vector<AttrDef> more = {});
/// Returns the attributes in `attrs` that all convolution ops share: stride, padding, dilation and
/// groups.
Attrs conv2d_attrs_of(const Attrs& attrs);
/// Returns the attributes of conv2d_attrs_of() and attribute `name` with value `type`.
Attrs conv2d_attrs_with(const Attrs& attrs, const std::string& name, const Type& type);

/// Grouped convolution: returns the index of the `i`-th input channel in the group of output
/// channel `other`: other / other_size * size + i. A group has `other_size` output channels and
/// `size` input channels. The roles of input and output channels may be exchanged.
Expr channel_in_group(const Expr& other, int64_t other_size, const Expr& i, int64_t size,
                      int64_t groups);

}  // namespace fluid
