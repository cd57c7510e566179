#include "executor/cpu_libraries/amx_filter.h"

#include <algorithm>

#include "executor/cpu_libraries/amx_product.h"
#include "executor/cpu_libraries/direct_padding.h"
#include "executor/cpu_libraries/divide_up.h"
#include "executor/cpu_libraries/plan_routine.h"
#include "executor/host/parallel.h"
#include "passes/memory_plan.h"

namespace fluid {
namespace {

// Maximum bytes of the sums of a task, which stay in its L2 cache.
constexpr int64_t kMaxGroupBytes = 1 << 20;
// Maximum bytes of the sums of all ranges.
constexpr int64_t kMaxSumsBytes = 8 << 20;
// The number of tasks does not depend on the number of threads, so that threads do not change bits.
constexpr int64_t kTasks = 16;
constexpr int64_t kMinRangeStrips = 4;

/// A kernel with bound memory addresses.
class AmxFilterCall {
 public:
  AmxFilterCall(const AmxFilterPlan& plan, void* const* buffers, void* workspace)
      : plan_(plan),
        source_(static_cast<const uint16_t*>(buffers[0])),
        gradient_(static_cast<const uint16_t*>(buffers[1])),
        filter_(static_cast<uint16_t*>(buffers[2])),
        sums_(static_cast<float*>(workspace)),
        padded_(reinterpret_cast<uint16_t*>(sums_ + plan.ranges * plan.sums_values())),
        rows_(padded_ + plan.padded_values()) {}

  void run() {
    if (plan_.merges_taps) {
      parallel_for(plan_.problem.images * plan_.problem.y.padded, [&](int64_t begin, int64_t end) {
        pad_direct_rows(plan_.problem, source_, padded_, begin, end);
      });
    }
    if (!plan_.packs_strips_of_range()) {
      parallel_for(plan_.strips, [&](int64_t begin, int64_t end) {
        for (int64_t strip = begin; strip < end; ++strip) pack_rows(strip, rows_of(strip));
      });
    }
    const int64_t groups = plan_.groups();
    parallel_for(plan_.ranges * groups, [&](int64_t begin, int64_t end) {
      with_amx_tiles([&] {
        for (int64_t i = begin; i < end; ++i) accumulate(i / groups, i % groups);
      });
    });
    parallel_for(plan_.row_blocks * plan_.tap_blocks, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        store_filters(i / plan_.tap_blocks, i % plan_.tap_blocks);
    });
  }

 private:
  static constexpr int64_t kPixels = AmxFilterPlan::kStripPixels;
  static constexpr int64_t kBlock = AmxFilterPlan::kBlock;
  static constexpr int64_t kTile = kPixels / kAmxTerms * kAmxFactorValues;  // values of a strip

  uint16_t* rows_of(int64_t strip) const { return rows_ + strip * plan_.rows_values(); }

  /// Stores dy of the pixels of a strip as left factors.
  void pack_rows(int64_t strip, uint16_t* to) const {
    const int64_t channels = plan_.problem.out_channels;
    int64_t offsets[kPixels];
    for (int64_t i = 0; i < kPixels; ++i) {
      const int64_t pixel = strip * kPixels + i;
      offsets[i] = pixel < plan_.pixels.pixels() ? pixel * channels : -1;
    }
    pack_amx_rows({.source = gradient_, .offsets = offsets, .channels = channels}, to, kTile);
  }

