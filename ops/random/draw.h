#pragma once

#include "ops/op_def.h"

namespace fluid {

/// Random bits in [0, 2^32) of the element at logical `index` (i64). Philox with key `seed`; high
/// and low word of attribute `stream` are its counter and stream.
Expr stream_bits(const LowerCtx& c, const Expr& seed, const Expr& index);

/// Uniform number in [0, 1) from 32 random bits: a multiple of 2^-24, so f32 and f64 give equal
/// values.
Expr uniform_from_bits(const Expr& bits, DType dtype);

/// Row-major linear index of the result's element.
Expr linear_index(const LowerCtx& c, const Shape& shape, const std::vector<Expr>& index);

/// Random bits of element `index` of a tensor of `shape`, for ops of the training step. Operand
/// `rng` is i64[3] = {seed, run counter, first global sample}. Bits are keyed by (seed, run,
/// attribute `stream`, global sample, index within the sample). So they do not depend on how the
/// batch is split.
Expr step_bits(const LowerCtx& c, size_t rng, const Shape& shape, const std::vector<Expr>& index);

/// Fails unless operand `i` is i64[3].
void require_rng(const InferCtx& c, size_t i);

/// Whether dropout of probability `p` keeps the element with random bits `bits`.
Expr survives(const Expr& bits, double p);

}  // namespace fluid
