#pragma once

#include "ir/graph.h"
#include "ir/loc.h"

namespace fluid {

/// Coefficients of an iteration of Newton-Schulz.
struct NewtonSchulz {
  double a = 0, b = 0, c = 0;
};

/// Records one iteration towards the orthogonal factor of the polar decomposition of the matrix
/// `x`: a X + (b G + c G^2) X with G = X X^T. If `x` has fewer columns than rows, uses the columns.
/// It maps each singular value s to a s + b s^3 + c s^5.
Value newton_schulz_step(Value x, const NewtonSchulz& coefficients, const Loc& loc = Loc::here());

}  // namespace fluid
