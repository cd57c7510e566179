#pragma once

#include "ops/kernel_writer.h"

namespace fluid {

/// Updates of shape [outer, count, inner] for the rows of a result of shape [outer, rows, inner].
struct RowScatter {
  Dim outer, inner, count;
  int64_t rows = 0;
  std::string reduce;  ///< see is_scatter_reduction()
  /// Returns the row index (i64) to which update `n` of outer index `outer` is applied. If it is
  /// not in [0, rows), the update is dropped.
  std::function<Expr(const Expr& outer, const Expr& n)> row;
  /// Returns the initial value of the element at `offset`. If null, all elements start at 0.
  std::function<Expr(const Expr& offset)> initial;
  /// Returns element `i` of the update at `position` = outer * count + n.
  std::function<Expr(const Expr& position, const Expr& i)> update;
};

/// Writes the body of kernel `k`, which scatters the updates into result 0. Updates of one row are
/// combined in ascending order of `n`. Half-precision values are combined in f32.
void scatter_rows(KernelWriter& k, const LoopsCtx& c, const RowScatter& s);

}  // namespace fluid
