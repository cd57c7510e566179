#pragma once

#include "ops/operators.h"

namespace fluid {

/// Coefficients of a Newton-Schulz iteration. T is double, or Value for a scalar of the graph.
template <class T>
struct NewtonSchulz {
  T a, b, c;
};

/// Records one Newton-Schulz iteration: a X + (b G + c G^2) X with G = X X^T, or, if `x` has more
/// rows than columns, a X + X (b G + c G^2) with G = X^T X.
/// Maps each singular value s to a s + b s^3 + c s^5. Repeated iterations approach the orthogonal
/// factor of the polar decomposition of `x`.
template <class T>
Value newton_schulz_step(Value x, const NewtonSchulz<T>& coefficients,
                         const Loc& loc = Loc::here()) {
  const bool is_wide = x.shape()[0].size <= x.shape()[1].size;
  const Value gram = matmul(x, x, {.transpose_a = !is_wide, .transpose_b = is_wide}, loc);
  const Value polynomial = gram * coefficients.b + matmul(gram, gram, {}, loc) * coefficients.c;
  const Value turned = is_wide ? matmul(polynomial, x, {}, loc) : matmul(x, polynomial, {}, loc);
  return x * coefficients.a + turned;
}

}  // namespace fluid
