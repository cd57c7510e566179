#pragma once

#include "ops/kernel_writer.h"

namespace fluid {

/// Updates [outer, count, inner] that are combined into the rows of a result [outer, rows, inner].
struct RowScatter {
  Dim outer, inner, count;
  int64_t rows = 0;
  std::string reduce;  ///< see is_scatter_reduction()
  /// Returns the row (i64) that update `n` of `outer` goes to. An update is dropped if its row is
  /// not in [0, rows).
  std::function<Expr(const Expr& outer, const Expr& n)> row;
  std::function<Expr(const Expr& offset)> initial;  ///< null: zeros
  /// Returns element `i` of the update at `position` = outer * count + n.
  std::function<Expr(const Expr& position, const Expr& i)> update;
};

/// Writes the body of kernel `k`, whose result 0 has type `type`. Updates of one row are combined
/// in their order. Half precision is combined in f32.
void scatter_rows(KernelWriter& k, const LoopsCtx& c, const RowScatter& s);

}  // namespace fluid
