#include "executor/cpu_libraries/direct.h"

#include <algorithm>
#include <cstring>

#include "executor/cpu_libraries/avx512_support.h"
#include "executor/cpu_libraries/direct_images.h"
#include "executor/cpu_libraries/direct_product.h"
#include "executor/cpu_libraries/divide_up.h"
#include "executor/cpu_libraries/plan_routine.h"
#include "executor/host/parallel.h"
#include "passes/memory_plan.h"

namespace fluid {
namespace {

struct DirectKernelEntry {
  std::string_view kernel;
  ConvDirection direction;
};

constexpr DirectKernelEntry kDirectKernels[] = {
    {"direct.conv2d", ConvDirection::forward},
    {"direct.conv2d_grad_input", ConvDirection::input_gradient},
    {"direct.conv2d_grad_filter", ConvDirection::filter_gradient}};

constexpr int64_t kBlockPixels = 96;  // result pixels of a block
// Maximum bytes of the filters that a block uses before the next ones. They stay in the L2 cache.
constexpr int64_t kStripBytes = 128 << 10;
constexpr int64_t kMaxStripTaps = 32;
constexpr int64_t kStripPixels = 96;  // pixels that a filter gradient adds up at a time
constexpr int64_t kGroupRows = 66;    // rows of a filter gradient that one thread computes together
// Maximum bytes of a filter gradient that each thread accumulates on its own, for ranges of pixels.
constexpr int64_t kMaxRangeFilterBytes = 512 << 10;
// The number of ranges does not depend on the number of threads, so that threads do not change
// bits.
constexpr int64_t kMaxRanges = 16;
constexpr int64_t kMinRangePixels = 4 * kStripPixels;

/// Whether each result reads a single element at its own place. Generated matrix products are as
/// fast, and need no packed filters.
bool is_product(const WindowAxis& window) {
  return window.kernel == 1 && window.stride == 1 && window.before == 0 && window.after == 0;
}

std::optional<DirectProblem> problem_of(const DirectKernelEntry& entry, const ir::Op& op,
                                        const EpilogueOps& epilogue, int64_t batch) {
  const auto task = convolution_task(entry.direction, op, epilogue, batch);
  if (!task || task->dtype != DType::f32 || task->groups != 1 || !cpu_supports_avx512())
    return std::nullopt;
  if (is_product(task->window.y) && is_product(task->window.x)) return std::nullopt;
  return direct_problem(*task);
}

/// The shapes of a kernel, and the memory that it needs.
struct DirectPlan {
  DirectProblem problem;
  DirectImages images{problem};
  int64_t panels;             ///< of the result channels
  int64_t ranges = 1;         ///< of a filter gradient; 1: threads divide its rows
  std::vector<int64_t> rows;  ///< distance in values of each row of a filter gradient from the base

  explicit DirectPlan(DirectProblem p)
      : problem(std::move(p)), panels(divide_up(problem.result_channels(), kDirectPanel)) {
    if (!problem.is_filter_gradient()) return;
    for (const int64_t offset : images.phases()[0].offsets) {
      for (int64_t c = 0; c < problem.source_channels(); ++c) rows.push_back(offset + c);
    }
    if (filter_bytes() > kMaxRangeFilterBytes) return;
    ranges = std::clamp<int64_t>(problem.result_pixels() / kMinRangePixels, 1, kMaxRanges);
  }
  DirectPlan(const DirectPlan&) = delete;  // `images` refers to `problem`
  DirectPlan& operator=(const DirectPlan&) = delete;

  /// Rows of a panel of the filters.
  int64_t filter_rows() const { return problem.taps() * problem.source_channels(); }
  int64_t panel_values() const { return filter_rows() * kDirectPanel; }
  int64_t filter_bytes() const {
    return align_up(panels * panel_values() * int64_t{sizeof(float)});
  }
  int64_t workspace() const { return images.padded_bytes() + ranges * filter_bytes(); }

