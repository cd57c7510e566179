#pragma once

// CPU code for the product of one row and a large matrix, whose speed is the memory bandwidth.

#include <optional>

#include "codegen/product_group.h"

namespace fluid {

/// Minimum number of columns of a block that computes a single row.
inline constexpr int64_t kMinStreamedColumns = 256;

/// Whether a row of the result is the product of a row and a matrix that does not fit in the cache.
/// The batch size may leave a single row.
bool streams_matrix(const KernelBuilder& builder, const ProductGroup& group);

/// Returns the number of columns of a block that computes a single row of `columns` columns;
/// nullopt if there are too few columns for several blocks.
std::optional<int64_t> streamed_columns(int64_t columns);

/// Emits code for one row of the result and the columns [begin, end), at most `block_columns`.
/// Reads several rows of the matrix together, over all columns. The accumulators are in
/// memory. Panels would read each row in short stretches on a page of its own, at 0.6 of the memory
/// bandwidth that this code reaches.
void emit_streamed_row(KernelBuilder& builder, const ProductGroup& group,
                       const std::vector<FlatRoot>& roots, const Expr& begin, const Expr& end,
                       int64_t block_columns, kir::Block& out);

}  // namespace fluid
