#include "codegen/product_blocking.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

#include "codegen/product_row.h"

namespace fluid {
namespace {

// Costs of an operand load; a multiply-add of vectors costs 1. A broadcast reads one element.
constexpr double kVectorLoadCost = 1;
constexpr double kBroadcastLoadCost = 0.5;
// Factor of the cost of a load that converts half precision to f32.
constexpr double kConversionCost = 2;
// Weight of the loads that execute beside multiply-adds.
constexpr double kHiddenLoadCost = 0.1;
// Minimum number of independent multiply-adds in flight, as a fraction of Processor::accumulators.
constexpr double kMinChains = 1.0 / 3;
// Rows whose distance is a multiple of kSetPeriod bytes are in the same set of the L1 cache, which
// has at least 8 ways.
constexpr int64_t kSetPeriod = 4096;
constexpr int64_t kMaxRowsOfSet = 6;
// Maximum number of vectors of a tile. Longer stretches of a row are not read faster.
constexpr int64_t kMaxTileVectors = 16;
// Maximum of mc. A block reads its rows of the left operand once per panel, from the L2 cache.
constexpr int64_t kMaxBlockRows = 96;
// Number of blocks below which blocks are made smaller.
constexpr double kEnoughBlocks = 16;
constexpr int64_t kBlockColumns = 512;
// Minimum of nc if the batch size may leave a single row.
constexpr int64_t kMinColumns = 128;
// A panel with more than kMaxPanelBytes does not fit in the L2 cache beside the left operand.
constexpr int64_t kMaxPanelBytes = int64_t{384} << 10;
constexpr int64_t kTerms = 128;  ///< approximate kc of a sum that is divided
// Minimum of mc / mr if the sum is divided. With fewer tiles, partial sums in memory cost more than
// they save.
constexpr int64_t kMinDividedTiles = 4;
// Sizes of the tiles of the rows that are left over if the number of rows depends on the batch
// size.
constexpr std::array<int64_t, 3> kRemainderTiles = {4, 2, 1};

/// Whether the accumulators of a tile, a row of the panel and a broadcast element fit in registers.
bool fits_registers(const KernelBuilder& b, int64_t rows, int64_t vectors) {
  return 3 * (rows + 1) * vectors < 4 * b.processor.accumulators;
}

/// Returns the maximum number of rows of a tile whose elements of the left operand, one in each
/// row, stay in the L1 cache while the tile reads the right operand.
int64_t most_rows(const KernelBuilder& b, const ProductGroup& group) {
  if (group.row < 0) return 1;
  const DType dtype = b.kernel.buffers[static_cast<size_t>(group.left.node().ivalue)].dtype;
  const int64_t stride = stride_of(group.left, group.row) * size_of(dtype);
  return kMaxRowsOfSet * (kSetPeriod / std::gcd(stride, kSetPeriod));
}

int64_t most_vectors(const ProductGroup& group, int64_t columns) {
  return std::min(kMaxTileVectors, std::max<int64_t>(columns / group.lanes(), 1));
}

/// Returns the cost of one term of a tile, with the costs above.
double tile_cost(const KernelBuilder& b, const ProductGroup& group, int64_t rows, int64_t vectors) {
  const auto conversion = [&](const Expr& load) {
    const DType dtype = b.kernel.buffers[static_cast<size_t>(load.node().ivalue)].dtype;
    return dtype == compute_dtype(dtype) ? 1 : kConversionCost;
  };
  const double loads = conversion(group.right) * kVectorLoadCost * static_cast<double>(vectors) +
                       conversion(group.left) * kBroadcastLoadCost * static_cast<double>(rows);
  const double chains = kMinChains * static_cast<double>(b.processor.accumulators);
  return std::max({static_cast<double>(rows * vectors), loads, chains}) + kHiddenLoadCost * loads;
}

/// Returns the cost of one term of `rows` rows and all columns.
double row_cost(const KernelBuilder& b, const ProductGroup& group, int64_t rows, int64_t vectors) {
  const auto all = static_cast<int64_t>(
      std::ceil(estimated_extent(b.extent(group.column)) / static_cast<double>(group.lanes())));
  const int64_t left = all % vectors;
  return static_cast<double>(all / vectors) * tile_cost(b, group, rows, vectors) +
         (left > 0 ? tile_cost(b, group, rows, left) : 0);
}

/// Chooses the tile with the lowest cost of all results.
void choose_tile(const KernelBuilder& b, const ProductGroup& group, ProductBlocking& blocking) {
  const int64_t rows =
      group.row < 0 ? 1 : static_cast<int64_t>(estimated_extent(b.extent(group.row)));
  const auto columns = static_cast<int64_t>(estimated_extent(b.extent(group.column)));
  const int64_t most = most_vectors(group, columns);
  double best = std::numeric_limits<double>::infinity();
  const int64_t most_m = std::min(rows, most_rows(b, group));
  for (int64_t m = 1; m <= most_m && (m == 1 || fits_registers(b, m, 1)); ++m) {
    for (int64_t v = 1; v <= most && (v == 1 || fits_registers(b, m, v)); ++v) {
      const int64_t left = rows % m;
      double cost = static_cast<double>(rows / m) * row_cost(b, group, m, v);
      if (left > 0) cost += row_cost(b, group, left, v);
      // Breaks ties in favour of wide tiles, which are read in longer stretches.
      const bool better = cost < best - 1e-9 || (cost < best + 1e-9 && v > blocking.nr_vectors);
      if (!better) continue;
      best = cost;
      blocking.mr = m;
      blocking.nr_vectors = v;
    }
  }
}

/// Chooses mc and nc. Blocks are small enough to keep many threads busy. A single row is read in
/// long stretches.
void choose_block(const KernelBuilder& b, const ProductGroup& group, ProductBlocking& blocking) {
  const Dim& columns = b.extent(group.column);
  const int64_t width = blocking.nr_vectors * group.lanes();
  const double tiles =
      group.row < 0
          ? 1
          : std::ceil(estimated_extent(b.extent(group.row)) / static_cast<double>(blocking.mr));
  const double panels = std::ceil(estimated_extent(columns) / static_cast<double>(width));
  const auto blocks = [&](double column_blocks) {
    return estimated_trip_count(b, group.outer) *
           std::ceil(tiles / static_cast<double>(blocking.mc_tiles)) * column_blocks;
  };
  const bool streams = streams_matrix(b, group);
  const bool may_be_single = group.row >= 0 && b.extent(group.row).batch;
  const int64_t least = streams ? kMinStreamedColumns : (may_be_single ? kMinColumns : width);
  const double most_blocks =
      std::max(1.0, std::floor(panels / static_cast<double>(std::max<int64_t>(least / width, 1))));
  blocking.mc_tiles = std::max<int64_t>(kMaxBlockRows / blocking.mr, 1);
  if (!may_be_single) blocking.mc_tiles = std::min(blocking.mc_tiles, static_cast<int64_t>(tiles));
  while (blocking.mc_tiles > 1 && blocks(most_blocks) < kEnoughBlocks) blocking.mc_tiles /= 2;
  const double most_panels = static_cast<double>(
      std::max<int64_t>((streams ? kMinStreamedColumns : kBlockColumns) / width, 1));
  double column_blocks = std::min(std::ceil(panels / most_panels), most_blocks);
  while (column_blocks < most_blocks && blocks(column_blocks) < kEnoughBlocks) ++column_blocks;
  blocking.nc = static_cast<int64_t>(std::ceil(panels / column_blocks)) * width;
  if (streams) blocking.nc = streamed_columns(columns.size).value_or(blocking.nc);
}

/// Chooses kc, and whether the left operand is packed.
void choose_strips(const KernelBuilder& b, const ProductGroup& group, ProductBlocking& blocking) {
  const Dim& depth = b.extent(group.depth);
  const int64_t width = blocking.nr_vectors * group.lanes();
  const auto panel_bytes =
      static_cast<int64_t>(estimated_extent(depth)) * width * size_of(group.accumulator_dtype());
  const bool is_long = depth.batch || depth.size > 2 * kTerms;
  const bool gains = group.has_transposed_left() || panel_bytes > kMaxPanelBytes;
  if (!is_long || !gains || blocking.mc_tiles < kMinDividedTiles) return;
  const int64_t strips = ceil_of(depth.size, kTerms);
  blocking.kc =
      depth.batch ? kTerms : ceil_of(ceil_of(depth.size, strips), group.lanes()) * group.lanes();
  blocking.kc_panels = blocking.nc <= kBlockColumns ? blocking.nc / width : 1;
  blocking.packs_left = group.has_transposed_left() && blocking.nc <= kBlockColumns;
}

}  // namespace

int64_t widest_tile(const KernelBuilder& b, const ProductGroup& group,
                    const ProductBlocking& blocking, int64_t rows) {
  if (rows == blocking.mr) return blocking.nr_vectors;
  const auto columns = static_cast<int64_t>(estimated_extent(b.extent(group.column)));
  const int64_t most = most_vectors(group, std::min(blocking.nc, columns));
  int64_t vectors = 1;
  while (vectors < most && fits_registers(b, rows, vectors + 1)) ++vectors;
  return vectors;
}

std::vector<int64_t> remainder_tiles(const KernelBuilder& b, const ProductGroup& group,
                                     int64_t mr) {
  if (group.row < 0 || mr == 1) return {};
  const Dim& extent = b.extent(group.row);
  std::vector<int64_t> tiles;
  if (!extent.batch) {
    if (extent.size % mr > 0) tiles.push_back(extent.size % mr);
    return tiles;
  }
  for (const int64_t rows : kRemainderTiles) {
    if (rows < mr) tiles.push_back(rows);
  }
  return tiles;
}

ProductBlocking choose_blocking(const KernelBuilder& builder, const ProductGroup& group) {
  ProductBlocking blocking;
  choose_tile(builder, group, blocking);
  choose_block(builder, group, blocking);
  choose_strips(builder, group, blocking);
  return blocking;
}

}  // namespace fluid
