#pragma once

#include "ops/nn/window.h"

namespace fluid {

/// Returns the definitions of the attributes kernel, stride, padding, dilation and ceil_mode,
/// followed by `more`.
std::vector<AttrDef> pool_attrs(int dims, std::vector<AttrDef> more = {});

/// Returns the type of the result of pooling `input` [N, C, ...]. Throws UserError when the window
/// does not fit the input.
Type pool_type(const InferCtx& c, const Type& input, int dims);
/// Type inference for the gradient of a pooling op. Returns attribute `input`, the type of the
/// forward input. Throws UserError unless operand 0 has the type of the forward result.
Type pool_grad_type(const InferCtx& c, int dims);

/// Definitions of average and max pooling over `dims` spatial dimensions, and of their gradient
/// ops.
OpDef avg_pool_def(int dims);
OpDef avg_pool_grad_def(int dims);
OpDef max_pool_def(int dims);
OpDef max_pool_grad_def(int dims);

}  // namespace fluid
