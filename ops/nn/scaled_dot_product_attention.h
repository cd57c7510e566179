#pragma once

// Shared parts of scaled_dot_product_attention and its variant with dropout. Both expand into the
// op attention. Their gradients are the ops attention_grad_query and attention_grad_key_value.

#include "ops/op_def.h"

namespace fluid {

/// Expands scaled_dot_product_attention, or its variant with dropout, into the op attention. `mask`
/// and `random_key` may be null.
Values expand_attention(const ExpandCtx& c, Value mask, Value random_key);
/// Returns the gradients of q, k and v, then null for each other operand.
Values attention_gradients(const GradCtx& c, Value mask, Value random_key);

/// Type inference of scaled_dot_product_attention and its variant with dropout. `mask` is the
/// operand index of the optional mask. Throws UserError (by c.fail()) if an operand's type does not
/// fit.
std::vector<Type> infer_attention(const InferCtx& c, size_t mask);

/// Definitions of the operands q, k and v.
std::vector<PortDef> attention_inputs();
PortDef attention_mask_input();
std::vector<PortDef> attention_outputs();

}  // namespace fluid
