#include "executor/cpu_libraries/winograd.h"

#include <algorithm>

#include "executor/cpu_libraries/winograd_plan.h"
#include "executor/host/parallel.h"

namespace fluid {
namespace {

constexpr WinogradKernelEntry kWinogradKernels[] = {
    {"winograd.conv2d", ConvDirection::forward, false},
    {"winograd.conv2d_across", ConvDirection::forward},
    {"winograd.conv2d_grad_input", ConvDirection::input_gradient},
    {"winograd.conv2d_grad_filter", ConvDirection::filter_gradient}};

/// A Winograd kernel with bound memory addresses.
class WinogradCall {
 public:
  WinogradCall(const WinogradPlan& plan, void* const* buffers, void* workspace) : plan_(plan) {
    const WinogradProblem& problem = plan_.problem;
    const size_t last = problem.bias ? 3 : 2;
    const auto image = [&](size_t i, int64_t channels) {
      return WinogradImages{static_cast<std::byte*>(buffers[i]),
                            channels * size_of(problem.variant.dtype)};
    };
    from_ = image(0, problem.filter.source_channels());
    to_ = image(plan_.computes_filter_gradient() ? 1 : last, problem.filter.result_channels());
    filter_ = buffers[plan_.computes_filter_gradient() ? last : 1];
    bias_ = problem.bias ? buffers[2] : nullptr;
    auto* next = static_cast<std::byte*>(workspace);
    const auto take = [&](int64_t bytes) { return std::exchange(next, next + bytes); };
    zeros_ = take(plan_.zeros_bytes());
    const auto planes = [&](const WinogradPlanesShape& shape) {
      return shape.at(take(shape.bytes()));
    };
    for (int64_t i = 0; i < plan_.workers; ++i) {
      chunks_.push_back({.from = planes(plan_.from), .to = planes(plan_.to)});
    }
    for (int64_t i = 0; i < plan_.filter_copies(); ++i) filters_.push_back(planes(plan_.filters));
  }

  void run() {
    std::fill_n(zeros_, plan_.zeros_bytes(), std::byte{});
    const int64_t source_vectors = plan_.filters.rows / kWinogradLanes;
    if (!plan_.computes_filter_gradient())
      parallel_over(source_vectors, &WinogradCall::transform_filters);
    plan_.is_cooperative() ? run_range(0, 0)
                           : parallel_over(plan_.workers, &WinogradCall::run_workers);
    if (!plan_.computes_filter_gradient()) return;
    if (plan_.filter_copies() > 1)
      parallel_over(plan_.filters.planes, &WinogradCall::add_filter_copies);
    parallel_over(source_vectors, &WinogradCall::transform_filter_gradient);
  }

 private:
  /// A chunk: its tiles, and the planes of its transformed tiles.
  struct Chunk {
    WinogradPlanes from, to;
    int64_t range = 0;  ///< index of the range of tiles that the chunk belongs to
    int64_t first = 0, tiles = 0;
    bool is_first_of_range = true;
  };
  using Task = void (WinogradCall::*)(int64_t begin, int64_t end);
  using ChunkTask = void (WinogradCall::*)(const Chunk& chunk, int64_t begin, int64_t end) const;

  void parallel_over(int64_t n, Task task) {
    parallel_for(n, [&](int64_t begin, int64_t end) { (this->*task)(begin, end); });
  }

  void run_workers(int64_t begin, int64_t end) {
    for (int64_t worker = begin; worker < end; ++worker) {
      const int64_t ranges = plan_.chunks.ranges, workers = plan_.workers;
      for (int64_t i = ranges * worker / workers; i < ranges * (worker + 1) / workers; ++i)
        run_range(worker, i);
    }
  }

  void run_range(int64_t worker, int64_t range) {
    const WinogradChunks& chunks = plan_.chunks;
    Chunk& chunk = chunks_[static_cast<size_t>(worker)];
    const int64_t begin = chunks.range_begin(range), end = chunks.range_begin(range + 1);
    chunk.range = range;
    for (chunk.first = begin; chunk.first < end; chunk.first += chunk.tiles) {
      chunk.tiles = std::min(chunks.size, end - chunk.first);
      chunk.is_first_of_range = chunk.first == begin;
      run_chunk(chunk);
    }
  }

  void run_chunk(const Chunk& chunk) {
    const auto run = [&](int64_t n, ChunkTask task) {
      if (!plan_.is_cooperative()) return (this->*task)(chunk, 0, n);
      parallel_for(n, [&](int64_t begin, int64_t end) { (this->*task)(chunk, begin, end); });
    };
    const bool gradient = plan_.computes_filter_gradient();
    run(chunk.tiles, &WinogradCall::transform_inputs);
    if (gradient) run(chunk.tiles, &WinogradCall::transform_output_gradients);
    run(product_of(chunk).blocks(), &WinogradCall::multiply);
    if (!gradient) run(chunk.tiles, &WinogradCall::transform_outputs);
  }

  // The functions below process tiles [begin, end) of a chunk.

  void transform_inputs(const Chunk& chunk, int64_t begin, int64_t end) const {
    if (begin == end) return;
    WinogradInputPixels pixels = input_pixels(chunk, begin);
    for (int64_t t = begin; t < end; ++t) {
      const WinogradInputPixels next = t + 1 < end ? input_pixels(chunk, t + 1) : pixels;
      transform_winograd_input(plan_.problem.variant, pixels, next, plan_.from.columns,
                               chunk.from.from_row(t));
      pixels = next;
    }
  }

