#pragma once

#include "ops/op_def.h"

namespace fluid {

/// Random bits of element `index` (i64, logical), in [0, 2^32): keyed by `seed` and the attribute
/// `stream`, whose high word serves as the counter.
Expr stream_bits(const LowerCtx& c, const Expr& seed, const Expr& index);

/// A number in [0, 1) from 32 random bits: a multiple of 2^-24, so the same in f32 and f64.
Expr uniform_from_bits(const Expr& bits, DType dtype);

/// Position of the result's element in row-major order.
Expr linear_index(const LowerCtx& c, const Shape& shape, const std::vector<Expr>& index);

/// What a random op in the step sees of `rng`, its operand `rng`: i64[3] = {seed, run counter,
/// first global sample}. Bits of element `index` of a tensor of `shape`, keyed by (seed, run,
/// attribute `stream`, global sample, index within the sample): independent of how the batch is
/// split.
Expr step_bits(const LowerCtx& c, size_t rng, const Shape& shape, const std::vector<Expr>& index);

/// Requires operand `i` to be i64[3].
void require_rng(const InferCtx& c, size_t i);

/// Whether an element that draws `bits` survives a dropout of probability `p`.
Expr survives(const Expr& bits, double p);

}  // namespace fluid
