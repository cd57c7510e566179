#include "executor/cpu_libraries/amx_pixels.h"

#include <algorithm>

#include "executor/cpu_libraries/amx_product.h"
#include "executor/cpu_libraries/divide_up.h"
#include "executor/cpu_libraries/plan_routine.h"
#include "executor/host/parallel.h"
#include "executor/host/tile_registers.h"
#include "passes/memory_plan.h"

namespace fluid {
namespace {

// Maximum terms of a strip. Its filters for kMaxGroupTiles column tiles, and the sums of a block,
// fit in an L2 cache of 1 MiB.
constexpr int64_t kMaxStripTerms = 288;
constexpr int64_t kMaxGroupTiles = 32;
constexpr int64_t kMaxSumsValues = 64 << 10;  // of a worker
constexpr int64_t kMaxBlockPixels = 256;
constexpr int64_t kPairPixels = 2 * kAmxSide;  // pixels whose values are copied together
constexpr int64_t kPackedPairs = 256;          // pairs of terms whose filters a task packs

std::vector<AmxStrip> strips_of(const AmxPhase& phase, int64_t channels) {
  const auto terms = static_cast<int64_t>(phase.taps().size()) * channels;
  const int64_t steps = divide_up(terms, kAmxTerms), count = divide_up(terms, kMaxStripTerms);
  std::vector<AmxStrip> strips;
  for (int64_t s = 0; s < count; ++s) {
    const int64_t first = steps * s / count, end = steps * (s + 1) / count;
    AmxStrip strip{first, end - first, {}};
    for (const AmxTapRow& row : phase.tap_rows()) {
      const auto taps = static_cast<int64_t>(row.count);
      const int64_t row_begin = static_cast<int64_t>(row.first) * channels;
      const int64_t begin = std::max(first * kAmxTerms - row_begin, int64_t{0});
      const int64_t row_end = std::min(end * kAmxTerms - row_begin, taps * channels);
      if (begin < row_end)
        strip.runs.push_back({phase.taps()[row.first], taps, begin, row_end - begin});
    }
    strips.push_back(std::move(strip));
  }
  return strips;
}

/// Bytes between the copied rows of adjacent pixels. They lie in different sets of the L1 cache.
constexpr int64_t row_bytes(int64_t steps) {
  return (steps + (steps % 2 == 0 ? 1 : 2)) * kTileRowBytes;
}
constexpr int64_t kMaxRowBytes = row_bytes(kMaxStripTerms / kAmxTerms + 1);

/// A kernel with bound memory addresses.
class AmxPixelsCall {
 public:
  AmxPixelsCall(const AmxPixelsPlan& plan, void* const* buffers, void* workspace) : plan_(plan) {
    const bool bias = plan_.problem.bias;
    source_ = static_cast<const uint16_t*>(buffers[0]);
    filter_ = static_cast<const uint16_t*>(buffers[1]);
    bias_ = bias ? static_cast<const uint16_t*>(buffers[2]) : nullptr;
    result_ = static_cast<uint16_t*>(buffers[bias ? 3 : 2]);
    filters_ = static_cast<uint16_t*>(workspace);
    sums_ = reinterpret_cast<float*>(static_cast<std::byte*>(workspace) +
                                     align_up(plan_.filter_values * int64_t{sizeof(uint16_t)}));
  }

  void run() {
    for (const AmxPixelsPlan::Phase& phase : plan_.phases) {
      const int64_t parts = divide_up(phase.steps * kAmxTerms / 2, kPackedPairs);
      parallel_for(plan_.column_tiles * parts, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i)
          pack_filters(phase, i / parts, i % parts * kPackedPairs);
      });
    }
    for (const AmxPixelsPlan::Phase& phase : plan_.phases) {
      const int64_t blocks = plan_.blocks(phase), tasks = blocks * plan_.groups();
      run_amx_tasks(tasks, plan_.workers, [&](int64_t task, int64_t worker) {
        compute_block(phase, task % blocks, task / blocks, worker);
      });
    }
  }

