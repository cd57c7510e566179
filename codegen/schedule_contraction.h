#pragma once

// Schedule for matrix products and convolutions: a tile of accumulators in registers, reductions
// innermost.

#include <optional>

#include "codegen/schedule_loops.h"

namespace fluid {

/// Returns the sinks of a group that is one long enough sum and element-wise maps of its results;
/// else nullopt. Sets `rows` to the row variables.
std::optional<std::vector<FlatSink>> sum_with_maps(KernelBuilder& builder, Vars& rows);

/// A sum of products whose loads are reused by several results, and element-wise maps of the sum.
/// Lanes run along a variable that loads walk with stride 1. Up to two result variables are tiled,
/// so that one load feeds several accumulators. A tile with few results accumulates several vectors
/// at once. A long reduction runs in strips that fit the cache; all results that need a strip use
/// it in turn.
class Contraction {
 public:
  /// Returns nullopt when the group has another form.
  static std::optional<Contraction> match(KernelBuilder& builder);
  /// Fills in the kernel's body and number of blocks.
  void emit();

 private:
  struct Tile {
    int64_t var = -1;
    int64_t size = 1;
  };
  struct Access {
    Expr offset;
    double cost = 0;  ///< cost of one access; a multiply-add costs 1
  };
  /// The vector loop of a tile.
  struct Lanes {
    int64_t var = -1;
    Expr begin, end;
  };
  explicit Contraction(KernelBuilder& builder) : b_(builder) {}

  bool choose_vector();
  std::vector<Access> accesses(int64_t vector) const;
  double result_cost(int64_t vector) const;
  void choose_tiles();
  void choose_inside();
  double bytes_per_pass(const Vars& vars) const;
  double tile_cost(const std::vector<Access>& loads, const Tile& a, const Tile& b) const;
  int64_t chunk_of_vector() const;
  Expr tiles_of(int64_t var) const;
  int64_t tile_size(int64_t var) const;
  void emit_cases(const std::vector<FlatSink>& sinks, size_t next, Vars tile_vars,
                  const std::map<int64_t, Expr>& numbers, kir::Block& out);
  int64_t vector_lanes() const;
  int64_t concurrent_vectors(const Vars& tile_vars) const;
  void emit_strips(const std::vector<FlatSink>& sinks, const Vars& tile_vars, int64_t vectors,
                   kir::Block& out);
  void emit_tile(const std::vector<FlatSink>& sinks, const Vars& tile_vars, const Lanes& lanes,
                 kir::Block& out);
  kir::Block& inside_loops(kir::Block& out);
  kir::Block& tile_loops(const Vars& tile_vars, kir::Block& out);
  kir::Block& reduce_loops(const Vars& vars, double copies, kir::Block& out);

  KernelBuilder& b_;
  std::vector<FlatSink> sinks_;  ///< the sum of products, then the maps that read it
  Vars rows_;
  int64_t vector_ = -1;
  bool lanes_reduced_ = false;  ///< the vector variable is a reduced variable
  std::vector<Tile> tiles_;
  Vars inside_;        ///< result variables whose accumulators a block keeps in memory
  int64_t strip_ = 0;  ///< iterations of the first reduced variable per strip
  Lanes chunk_;
  std::map<int64_t, int64_t> sizes_;  ///< extents of the unrolled variables of tiles
};

}  // namespace fluid
