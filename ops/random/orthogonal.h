#pragma once

#include "ir/graph.h"

namespace fluid {

/// Records ops that compute the orthogonal factor of the polar decomposition of matrix `x`: the
/// rows, or the columns if there are fewer, are orthonormal. The factor of a matrix of independent
/// normal numbers is uniformly distributed, as that of its QR decomposition.
Value orthogonal_factor(Value x, const Loc& loc);

}  // namespace fluid