  /// Adds up the sums of a range of strips, for a group of blocks of columns.
  void accumulate(int64_t range, int64_t group) const {
    const int64_t first = group * plan_.group_blocks;
    const int64_t end = std::min(first + plan_.group_blocks, plan_.column_blocks());
    const uint16_t* const source = plan_.merges_taps ? padded_ : source_;
    AmxPixel pixels[kPixels];
    int64_t offsets[kPixels];
    alignas(64) uint16_t right[2 * kTile];
    for (int64_t strip = plan_.range_begin(range); strip < plan_.range_begin(range + 1); ++strip) {
      const uint16_t* rows = rows_of(plan_.packs_strips_of_range() ? range : strip);
      if (plan_.packs_strips_of_range()) pack_rows(strip, rows_of(range));
      const int64_t n = std::min(plan_.pixels.pixels() - strip * kPixels, kPixels);
      plan_.pixels.store_pixels(strip * kPixels, n, pixels);
      for (int64_t block = first; block < end; ++block) {
        const int64_t channel = block % plan_.tap_blocks * kBlock;
        if (channel == 0 || block == first) {
          const AmxTap& tap =
              plan_.pixels
                  .taps()[static_cast<size_t>(block / plan_.tap_blocks * plan_.taps_per_row)];
          store_offsets({pixels, static_cast<size_t>(n)}, tap, offsets);
        }
        pack_amx_columns({.source = source + channel,
                          .offsets = offsets,
                          .channels = std::min(plan_.row_columns() - channel, kBlock)},
                         right, kTile);
        float* const sums = sums_of(range, block);
        for (int64_t row = 0; row < plan_.row_blocks; ++row) {
          add_amx_product({.row_tiles = 2,
                           .column_tiles = 2,
                           .steps = kPixels / kAmxTerms,
                           .left = rows + row * 2 * kTile,
                           .left_row_bytes = kAmxTerms * int64_t{sizeof(uint16_t)},
                           .left_tile = kTile,
                           .left_step = kAmxFactorValues,
                           .right = right,
                           .right_tile = kTile,
                           .sums = sums + row * 4 * kAmxTileValues,
                           .sums_row = 2 * kAmxTileValues,
                           .sums_column = kAmxTileValues,
                           .accumulates = strip > plan_.range_begin(range)});
        }
      }
    }
  }

  /// Stores the distances in values of the pixels that a tap reads; -1 behind the last pixel.
  void store_offsets(std::span<const AmxPixel> pixels, const AmxTap& tap, int64_t* offsets) const {
    for (size_t i = 0; i < pixels.size(); ++i) offsets[i] = plan_.pixels.offset(pixels[i], tap);
    std::fill(offsets + pixels.size(), offsets + kPixels, -1);
  }

  /// The sums of a block of columns: those of its row blocks are adjacent.
  float* sums_of(int64_t range, int64_t block) const {
    return sums_ + range * plan_.sums_values() + block * plan_.row_blocks * 4 * kAmxTileValues;
  }

  /// Stores the filters of a block of output channels, for a block of columns of all rows of taps:
  /// the sums of all ranges.
  void store_filters(int64_t row_block, int64_t block) const {
    const DirectProblem& p = plan_.problem;
    for (int64_t b = block; b < plan_.column_blocks(); b += plan_.tap_blocks) {
      const float* const sums = sums_of(0, b) + row_block * 4 * kAmxTileValues;
      int64_t places[2][kAmxSide];  // in a filter, of each column; -1: none
      for (int64_t i = 0; i < kBlock; ++i)
        places[i / kAmxSide][i % kAmxSide] = place_of(b, i / kAmxSide, i % kAmxSide);
      for (int64_t tile = 0; tile < 4; ++tile) {
        uint16_t values[kAmxTileValues];
        sum_amx_ranges(sums + tile * kAmxTileValues, plan_.ranges, plan_.sums_values(), values);
        for (int64_t row = 0; row < kAmxSide; ++row) {
          const int64_t out = row_block * kBlock + amx_channel(tile / 2, row);
          if (out >= p.out_channels) continue;
          uint16_t* const to = filter_ + out * p.in_channels * p.taps();
          for (int64_t column = 0; column < kAmxSide; ++column) {
            const int64_t place = places[tile % 2][column];
            if (place >= 0) to[place] = values[row * kAmxSide + column];
          }
        }
      }
    }
  }

