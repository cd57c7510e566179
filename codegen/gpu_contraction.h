#pragma once

// GPU schedule for contractions (matrix products, convolutions) and other long sums: each thread
// keeps a tile of accumulators in registers.

#include <optional>

#include "codegen/schedule_loops.h"

namespace fluid {

/// GPU schedule for a contraction with an elementwise epilogue. A contraction is a sum of products
/// in which each operand element is used by several results, such as a matmul. By default each
/// thread computes a tile of results, and adjacent threads compute adjacent tiles. If the operands
/// are contiguous along the reduction, the threads of a thread group divide the reduction among
/// themselves and add their partial sums. If there are too few threads to fill the GPU, split-K
/// divides the reduction into slices. A second kernel then adds the partial sums of the slices in
/// order.
class GpuContraction {
 public:
  /// Returns the schedule of the builder's group, or nullopt if this schedule does not apply to the
  /// group.
  static std::optional<GpuContraction> match(KernelBuilder& builder);
  std::vector<kir::Kernel> emit();

 private:
  struct Tile {
    int64_t var = -1;
    int64_t size = 1;
  };
  /// The roots of one tile. In their expressions, each tiled result variable is replaced by a
  /// function of the tile index and of the variables `unrolled`.
  struct TileBody {
    std::vector<FlatRoot> roots;
    Vars unrolled;  ///< variables of the unrolled loops, one per tiled variable
    /// The variables `unrolled` as expressions, which index the accumulators of the tile.
    std::vector<Expr> index;
    /// Conditions on an element of the tile. If all are true, the element is inside the result.
    std::vector<Expr> in_bounds;
  };
  explicit GpuContraction(KernelBuilder& builder) : b_(builder) {}

  void choose_lane_var();
  void choose_tiles();
  void choose_splits();
  double load_cost(const Expr& load, const std::vector<Tile>& tiles) const;
  double tile_cost(const std::vector<Tile>& tiles) const;
  double thread_count(const std::vector<Tile>& tiles) const;
  int64_t tile_size(int64_t var) const;
  Expr tile_count(int64_t var) const;

  kir::Kernel tile_per_thread_kernel();
  kir::Kernel tile_per_thread_group_kernel();
  kir::Kernel split_k_reduction_kernel();
  TileBody bind_tile(kir::Block*& block, const Expr& tile_index);
  // Functions named emit_..._loops append loops to `out` and return the body of the innermost one.
  kir::Block& emit_tile_loops(const TileBody& tile, kir::Block& out);
  kir::Block& emit_reduction_loops(TileBody& tile, kir::Block& out);
  void accumulate(const TileBody& tile, int64_t accumulator_id, kir::Block& out);
  void store_tile(const TileBody& tile, int64_t accumulator_id, bool per_lane, kir::Block& out);
  void store_results(const std::vector<FlatRoot>& roots, const Expr& total, const Expr& mask,
                     kir::Block& out);
  std::pair<Expr, Expr> split_bounds() const;

  KernelBuilder& b_;
  std::vector<FlatRoot> roots_;  ///< the contraction, then its epilogue
  int64_t lane_var_ = -1;  ///< variable whose adjacent values are processed by adjacent threads
  bool lanes_reduced_ = false;  ///< whether lane_var_ is a reduction variable
  std::vector<Tile> tiles_;
  /// Number of slices into which split-K divides the first reduction variable; 1: no split-K.
  int64_t splits_ = 1;
  int64_t split_var_ = -1;  ///< loop variable that counts the slices of split-K
  /// Index of the buffer that holds the partial sums of split-K, of shape [slices, results].
  int64_t partial_sums_ = -1;
};

}  // namespace fluid