 private:
  /// Stores the filters of kPackedPairs pairs of terms from `first` on, for a column tile.
  void pack_filters(const AmxPixelsPlan::Phase& phase, int64_t tile, int64_t first) {
    const DirectProblem& p = plan_.problem;
    const int64_t next_source = (p.is_input_gradient() ? p.in_channels : 1) * p.taps();
    const int64_t next_result = (p.is_input_gradient() ? 1 : p.in_channels) * p.taps();
    const std::vector<AmxTap>& taps = phase.results.taps();
    const int64_t column = tile * kAmxSide;
    const auto filter_of = [&](int64_t term) -> const uint16_t* {
      const auto tap = static_cast<size_t>(term / p.source_channels());
      if (tap >= taps.size()) return nullptr;
      return filter_ + column * next_result + term % p.source_channels() * next_source +
             taps[tap].tap;
    };
    const int64_t pairs = phase.steps * kAmxTerms / 2;
    uint16_t* const to = filters_ + phase.filters + tile * pairs * 2 * kAmxSide;
    for (int64_t pair = first; pair < std::min(first + kPackedPairs, pairs); ++pair) {
      pack_amx_terms(filter_of(2 * pair), filter_of(2 * pair + 1), next_result,
                     std::min(p.result_channels() - column, kAmxSide), to + pair * 2 * kAmxSide);
    }
  }

  void compute_block(const AmxPixelsPlan::Phase& phase, int64_t block, int64_t group,
                     int64_t worker) const {
    const int64_t begin = block * plan_.block_pixels;
    const int64_t n = std::min(phase.results.pixels() - begin, plan_.block_pixels);
    const int64_t first_tile = group * plan_.group_tiles;
    const int64_t tiles = std::min(plan_.column_tiles - first_tile, plan_.group_tiles);
    AmxPixel pixels[kMaxBlockPixels];
    phase.results.store_pixels(begin, n, pixels);
    float* const sums = sums_ + worker * plan_.sums_values();
    const int64_t sums_row = tiles * kAmxTileValues;
    alignas(64) uint16_t rows[kPairPixels * kMaxRowBytes / int64_t{sizeof(uint16_t)}];
    for (const AmxStrip& strip : phase.strips) {
      const int64_t stride = row_bytes(strip.steps);
      for (int64_t pixel = 0; pixel < n; pixel += kPairPixels) {
        const int64_t count = std::min(n - pixel, kPairPixels);
        copy_amx_rows({.source = source_,
                       .height = phase.results.height(),
                       .width = phase.results.width(),
                       .channels = plan_.problem.source_channels(),
                       .runs = strip.runs,
                       .terms = strip.steps * kAmxTerms,
                       .rows = rows,
                       .stride = stride / int64_t{sizeof(uint16_t)}},
                      {pixels + pixel, static_cast<size_t>(count)});
        for (int64_t tile = 0; tile < tiles; tile += 2) {
          add_amx_product(
              {.row_tiles = divide_up(count, kAmxSide),
               .column_tiles = std::min<int64_t>(tiles - tile, 2),
               .steps = strip.steps,
               .left = rows,
               .left_row_bytes = stride,
               .left_tile = kAmxSide * stride / int64_t{sizeof(uint16_t)},
               .left_step = kAmxTerms,
               .right = filters_ + phase.filters +
                        ((first_tile + tile) * phase.steps + strip.first_step) * kAmxFactorValues,
               .right_tile = phase.steps * kAmxFactorValues,
               .sums = sums + pixel / kAmxSide * sums_row + tile * kAmxTileValues,
               .sums_row = sums_row,
               .sums_column = kAmxTileValues,
               .accumulates = strip.first_step > 0});
        }
      }
    }
    const int64_t channel = first_tile * kAmxSide;
    const int64_t columns = std::min(plan_.problem.result_channels() - channel, tiles * kAmxSide);
    int64_t results[kMaxBlockPixels];
    for (int64_t i = 0; i < n; ++i) results[i] = pixels[i].result;
    store_amx_results({.sums = phase.strips.empty() ? nullptr : sums,
                       .sums_row = sums_row,
                       .columns = columns,
                       .interleaves_tiles = false,
                       .bias = bias_ != nullptr ? bias_ + channel : nullptr,
                       .relu = plan_.problem.relu,
                       .results = result_ + channel,
                       .stride = plan_.problem.result_channels(),
                       .rows = {results, static_cast<size_t>(n)}});
  }

