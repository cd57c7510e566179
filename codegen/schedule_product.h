#pragma once

// CPU schedule for matrix products: packed panels of the operands that stay in the cache, and tiles
// of results that are accumulated in registers.

#include <optional>

#include "codegen/product_blocking.h"
#include "codegen/product_group.h"

namespace fluid {

/// CPU schedule for a ProductGroup, with the loops of BLIS (see ProductBlocking). From the outside:
/// blocks of mc x nc results, strips of kc terms, panels of nr columns, tiles of mr rows, terms.
/// Partial sums of a block are in memory between strips. Each result is the sum over k in ascending
/// order, whatever the sizes are.
class MatrixProduct {
 public:
  /// Returns the schedule of the builder's group, or nullopt if this schedule does not apply to the
  /// group.
  static std::optional<MatrixProduct> match(KernelBuilder& builder);
  /// Sets the body and the number of blocks of the builder's kernel.
  void emit();

 private:
  /// Tiles [begin, end) of `rows` rows each.
  struct RowTiles {
    int64_t rows = 1;
    Expr base;  ///< first row of tile 0; null: there is no row variable
    Expr begin, end;
  };
  /// Terms [begin, end) of the sum.
  struct Strip {
    Expr begin, end;
    Expr number = {}, count = {};  ///< null: there is a single strip
  };
  /// `vectors` vectors of columns.
  struct Panel {
    int64_t vectors = 1;
    Expr begin;        ///< first column
    Expr number = {};  ///< index of the panel among those that have partial sums
  };
  MatrixProduct(KernelBuilder& builder, ProductGroup group);

  double terms_of_block() const;
  int64_t block_rows() const;  ///< mc
  bool has_strips(const RowTiles& tiles) const;
  Strip whole_sum() const;
  Strip strip_of_sum(const Expr& number) const;
  Expr row_count() const;
  Expr tile_count() const;  ///< number of tiles of mr rows
  void add_local_buffers();
  void emit_rows(const RowTiles& tiles, kir::Block& out);
  void emit_full_panels(const RowTiles& tiles, int64_t vectors, const Expr& panels,
                        kir::Block& out);
  void emit_remaining_columns(const RowTiles& tiles, int64_t vectors, const Expr& panels,
                              kir::Block& out);
  void emit_single_rows(const RowTiles& tiles, kir::Block& out);
  void emit_masked_columns(const RowTiles& tiles, const Expr& begin, const Expr& end,
                           kir::Block& out);
  void emit_tiles(const RowTiles& tiles, const Panel& panel, const Strip& strip, kir::Block& out);
  Expr packed_term(const Strip& strip, const Expr& row_of_block) const;
  void emit_left_packing(const RowTiles& tiles, const Strip& strip, kir::Block& out);
  void emit_left_prefetch(const RowTiles& tiles, const Strip& strip, const Expr& turn,
                          kir::Block& out);
  Expr row(const RowTiles& tiles, const Expr& tile, const Expr& within) const;

  KernelBuilder& b_;
  ProductGroup group_;
  ProductBlocking blocking_;
  // Local buffers; -1: none
  int64_t packed_left_ = -1;        ///< [kc, mc]
  int64_t partial_sums_ = -1;       ///< [panels, mc, nr]
  Expr first_column_, end_column_;  ///< columns of the current block
};

}  // namespace fluid
