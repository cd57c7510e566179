#pragma once

#include "ops/nn/window.h"

namespace fluid {

/// Checks shared by a convolution and its gradients: input [N, C, H, W] and filter
/// [O, C / groups, KH, KW] of the same float dtype that fit together. Returns the output's type.
Type conv2d_type(const InferCtx& c, const Type& input, const Type& filter);

/// Multiply-adds of the convolution count two each.
Cost conv2d_cost(const Type& filter, const Type& output);

/// The attributes of a convolution: stride, padding, dilation, groups; then `more`.
std::vector<AttrDef> conv2d_attrs(std::vector<AttrDef> more = {});
/// Those attributes of `attrs` that every convolution has, and `name = type`.
Attrs conv2d_attrs_with(const Attrs& attrs, const std::string& name, const Type& type);
Attrs conv2d_attrs_of(const Attrs& attrs);

/// Channel `i` of the group that channel `other` of the other side belongs to, where a group has
/// `size` channels on this side and `other_size` on the other: other / other_size * size + i.
Expr channel_in_group(const Expr& other, int64_t other_size, const Expr& i, int64_t size,
                      int64_t groups);

}  // namespace fluid
