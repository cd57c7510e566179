#pragma once

#include "ops/op_def.h"

namespace fluid {

/// Returns 32 random bits as an i64 in [0, 2^32), for the element at linear index `index` (i64).
/// Calls scalar::philox() with `seed`, the high word of attribute `stream` as `counter`, and the
/// low word as `stream`.
Expr stream_random_bits(const LowerCtx& c, const Expr& seed, const Expr& index);

/// Converts 32 random bits to a uniform number in [0, 1). The number is a multiple of 2^-24, so f32
/// and f64 give equal values.
Expr uniform_from_bits(const Expr& bits, DType dtype);

/// Converts two words of 32 random bits to a number of the standard normal distribution, by the
/// Box-Muller transform (Box and Muller, "A note on the generation of random normal deviates",
/// 1958).
Expr normal_from_bits(const Expr& radius_bits, const Expr& angle_bits, DType dtype);

/// Returns the row-major linear index of the element at `index` in a tensor of `shape`.
Expr linear_index(const LowerCtx& c, const Shape& shape, const std::vector<Expr>& index);

/// Returns random bits for the element at `index` of a tensor of shape `shape`, for ops of the
/// training step. Operand `rng` is i64[3]: the seed, the run counter, and the index of the batch's
/// first sample in the global batch. The bits depend on the seed, the run counter, attribute
/// `stream`, the index of the sample in the global batch, and the index within the sample. They do
/// not depend on how the global batch is split into micro-batches and ranks.
Expr step_random_bits(const LowerCtx& c, size_t rng, const Shape& shape,
                      const std::vector<Expr>& index);

/// Throws UserError unless operand `i` has the type of the random state, i64[3].
void require_random_state(const InferCtx& c, size_t i);

/// FLOPs of one random draw in dropout: one Philox4x32-10 call and a comparison.
inline constexpr double kFlopsPerDropoutDraw = 58;

/// Returns 1 / (1 - p), by which dropout multiplies the elements that it keeps; 0 if p is 1.
double dropout_scale(double p);

/// Returns the condition that dropout with probability `p` keeps the element whose random bits are
/// `bits`.
Expr dropout_keep_condition(const Expr& bits, double p);

}  // namespace fluid
