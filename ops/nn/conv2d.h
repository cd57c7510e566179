#pragma once

#include "ops/nn/window.h"

namespace fluid {

/// Checks shared by conv2d and its gradients: input [N, C, H, W] and filter [O, C / groups, KH, KW]
/// have one float dtype and matching shapes. Returns the output type.
Type conv2d_type(const InferCtx& c, const Type& input, const Type& filter);

/// Cost of the convolution; a multiply-add counts as two flops.
Cost conv2d_cost(const Type& filter, const Type& output);

/// Definitions of the attributes stride, padding, dilation and groups, followed by `more`.
std::vector<AttrDef> conv2d_attrs(std::vector<AttrDef> more = {});
/// conv2d_attrs_of() copies the attributes that every convolution has. conv2d_attrs_with() also
/// sets `name` to `type`.
Attrs conv2d_attrs_with(const Attrs& attrs, const std::string& name, const Type& type);
Attrs conv2d_attrs_of(const Attrs& attrs);

/// Channel `i` of the group of channel `other`: other / other_size * size + i. A group has
/// `other_size` channels on the side of `other` (input or output) and `size` on the opposite side.
Expr channel_in_group(const Expr& other, int64_t other_size, const Expr& i, int64_t size,
                      int64_t groups);

}  // namespace fluid
