#pragma once

#include "ops/nn/window.h"

namespace fluid {

/// Type inference of a convolution of `dims` spatial dimensions and of its gradients. Returns the
/// type of the convolution's output. Throws UserError unless input [N, C, ...] and filter [O, C /
/// groups, ...] have the same float dtype and matching shapes.
Type conv_type(const InferCtx& c, const Type& input, const Type& filter, int dims);

/// Throws UserError unless each spatial dimension of `filter` has 1 to kMaxWindow taps.
void require_taps(const InferCtx& c, const Type& filter);

/// Returns the windows of a convolution with a filter of shape `filter`.
WindowAxes conv_window(const Attrs& attrs, const Shape& filter);

/// Cost of the convolution. A multiply-add counts as two FLOPs.
Cost conv_cost(const Type& filter, const Type& output);

/// The products that a convolution of operands 0 and 1 sums up, in the dtype of the result.
ReduceBody conv_body(const LowerCtx& c);

/// Returns the definitions of the attributes stride, padding, dilation and groups, followed by
/// `more`.
std::vector<AttrDef> conv_attrs(int dims, std::vector<AttrDef> more = {});
/// Returns the attributes in `attrs` that all convolution ops share: stride, padding, dilation and
/// groups.
Attrs conv_attrs_of(const Attrs& attrs);

/// Grouped convolution: maps output channel `other` to an input channel of the same group, or vice
/// versa. Returns channel `i` of the group: other / other_size * size + i. Each group has
/// `other_size` channels on the side of `other`, and `size` channels on the side of the result.
Expr channel_in_group(const Expr& other, int64_t other_size, const Expr& i, int64_t size,
                      int64_t groups);

/// Records a convolution of x [N, C, ...] with filter w, of 1 to 3 spatial dimensions. A 1-d
/// convolution is recorded as conv2d with height 1, because conv2d has library kernels. `attrs`
/// must contain at least the attributes of conv_attrs_of().
Value record_conv(Value x, Value w, const Attrs& attrs, const Loc& loc);
/// Records the gradient of record_conv() with respect to its input, whose type is `input`.
Value record_conv_grad_input(Value dy, Value w, const Type& input, const Attrs& attrs,
                             const Loc& loc);
/// Records the gradient of record_conv() with respect to its filter, whose type is `filter`.
Value record_conv_grad_filter(Value x, Value dy, const Type& filter, const Attrs& attrs,
                              const Loc& loc);

/// Definitions of the convolution over 2 or 3 spatial dimensions, named "conv2d" or "conv3d", and
/// of its gradient ops. `kernels` lists the library kernels.
OpDef conv_def(int dims, std::vector<LibraryKernel> kernels);
OpDef conv_grad_input_def(int dims, std::vector<LibraryKernel> kernels);
OpDef conv_grad_filter_def(int dims, std::vector<LibraryKernel> kernels);
/// Definition of the transposed convolution over 1 to 3 spatial dimensions.
OpDef conv_transpose_def(int dims);

}  // namespace fluid