  /// Predicts the time of a call. Measured on two cores with AVX-512 (Zen 4): products reach 0.75
  /// to 0.8 of the peak FLOP/s with many source channels, 0.6 to 0.75 with 3 and 0.35 with one.
  double predicted_seconds(double flops_per_second, double bytes_per_second) const {
    constexpr int64_t kLanes = 16;
    double terms = 0;  // of all pixels, for one source and one result channel
    for (const DirectPhases& phases : images.phases())
      terms += static_cast<double>(phases.pixels) * static_cast<double>(phases.taps.size());
    const auto channels = static_cast<double>(problem.source_channels());
    const double efficiency = 0.75 * channels / (channels + 1);
    const int64_t columns = divide_up(problem.result_channels(), kLanes) * kLanes;
    const double flops = 2 * terms * channels * static_cast<double>(columns);
    const double bytes = 2.0 * static_cast<double>(images.padded_bytes() + ranges * filter_bytes());
    return 4 * kLibraryCallSeconds + flops / (efficiency * flops_per_second) +
           bytes / bytes_per_second;
  }
};

/// The rows of a strip of pixels. If there are many channels, the rows of a pixel are copied to
/// adjacent addresses: the pixels of large images lie in the same sets of the L1 cache.
class PackedRows {
 public:
  PackedRows(std::span<const float* const> sources, std::span<const int64_t> rows, int64_t channels)
      : sources_(sources), rows_(rows) {
    constexpr int64_t kMinChannels = 16;
    if (channels < kMinChannels) return;
    for (size_t r = 0; r < rows.size(); ++r) packed_rows_[r] = static_cast<int64_t>(r);
    for (size_t begin = 0; begin < rows.size();) {
      size_t end = begin + 1;
      while (end < rows.size() && rows[end] == rows[end - 1] + 1) ++end;
      for (size_t i = 0; i < sources.size(); ++i) {
        std::memcpy(&values_[i * kGroupRows + begin], sources[i] + rows[begin],
                    (end - begin) * sizeof(float));
      }
      begin = end;
    }
    for (size_t i = 0; i < sources.size(); ++i) packed_sources_[i] = &values_[i * kGroupRows];
    sources_ = {packed_sources_, sources.size()};
    rows_ = {packed_rows_, rows.size()};
  }
  PackedRows(const PackedRows&) = delete;
  PackedRows& operator=(const PackedRows&) = delete;

  std::span<const float* const> sources() const { return sources_; }
  std::span<const int64_t> rows() const { return rows_; }

 private:
  std::span<const float* const> sources_;
  std::span<const int64_t> rows_;
  const float* packed_sources_[kStripPixels];
  int64_t packed_rows_[kGroupRows];
  float values_[kStripPixels * kGroupRows];
};

/// A direct kernel with bound memory addresses.
class DirectCall {
 public:
  DirectCall(const DirectPlan& plan, void* const* buffers, void* workspace) : plan_(plan) {
    const DirectProblem& p = plan_.problem;
    const size_t last = p.bias ? 3 : 2;
    source_ = static_cast<const float*>(buffers[0]);
    result_ = static_cast<float*>(buffers[plan_.problem.is_filter_gradient() ? 1 : last]);
    filter_ = static_cast<float*>(buffers[plan_.problem.is_filter_gradient() ? last : 1]);
    bias_ = p.bias ? static_cast<const float*>(buffers[2]) : nullptr;
    auto* next = static_cast<std::byte*>(workspace);
    padded_ = reinterpret_cast<float*>(next);
    panels_ = reinterpret_cast<float*>(next + plan_.images.padded_bytes());
  }

  void run() {
    parallel_over(plan_.images.padded_rows(), &DirectCall::pad_rows);
    if (plan_.problem.is_filter_gradient()) return run_filter_gradient();
    parallel_over(plan_.panels * plan_.problem.source_channels(), &DirectCall::pack_filters);
    for (const DirectPhases& phases : plan_.images.phases()) {
      const int64_t blocks = divide_up(phases.pixels, kBlockPixels);
      parallel_for(plan_.panels * blocks, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) compute_block(phases, i % blocks, i / blocks);
      });
    }
  }

 private:
  using Task = void (DirectCall::*)(int64_t begin, int64_t end);

  void parallel_over(int64_t n, Task task) {
    parallel_for(n, [&](int64_t begin, int64_t end) { (this->*task)(begin, end); });
  }

  void pad_rows(int64_t begin, int64_t end) { plan_.images.pad_rows(source_, padded_, begin, end); }

