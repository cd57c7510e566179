#pragma once

#include "ops/op_def.h"

namespace fluid {

/// Definition of attribute "padding_idx". Its doc string is "row of the table that " plus `effect`,
/// for example "gets no gradient".
AttrDef padding_idx_attr(const std::string& effect);

/// Throws UserError (by c.fail()) unless operand 0 is a table [V, D] with V > 0, operand 1 is an
/// integer tensor, and attribute "padding_idx" is valid.
void require_embedding(const InferCtx& c);

/// Returns the row of attribute "padding_idx" as a non-negative index; nullopt if there is no
/// padding row.
std::optional<int64_t> padding_row(const Attrs& attrs, const Shape& table);

/// Returns `index` as i64, with `padding` replaced by -1. gather_grad drops the slices at index -1.
Value mask_padding_index(Value index, std::optional<int64_t> padding);

}  // namespace fluid