  void transform_output_gradients(const Chunk& chunk, int64_t begin, int64_t end) const {
    if (begin == end) return;
    WinogradOutputPixels pixels = output_pixels(chunk, begin, zeros_);
    for (int64_t t = begin; t < end; ++t) {
      const WinogradOutputPixels next = t + 1 < end ? output_pixels(chunk, t + 1, zeros_) : pixels;
      transform_winograd_output_gradient(plan_.problem.variant, pixels, next, plan_.to.columns,
                                         chunk.to.from_row(t));
      pixels = next;
    }
  }

  void transform_outputs(const Chunk& chunk, int64_t begin, int64_t end) const {
    for (int64_t t = begin; t < end; ++t) {
      transform_winograd_output(plan_.problem.variant, chunk.to.from_row(t), plan_.to.columns,
                                bias_, plan_.problem.relu, output_pixels(chunk, t, nullptr));
    }
  }

  WinogradInputPixels input_pixels(const Chunk& chunk, int64_t t) const {
    return plan_.tiles.input_pixels(chunk.first + t, from_, zeros_);
  }
  WinogradOutputPixels output_pixels(const Chunk& chunk, int64_t t, std::byte* outside) const {
    return plan_.tiles.output_pixels(chunk.first + t, to_, outside);
  }

  /// Computes blocks [begin, end) of the products of a chunk.
  void multiply(const Chunk& chunk, int64_t begin, int64_t end) const {
    multiply_winograd(product_of(chunk), begin, end);
  }

  WinogradProduct product_of(const Chunk& chunk) const {
    if (plan_.computes_filter_gradient()) {
      return {.left = chunk.from,
              .right = chunk.to,
              .result = filters_[static_cast<size_t>(chunk.range)],
              .planes = plan_.filters.planes,
              .rows = plan_.from.columns,
              .terms = chunk.tiles,
              .columns = plan_.to.columns,
              .transposes_left = true,
              .accumulates = !chunk.is_first_of_range};
    }
    return {.left = chunk.from,
            .right = filters_[0],
            .result = chunk.to,
            .planes = plan_.filters.planes,
            .rows = chunk.tiles,
            .terms = plan_.from.columns,
            .columns = plan_.to.columns};
  }

  // The functions below process vectors [begin, end) of source channels.

  void transform_filters(int64_t begin, int64_t end) {
    transform_winograd_filter(plan_.problem.filter, filter_, begin * kWinogradLanes,
                              end * kWinogradLanes, filters_[0]);
  }
  void transform_filter_gradient(int64_t begin, int64_t end) {
    transform_winograd_filter_gradient(plan_.problem.filter, filters_[0], begin * kWinogradLanes,
                                       end * kWinogradLanes, filter_);
  }

  /// Adds planes [begin, end) of the filter gradients of all ranges to those of range 0, in order.
  void add_filter_copies(int64_t begin, int64_t end) {
    for (int64_t plane = begin; plane < end; ++plane) {
      for (size_t copy = 1; copy < filters_.size(); ++copy) {
        add_winograd(filters_[copy].from_plane(plane), plan_.filters, plan_.from.columns,
                     filters_[0].from_plane(plane));
      }
    }
  }

  const WinogradPlan& plan_;
  WinogradImages from_, to_;
  void* filter_ = nullptr;
  const void* bias_ = nullptr;
  std::byte* zeros_ = nullptr;
  std::vector<Chunk> chunks_;  ///< of each worker
  /// The transformed filters, or the transformed filter gradient of each range.
  std::vector<WinogradPlanes> filters_;
};

void add_candidate(const WinogradKernelEntry& entry, const ir::Op& op, const EpilogueOps& epilogue,
                   double flops_per_second, std::vector<KernelCandidate>& candidates) {
  const auto problem = winograd_problem(entry, op, epilogue, 1);
  if (!problem) return;
  const WinogradPlan plan(*problem, entry.may_span_images);
  KernelCandidate candidate = {
      .kernel = std::string(entry.kernel),
      .seconds = plan.predicted_seconds(flops_per_second),
      .workspace = plan.workspace(),
      .mixes_samples = entry.may_span_images && entry.direction == ConvDirection::forward};
  for (const Value& v : op.operands) candidate.operands.push_back(v.type().layout);
  candidate.results = {op.results[0].type.layout};
  candidates.push_back(std::move(candidate));
}

}  // namespace

std::vector<KernelCandidate> winograd_candidates(const ir::Op& op, const EpilogueOps& epilogue,
                                                 double flops_per_second) {
  std::vector<KernelCandidate> candidates;
  for (const WinogradKernelEntry* entry : cpu_kernels_for(kWinogradKernels, op))
    add_candidate(*entry, op, epilogue, flops_per_second, candidates);
  return candidates;
}

std::optional<LibraryRoutine> winograd_kernel(std::string_view kernel, const ir::Op& op,
                                              const EpilogueOps& epilogue, int64_t batch) {
  const WinogradKernelEntry* entry = find_kernel(kWinogradKernels, kernel);
  if (entry == nullptr) return std::nullopt;
  const auto problem = winograd_problem(*entry, op, epilogue, batch);
  if (!problem) {
    throw DeviceError("there is no kernel '" + std::string(kernel) + "' for " + op.name);
  }
  auto compiled = std::make_shared<const WinogradPlan>(*problem, entry->may_span_images);
  LibraryBinder bind = [compiled](void* const* buffers, void* workspace) -> LibraryCall {
    auto call = std::make_shared<WinogradCall>(*compiled, buffers, workspace);
    return {.run = [compiled, call] { call->run(); }};
  };
  return LibraryRoutine{std::move(bind), compiled->workspace()};
}

}  // namespace fluid