  /// Copies the filters of source channels [begin, end) of all panels, counted together.
  void pack_filters(int64_t begin, int64_t end) {
    const DirectProblem& p = plan_.problem;
    const int64_t channels = p.source_channels(), taps = p.taps();
    const int64_t next_source = (p.is_input_gradient() ? p.in_channels : 1) * taps;
    const int64_t next_result = (p.is_input_gradient() ? 1 : p.in_channels) * taps;
    for (int64_t i = begin; i < end; ++i) {
      const int64_t panel = i / channels, channel = i % channels;
      for (int64_t column = 0; column < kDirectPanel; ++column) {
        const int64_t result = panel * kDirectPanel + column;
        const bool exists = result < p.result_channels();
        const float* const from = filter_ + channel * next_source + result * next_result;
        float* const to = panels_ + panel * plan_.panel_values() + channel * kDirectPanel + column;
        for (int64_t tap = 0; tap < taps; ++tap)
          to[tap * channels * kDirectPanel] = exists ? from[tap] : 0;
      }
    }
  }

  const float* base() const { return plan_.images.padded_rows() > 0 ? padded_ : source_; }

  int64_t columns_of(int64_t panel) const {
    return std::min(plan_.problem.result_channels() - panel * kDirectPanel, kDirectPanel);
  }

  void compute_block(const DirectPhases& phases, int64_t block, int64_t panel) const {
    const int64_t channels = plan_.problem.source_channels();
    const int64_t begin = block * kBlockPixels;
    const int64_t n = std::min(phases.pixels - begin, kBlockPixels);
    const float* sources[kBlockPixels];
    float* results[kBlockPixels];
    plan_.images.addresses(phases, begin, n, base(), sources, result_, panel * kDirectPanel,
                           results);
    const int64_t tap_values = channels * kDirectPanel;
    const int64_t most =
        std::clamp<int64_t>(kStripBytes / (tap_values * int64_t{sizeof(float)}), 1, kMaxStripTaps);
    const auto taps = static_cast<int64_t>(phases.taps.size());
    DirectPixels pixels{.sources = {sources, static_cast<size_t>(n)},
                        .results = {results, static_cast<size_t>(n)},
                        .source_channels = channels,
                        .columns = columns_of(panel)};
    int64_t tap = 0;
    do {
      // The filters of consecutive taps are adjacent.
      int64_t end = tap;
      while (end < taps && end - tap < most &&
             phases.taps[static_cast<size_t>(end)] ==
                 phases.taps[static_cast<size_t>(tap)] + end - tap)
        ++end;
      pixels.taps = std::span(phases.offsets)
                        .subspan(static_cast<size_t>(tap), static_cast<size_t>(end - tap));
      if (taps > 0) {
        pixels.filters = panels_ + panel * plan_.panel_values() +
                         phases.taps[static_cast<size_t>(tap)] * tap_values;
      }
      pixels.accumulates = tap > 0;
      if (end == taps) {
        pixels.bias = bias_ != nullptr ? bias_ + panel * kDirectPanel : nullptr;
        pixels.relu = plan_.problem.relu;
      }
      compute_direct_pixels(pixels);
      tap = end;
    } while (tap < taps);
  }

