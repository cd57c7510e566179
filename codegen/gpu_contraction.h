#pragma once

// Sums of products, and other long sums, on a GPU: a tile of accumulators in the registers of each
// thread.

#include <optional>

#include "codegen/schedule_loops.h"

namespace fluid {

/// A sum whose terms are read by several results, and maps of those. Either a thread computes a
/// tile of results, its neighbours the tiles beside it; or, where operands lie along the reduction,
/// a team shares the terms of a tile and adds them up. Where that makes too few threads, the
/// reduction is cut into parts, whose sums a second pass adds in order.
class GpuContraction {
 public:
  /// Null when the group is none.
  static std::optional<GpuContraction> match(KernelBuilder& builder);
  std::vector<kir::Kernel> emit();

 private:
  struct Tile {
    int64_t var = -1;
    int64_t size = 1;
  };
  /// The sinks of one tile: each result variable has a value.
  struct Renamed {
    std::vector<FlatSink> sinks;
    Vars within;               ///< unrolled variables, one a tile
    std::vector<Expr> index;   ///< the same as expressions
    std::vector<Expr> inside;  ///< what must hold for a result to exist
  };
  explicit GpuContraction(KernelBuilder& builder) : b_(builder) {}

  void choose_lanes();
  void choose_tiles();
  void choose_parts();
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
  std::pair<Expr, Expr> bounds_of_part() const;

  KernelBuilder& b_;
  std::vector<FlatSink> sinks_;  ///< the sum first
  int64_t lanes_ = -1;           ///< variable along which neighbouring threads go
  bool lanes_reduced_ = false;
  std::vector<Tile> tiles_;
  int64_t parts_ = 1;  ///< of the first reduced variable
  int64_t part_ = -1;  ///< variable that holds the part's number
  int64_t sums_ = -1;  ///< buffer of the parts' sums, [parts, results]
};

}  // namespace fluid
