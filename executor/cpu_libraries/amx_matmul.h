#pragma once

// Matrix products in bf16 by tiles: y = a * b, where a and b may be transposed.

#include <memory>

#include "executor/cpu_libraries/library.h"

namespace fluid {

struct AmxMatmulProblem {
  int64_t rows, columns, terms;  ///< y is [rows, columns]
  bool transposed_left;          ///< a is [terms, rows], else [rows, terms]
  bool transposed_right;         ///< b is [columns, terms], else [terms, columns]
  bool bias, relu;
};

/// Returns the product of `op` followed by `epilogue`; nullopt if it is not one of two matrices in
/// bf16.
std::optional<AmxMatmulProblem> amx_matmul_problem(const ir::Op& op, const EpilogueOps& epilogue,
                                                   int64_t batch);

/// The shapes of a kernel, and the memory that it needs. A task computes a block of rows and a
/// group of columns, a strip of terms at a time. It copies both factors of the strip to tiles.
class AmxMatmulPlan {
 public:
  explicit AmxMatmulPlan(const AmxMatmulProblem& p);

  int64_t workspace() const;
  /// Returns the routine of the kernel. `plan` must be this object.
  static LibraryRoutine routine(std::shared_ptr<const AmxMatmulPlan> plan);
  double predicted_seconds(double flops_per_second, double bytes_per_second) const;

  AmxMatmulProblem problem;
  int64_t block_rows;     ///< a multiple of 32
  int64_t group_columns;  ///< a multiple of 32
  int64_t strip_terms;    ///< a multiple of 32
  int64_t workers;        ///< threads that have factors and sums of their own in memory

  int64_t blocks() const;
  int64_t groups() const;
  // Of a worker:
  int64_t left_values() const { return block_rows * strip_terms; }
  int64_t right_values() const { return group_columns * strip_terms; }
  int64_t sums_values() const { return block_rows * group_columns; }
};

}  // namespace fluid