  /// Returns the place in a filter, [channel][tap], of a column of a tile of a block; -1 if the
  /// column is unused.
  int64_t place_of(int64_t block, int64_t tile, int64_t column) const {
    const DirectProblem& p = plan_.problem;
    const int64_t i = block % plan_.tap_blocks * kBlock + amx_channel(tile, column);
    if (i >= plan_.row_columns()) return -1;
    const int64_t tap = block / plan_.tap_blocks * plan_.taps_per_row + i / p.in_channels;
    return i % p.in_channels * p.taps() + plan_.pixels.taps()[static_cast<size_t>(tap)].tap;
  }

  const AmxFilterPlan& plan_;
  const uint16_t* source_;
  const uint16_t* gradient_;
  uint16_t* filter_;
  float* sums_;
  uint16_t* padded_;
  uint16_t* rows_;
};

/// Returns the problem whose source images are the padded ones of `p`.
DirectProblem on_padded_images(DirectProblem p) {
  for (DirectAxis* axis : {&p.y, &p.x}) {
    axis->source = axis->padded;
    axis->low = 0;
  }
  return p;
}

}  // namespace

AmxFilterPlan::AmxFilterPlan(DirectProblem p)
    : problem(std::move(p)),
      merges_taps(problem.in_channels < kAmxSide),
      pixels(amx_phases(merges_taps ? on_padded_images(problem) : problem)[0]),
      row_blocks(divide_up(problem.out_channels, kBlock)),
      taps_per_row(merges_taps ? static_cast<int64_t>(pixels.tap_rows()[0].count) : 1),
      tap_blocks(divide_up(row_columns(), kBlock)),
      strips(divide_up(pixels.pixels(), kStripPixels)) {
  const int64_t bytes = sums_values() * int64_t{sizeof(float)};
  const int64_t most_ranges = std::min(strips / kMinRangeStrips, kMaxSumsBytes / bytes);
  ranges = std::clamp<int64_t>(most_ranges, 1, kTasks);
  const int64_t groups = std::max(divide_up(bytes, kMaxGroupBytes), divide_up(kTasks, ranges));
  group_blocks = divide_up(column_blocks(), groups);
}

int64_t AmxFilterPlan::groups() const { return divide_up(column_blocks(), group_blocks); }

int64_t AmxFilterPlan::rows_values() const { return row_blocks * kStripPixels * kBlock; }

int64_t AmxFilterPlan::sums_values() const {
  return column_blocks() * row_blocks * kBlock * kBlock;
}

int64_t AmxFilterPlan::padded_values() const {
  if (!merges_taps) return 0;
  const int64_t values = problem.images * problem.y.padded * problem.x.padded * problem.in_channels;
  return align_up(values * int64_t{sizeof(uint16_t)}) / int64_t{sizeof(uint16_t)};
}

int64_t AmxFilterPlan::workspace() const {
  const int64_t strips_in_memory = packs_strips_of_range() ? ranges : strips;
  return ranges * sums_values() * int64_t{sizeof(float)} +
         align_up((padded_values() + strips_in_memory * rows_values()) * int64_t{sizeof(uint16_t)});
}

// Measured on two cores with AMX (Intel, 3.7 TFLOP/s a core): products reach 0.42 of the peak, and
// packing a value of a column takes as long as 400 FLOPs of the peak, storing a filter 5,000.
double AmxFilterPlan::predicted_seconds(double flops_per_second, double bytes_per_second) const {
  const auto count = static_cast<double>(strips * kStripPixels);
  const double flops = 2 / 0.42 * count * static_cast<double>(sums_values()) +
                       400.0 * count * static_cast<double>(column_blocks() * kBlock) +
                       5000.0 * static_cast<double>(sums_values());
  const int64_t values =
      problem.images * problem.y.source * problem.x.source * problem.in_channels +
      problem.result_pixels() * problem.out_channels;
  return 3 * kLibraryCallSeconds + flops / flops_per_second +
         static_cast<double>(values * int64_t{sizeof(uint16_t)}) / bytes_per_second;
}

LibraryRoutine AmxFilterPlan::routine(std::shared_ptr<const AmxFilterPlan> plan) {
  return plan_routine<AmxFilterCall>(std::move(plan));
}

}  // namespace fluid
