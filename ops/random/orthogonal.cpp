#include "ops/random/orthogonal.h"

#include <algorithm>
#include <cmath>

#include "ops/operators.h"

namespace fluid {
namespace {

/// Number of iterations until the smallest singular value of a random matrix has converged. The
/// value is about n^-1.5 times the Frobenius norm, rarely 100 times smaller. An iteration
/// multiplies it by up to 15/8.
int iterations_for(double n) {
  constexpr double kRarelySmaller = 100, kGrowth = 15.0 / 8;
  constexpr int kLastIterations = 6;  // convergence is cubic for values from 0.5 on
  return kLastIterations + static_cast<int>(std::ceil(std::log(kRarelySmaller * std::pow(n, 1.5)) /
                                                      std::log(kGrowth)));
}

}  // namespace

// Newton-Schulz iteration of order 5 (Higham, "Functions of matrices", 2008, section 8.3): X (15 -
// 10 G + 3 G^2) / 8 with G = X^T X.
Value orthogonal_factor(Value x, const Loc& loc) {
  const int64_t rows = x.shape()[0].size, columns = x.shape()[1].size;
  const bool is_wide = rows < columns;
  x = x / sqrt(sum(square(x, loc), {}, loc), loc);
  const int iterations = iterations_for(static_cast<double>(std::min(rows, columns)));
  for (int i = 0; i < iterations; ++i) {
    const Value gram = matmul(x, x, {.transpose_a = !is_wide, .transpose_b = is_wide}, loc);
    const Value factor = matmul(gram, gram, {}, loc) * 0.375 - gram * 1.25;
    x = x * 1.875 + (is_wide ? matmul(factor, x, {}, loc) : matmul(x, factor, {}, loc));
  }
  return x;
}

}  // namespace fluid
