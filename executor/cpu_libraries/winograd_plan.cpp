#include "executor/cpu_libraries/winograd_plan.h"

#include <algorithm>
#include <optional>

#include "executor/cpu_libraries/divide_up.h"
#include "executor/cpu_libraries/library.h"
#include "executor/host/parallel.h"

namespace fluid {
namespace {

// Target bytes of a chunk of all threads. If the transformed filters are larger than twice this
// size, the target is half of their bytes: each chunk reads them, and a filter gradient writes
// them.
constexpr int64_t kCooperativeChunkBytes = 4 << 20;
constexpr int64_t kMinCooperativeTiles = 32;      // minimum tiles of a chunk of all threads
constexpr int64_t kThreadChunkBytes = 480 << 10;  // target bytes of a chunk of one thread
constexpr int64_t kMinThreadTiles = 6;            // minimum tiles of a chunk of one thread
// Maximum bytes of the transformed filters for ranges of a thread.
constexpr int64_t kMaxThreadFilterBytes = 1 << 20;
// The same for a filter gradient. Each chunk reads and writes it.
constexpr int64_t kMaxThreadGradientBytes = 512 << 10;
// The number of ranges whose filter gradients are added up does not depend on the number of
// threads, so that threads do not change bits.
constexpr int64_t kMaxGradientRanges = 16;
constexpr int64_t kMinGradientRangeTiles = 64;

WinogradPlanesShape filters_of(const WinogradProblem& p) {
  const WinogradPlanesShape source{p.variant.planes(), 1, p.filter.source_channels()};
  return {source.planes, source.padded_columns(), p.filter.result_channels()};
}

/// Returns the number of ranges that threads process on their own; nullopt if they cooperate.
std::optional<int64_t> thread_ranges(const WinogradProblem& p, const WinogradPlanesShape& filters,
                                     int64_t tiles) {
  const bool gradient = p.direction == ConvDirection::filter_gradient;
  if (filters.bytes() > (gradient ? kMaxThreadGradientBytes : kMaxThreadFilterBytes))
    return std::nullopt;
  if (!gradient) return std::min<int64_t>(tiles, thread_count(0));
  const int64_t ranges = std::min(tiles / kMinGradientRangeTiles, kMaxGradientRanges);
  return ranges > 1 ? std::optional(ranges) : std::nullopt;
}

WinogradChunks chunks_of(const WinogradProblem& p, const WinogradPlanesShape& filters,
                         int64_t tiles) {
  const WinogradPlanesShape source{filters.planes, 1, p.filter.source_channels()};
  const int64_t tile_bytes =
      filters.planes * (source.row_values() + filters.row_values()) * int64_t{sizeof(float)};
  const std::optional<int64_t> ranges = thread_ranges(p, filters, tiles);
  const int64_t most =
      ranges ? std::max(kThreadChunkBytes / tile_bytes, kMinThreadTiles)
             : std::max(std::max(kCooperativeChunkBytes, filters.bytes() / 2) / tile_bytes,
                        kMinCooperativeTiles);
  WinogradChunks chunks{.tiles = tiles, .ranges = ranges.value_or(1), .size = 1};
  const int64_t range_tiles = divide_up(tiles, chunks.ranges);
  chunks.size = divide_up(range_tiles, divide_up(range_tiles, most));
  return chunks;
}

}  // namespace

int64_t WinogradChunks::chunks_per_range() const {
  return divide_up(divide_up(tiles, ranges), size);
}

WinogradPlan::WinogradPlan(const WinogradProblem& p, bool may_span_images)
    : problem(p),
      tiles(p.tiles(may_span_images)),
      filters(filters_of(p)),
      chunks(chunks_of(p, filters, tiles.count())),
      workers(std::min<int64_t>(thread_count(0), chunks.ranges)),
      from{filters.planes, chunks.size, p.filter.source_channels()},
      to{filters.planes, chunks.size, p.filter.result_channels()} {}

int64_t WinogradPlan::zeros_bytes() const {
  return align_up(std::max(from.padded_columns(), to.padded_columns()) *
                  size_of(problem.variant.dtype));
}

int64_t WinogradPlan::workspace() const {
  return zeros_bytes() + workers * (from.bytes() + to.bytes()) + filter_copies() * filters.bytes();
}

/// Products reach kEfficiency of the peak FLOP/s. In each plane, a transform costs kTransform
/// operations per image value, and kFilterTransform operations per filter value. These constants
/// were fitted to convolutions with 20 to 512 channels on two cores with AVX-512 (Zen 4).
double WinogradPlan::predicted_seconds(double flops_per_second) const {
  constexpr double kEfficiency = 0.87, kTransform = 28, kFilterTransform = 140;
  const auto from_columns = static_cast<double>(from.padded_columns());
  const auto to_columns = static_cast<double>(to.padded_columns());
  const auto terms = static_cast<double>(from.columns), n = static_cast<double>(chunks.tiles);
  const double flops = 2 * n * terms * to_columns / kEfficiency +
                       kTransform * n * (from_columns + to_columns) +
                       kFilterTransform * from_columns * to_columns;
  // A call runs a parallel region for the filter, and one for the ranges or three per chunk.
  const bool one_thread = thread_count(0) == 1;
  const auto regions = static_cast<double>(
      one_thread ? 1 : 1 + (is_cooperative() ? 3 * chunks.chunks_per_range() : 1));
  return regions * kLibraryCallSeconds +
         static_cast<double>(from.planes) * flops / flops_per_second;
}

}  // namespace fluid