  const AmxPixelsPlan& plan_;
  const uint16_t* source_;
  const uint16_t* filter_;
  const uint16_t* bias_;
  uint16_t* result_;
  uint16_t* filters_;
  float* sums_;
};

}  // namespace

AmxPixelsPlan::AmxPixelsPlan(DirectProblem p)
    : problem(std::move(p)),
      column_tiles(divide_up(problem.result_channels(), kAmxSide)),
      group_tiles(std::min(column_tiles, kMaxGroupTiles)) {
  int64_t most_pixels = 0;
  for (AmxPhase& results : amx_phases(problem)) {
    const auto taps = static_cast<int64_t>(results.taps().size());
    const int64_t steps = divide_up(taps * problem.source_channels(), kAmxTerms);
    most_pixels = std::max(most_pixels, results.pixels());
    std::vector<AmxStrip> strips = strips_of(results, problem.source_channels());
    phases.push_back({std::move(results), steps, filter_values, std::move(strips)});
    filter_values += column_tiles * steps * kAmxFactorValues;
  }
  block_pixels = std::clamp(kMaxSumsValues / (group_tiles * kAmxSide) / kPairPixels * kPairPixels,
                            kPairPixels, kMaxBlockPixels);
  const auto tasks = [&] { return divide_up(most_pixels, block_pixels) * groups(); };
  const int64_t enough = kAmxTasksPerWorker * thread_count(0);
  while (tasks() < enough && block_pixels > kPairPixels)
    block_pixels = divide_up(block_pixels / kPairPixels, 2) * kPairPixels;
  while (tasks() < enough && group_tiles > 2) group_tiles = divide_up(group_tiles, 4) * 2;
  workers = std::min<int64_t>(tasks(), thread_count(0));
}

int64_t AmxPixelsPlan::groups() const { return divide_up(column_tiles, group_tiles); }

int64_t AmxPixelsPlan::blocks(const Phase& phase) const {
  return divide_up(phase.results.pixels(), block_pixels);
}

int64_t AmxPixelsPlan::sums_values() const {
  return block_pixels / kAmxSide * group_tiles * kAmxTileValues;
}

int64_t AmxPixelsPlan::workspace() const {
  return align_up(filter_values * int64_t{sizeof(uint16_t)}) +
         workers * sums_values() * int64_t{sizeof(float)};
}

// Measured on two cores with AMX (Intel, 3.7 TFLOP/s a core): products reach 0.42 of the peak.
// Copying a run takes as long as 12,000 FLOPs of the peak and 40 a byte, packing a filter 3,000.
double AmxPixelsPlan::predicted_seconds(double flops_per_second, double bytes_per_second) const {
  double flops = 3000.0 * static_cast<double>(filter_values);
  for (const Phase& phase : phases) {
    const auto pixels = static_cast<double>(phase.results.pixels());
    const double terms = pixels * static_cast<double>(phase.steps * kAmxTerms);
    flops += 2 / 0.42 * terms * static_cast<double>(column_tiles * kAmxSide) +
             40.0 * sizeof(uint16_t) * terms * static_cast<double>(groups());
    for (const AmxStrip& strip : phase.strips)
      flops += 12e3 * pixels * static_cast<double>(strip.runs.size());
  }
  const int64_t values =
      problem.images * problem.y.source * problem.x.source * problem.source_channels() +
      problem.result_pixels() * problem.result_channels();
  return 2 * kLibraryCallSeconds + flops / flops_per_second +
         static_cast<double>(values * int64_t{sizeof(uint16_t)}) / bytes_per_second;
}

LibraryRoutine AmxPixelsPlan::routine(std::shared_ptr<const AmxPixelsPlan> plan) {
  return plan_routine<AmxPixelsCall>(std::move(plan));
}

}  // namespace fluid
