#include "ops/newton_schulz.h"

#include "ops/operators.h"

namespace fluid {

Value newton_schulz_step(Value x, const NewtonSchulz& coefficients, const Loc& loc) {
  const bool is_wide = x.shape()[0].size <= x.shape()[1].size;
  const Value gram = matmul(x, x, {.transpose_a = !is_wide, .transpose_b = is_wide}, loc);
  const Value polynomial = gram * coefficients.b + matmul(gram, gram, {}, loc) * coefficients.c;
  const Value turned = is_wide ? matmul(polynomial, x, {}, loc) : matmul(x, polynomial, {}, loc);
  return x * coefficients.a + turned;
}

}  // namespace fluid
