#pragma once

#include "ops/op_def.h"

namespace fluid {

/// Definition of attribute "padding_idx". `effect` says what happens to the row.
AttrDef padding_idx_attr(const std::string& effect);

/// Throws UserError (by c.fail()) unless operand 0 is a table [V, D] with V > 0, operand 1 an
/// integer tensor and attribute "padding_idx" valid.
void require_embedding(const InferCtx& c);

/// Returns the non-negative row that attribute "padding_idx" names, if it names one.
std::optional<int64_t> padding_row(const Attrs& attrs, const Shape& table);

/// Returns `index` as i64, with -1 for `padding`. gather_grad drops the slices at index -1.
Value index_without_padding(Value index, std::optional<int64_t> padding);

}  // namespace fluid
