#pragma once

// GPU schedule for sums of products and other long sums: each thread keeps a tile of accumulators
// in registers.

#include <optional>

#include "codegen/schedule_loops.h"

namespace fluid {

/// A sum whose loads are shared by several results, and maps of the sum. Either each thread
/// computes a tile of results, and adjacent threads compute adjacent tiles. Or, where operands are
/// contiguous along the reduction, a team shares the terms of a tile and adds them up. If this
/// gives too few threads, split-K cuts the reduction into parts, whose sums a second kernel adds in
/// order.
class GpuContraction {
 public:
  /// Returns nullopt when the group has another form.
  static std::optional<GpuContraction> match(KernelBuilder& builder);
  std::vector<kir::Kernel> emit();

 private:
  struct Tile {
    int64_t var = -1;
    int64_t size = 1;
  };
  /// The sinks of one tile, with each result variable bound to a value.
  struct Renamed {
    std::vector<FlatSink> sinks;
    Vars within;               ///< unrolled variables, one per tiled variable
    std::vector<Expr> index;   ///< `within` as expressions
    std::vector<Expr> inside;  ///< conditions under which a result exists
  };
  explicit GpuContraction(KernelBuilder& builder) : b_(builder) {}

  void choose_lanes();
  void choose_tiles();
  void choose_splits();
  double load_cost(const Expr& load, const std::vector<Tile>& tiles) const;
  double cost(const std::vector<Tile>& tiles) const;
  double threads(const std::vector<Tile>& tiles) const;
  int64_t tile_size(int64_t var) const;
  Expr tiles_of(int64_t var) const;

  kir::Kernel results_kernel();
  kir::Kernel terms_kernel();
  kir::Kernel totals_kernel();
  Renamed rename_tile(kir::Block*& at, const Expr& number);
  kir::Block& tile_loops(const Renamed& tile, kir::Block& out);
  kir::Block& reduce_loops(Renamed& tile, kir::Block& out);
  void accumulate(const Renamed& tile, int64_t acc, kir::Block& out);
  void finish_tile(const Renamed& tile, int64_t acc, bool lanes, kir::Block& out);
  void store_results(const std::vector<FlatSink>& sinks, const Expr& total, const Expr& mask,
                     kir::Block& out);
  std::pair<Expr, Expr> split_bounds() const;

  KernelBuilder& b_;
  std::vector<FlatSink> sinks_;  ///< the sum first
  int64_t lanes_ = -1;           ///< variable that maps to adjacent threads
  bool lanes_reduced_ = false;
  std::vector<Tile> tiles_;
  int64_t parts_ = 1;  ///< split-K parts of the first reduced variable
  int64_t part_ = -1;  ///< variable that holds the index of the split-K part
  int64_t sums_ = -1;  ///< buffer of partial sums, [parts, results]
};

}  // namespace fluid
