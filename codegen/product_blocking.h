#pragma once

// Tile and block sizes of matrix products on CPUs.

#include <cstdint>
#include <vector>

#include "codegen/product_group.h"

namespace fluid {

/// Sizes of the loops of a matrix product, named as in Van Zee and van de Geijn, "BLIS: A Framework
/// for Rapidly Instantiating BLAS Functionality", ACM TOMS 2015. A tile of mr rows and nr columns
/// is accumulated in registers. A block computes mc rows and nc columns, kc terms at a time.
struct ProductBlocking {
  int64_t mr = 1;
  int64_t nr_vectors = 1;  ///< nr, in vectors
  int64_t mc_tiles = 1;    ///< mc / mr
  int64_t nc = 0;          ///< may be larger than the number of columns
  int64_t kc = 0;          ///< 0: the sum is not divided
  int64_t kc_panels = 1;   ///< panels of nr columns that use kc terms before the next kc
  /// Whether a block copies its kc terms of a transposed left operand to contiguous memory.
  bool packs_left = false;
};

ProductBlocking choose_blocking(const KernelBuilder& builder, const ProductGroup& group);

/// Sizes of the tiles of the rows that tiles of mr rows leave over, in order.
std::vector<int64_t> remainder_tiles(const KernelBuilder& builder, const ProductGroup& group,
                                     int64_t mr);
/// Returns the largest number of vectors, up to those of nc columns, that a tile of `rows` rows can
/// have in registers.
int64_t widest_tile(const KernelBuilder& builder, const ProductGroup& group,
                    const ProductBlocking& blocking, int64_t rows);

}  // namespace fluid