  void run_filter_gradient() {
    const DirectPhases& phases = plan_.images.phases()[0];
    const int64_t groups = plan_.panels * divide_up(plan_.filter_rows(), kGroupRows);
    if (plan_.ranges == 1) {
      parallel_for(groups, [&](int64_t begin, int64_t end) {
        for (int64_t g = begin; g < end; ++g)
          accumulate_groups(phases, 0, phases.pixels, g, g + 1, panels_);
      });
    } else {
      parallel_for(plan_.ranges, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          accumulate_groups(phases, phases.pixels * i / plan_.ranges,
                            phases.pixels * (i + 1) / plan_.ranges, 0, groups, range_panels(i));
        }
      });
      parallel_over(plan_.panels * plan_.filter_rows(), &DirectCall::add_ranges);
    }
    parallel_over(plan_.problem.out_channels, &DirectCall::unpack_filters);
  }

  float* range_panels(int64_t range) const {
    return panels_ + range * plan_.filter_bytes() / int64_t{sizeof(float)};
  }

  /// Accumulates the filter gradient of pixels [begin, end), for groups [first, last) of rows of
  /// all panels. `to`: [panel][row][kDirectPanel].
  void accumulate_groups(const DirectPhases& phases, int64_t begin, int64_t end, int64_t first,
                         int64_t last, float* to) const {
    const int64_t channels = plan_.problem.result_channels();
    const int64_t groups = divide_up(plan_.filter_rows(), kGroupRows);
    for (int64_t pixel = begin; pixel < end; pixel += kStripPixels) {
      const float* sources[kStripPixels];
      const auto n = static_cast<size_t>(std::min(end - pixel, kStripPixels));
      plan_.images.addresses(phases, pixel, static_cast<int64_t>(n), base(), sources, nullptr, 0,
                             nullptr);
      for (int64_t g = first; g < last; ++g) {
        const int64_t panel = g / groups, row = g % groups * kGroupRows;
        const auto count = static_cast<size_t>(std::min(plan_.filter_rows() - row, kGroupRows));
        const PackedRows packed({sources, n},
                                std::span(plan_.rows).subspan(static_cast<size_t>(row), count),
                                plan_.problem.source_channels());
        accumulate_direct_filter({.sources = packed.sources(),
                                  .gradients = result_ + pixel * channels + panel * kDirectPanel,
                                  .gradient_stride = channels,
                                  .rows = packed.rows(),
                                  .result = to + panel * plan_.panel_values() + row * kDirectPanel,
                                  .columns = columns_of(panel),
                                  .accumulates = pixel > begin});
      }
    }
  }

  /// Adds rows [begin, end) of the filter gradients of all ranges to those of range 0, in order.
  void add_ranges(int64_t begin, int64_t end) {
    for (int64_t range = 1; range < plan_.ranges; ++range) {
      const float* const values = range_panels(range);
      for (int64_t i = begin * kDirectPanel; i < end * kDirectPanel; ++i) panels_[i] += values[i];
    }
  }

  /// Stores the filter gradients of output channels [begin, end).
  void unpack_filters(int64_t begin, int64_t end) {
    const DirectProblem& p = plan_.problem;
    for (int64_t out = begin; out < end; ++out) {
      const float* const from =
          panels_ + out / kDirectPanel * plan_.panel_values() + out % kDirectPanel;
      float* to = filter_ + out * p.in_channels * p.taps();
      for (int64_t c = 0; c < p.in_channels; ++c) {
        for (int64_t tap = 0; tap < p.taps(); ++tap)
          *to++ = from[(tap * p.in_channels + c) * kDirectPanel];
      }
    }
  }

  const DirectPlan& plan_;
  const float* source_ = nullptr;
  float* result_ = nullptr;  ///< of the gradient of a filter: dy
  float* filter_ = nullptr;
  const float* bias_ = nullptr;
  float* padded_ = nullptr;
  float* panels_ = nullptr;  ///< filters or their gradients: [range][panel][tap][channel][column]
};

}  // namespace

std::vector<KernelCandidate> direct_candidates(const ir::Op& op, const EpilogueOps& epilogue,
                                               double flops_per_second, double bytes_per_second) {
  std::vector<KernelCandidate> candidates;
  for (const DirectKernelEntry* entry : cpu_kernels_for(kDirectKernels, op)) {
    auto problem = problem_of(*entry, op, epilogue, 1);
    if (!problem) continue;
    const DirectPlan plan(*std::move(problem));
    KernelCandidate candidate = {
        .kernel = std::string(entry->kernel),
        .seconds = plan.predicted_seconds(flops_per_second, bytes_per_second),
        .workspace = plan.workspace()};
    for (const Value& v : op.operands) candidate.operands.push_back(v.type().layout);
    candidate.results = {op.results[0].type.layout};
    candidates.push_back(std::move(candidate));
  }
  return candidates;
}

std::optional<LibraryRoutine> direct_kernel(std::string_view kernel, const ir::Op& op,
                                            const EpilogueOps& epilogue, int64_t batch) {
  const DirectKernelEntry* entry = find_kernel(kDirectKernels, kernel);
  if (entry == nullptr) return std::nullopt;
  auto problem = problem_of(*entry, op, epilogue, batch);
  if (!problem) {
    throw DeviceError("there is no kernel '" + std::string(kernel) + "' for " + op.name);
  }
  return plan_routine<DirectCall>(std::make_shared<const DirectPlan>(*std::move(problem)));
}

}  // namespace fluid
