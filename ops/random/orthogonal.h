#pragma once

#include "ir/graph.h"

namespace fluid {

/// Records ops that compute the orthogonal factor of the polar decomposition of matrix `x`. Its
/// rows are orthonormal, or its columns if `x` has fewer columns than rows. For a matrix of
/// independent standard normal numbers, the factor is uniformly distributed, like the Q factor of a
/// QR decomposition.
Value orthogonal_factor(Value x, const Loc& loc);

}  // namespace fluid
