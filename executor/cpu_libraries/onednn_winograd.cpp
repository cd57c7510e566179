#include "executor/cpu_libraries/onednn_winograd.h"

#include <algorithm>
#include <map>

#include "executor/cpu_libraries/onednn_plan.h"
#include "executor/cpu_libraries/winograd_product.h"
#include "executor/cpu_libraries/winograd_tiles.h"
#include "executor/device/library_task.h"
#include "executor/host/parallel.h"
#include "ops/nn/window.h"
#include "passes/layouts.h"
#include "passes/memory_plan.h"

namespace fluid {
namespace {

using Desc = dnnl::memory::desc;

enum class ConvDirection { forward, input_gradient, filter_gradient };

/// Table entry: the name of a library kernel, and the direction of its convolution.
struct WinogradKernelEntry {
  std::string_view kernel;
  ConvDirection direction;
  bool may_span_images = true;  ///< whether a tile may contain pixels of several images
};

constexpr WinogradKernelEntry kWinogradKernels[] = {
    {"winograd.conv2d", ConvDirection::forward, false},
    {"winograd.conv2d_across", ConvDirection::forward},
    {"winograd.conv2d_grad_input", ConvDirection::input_gradient},
    {"winograd.conv2d_grad_filter", ConvDirection::filter_gradient}};

bool is_image(const Type& t) { return t.shape.size() == 4 && t.layout == channels_last(); }

/// The shapes of a Winograd convolution. The convolution reads source images and writes result
/// images. The input gradient is a convolution that reads dy and writes dx. The filter gradient
/// reads x and dy, and writes dw.
struct WinogradProblem {
  ConvDirection direction;
  WinogradVariant variant;
  int64_t images;
  WinogradAxis y, x;
  WinogradFilter filter;
  bool bias, relu;

  WinogradTiles tiles(bool may_span_images) const {
    return {images, y, x, variant.input_tile(), may_span_images};
  }
};

WinogradAxis axis_of(const WindowAxis& window, const Dim& in, const Dim& out, bool rotated) {
  const WinogradAxis axis{in.size, out.size, window.before, window.after};
  if (!rotated) return axis;
  return {axis.out, axis.in, window.kernel - 1 - axis.before, window.kernel - 1 - axis.after};
}

bool fits(const WindowAxis& window) {
  const bool taps = window.kernel == 3 || window.kernel == 5;
  return taps && window.stride == 1 && window.dilation == 1 && window.before < window.kernel &&
         window.after < window.kernel;
}

std::optional<WinogradProblem> problem_of(const WinogradKernelEntry& entry, const ir::Op& op,
                                          const EpilogueOps& chain, int64_t batch) {
  const bool computes_filter_gradient = entry.direction == ConvDirection::filter_gradient;
  const auto task = library_task(op, chain, batch, computes_filter_gradient ? 4 : 3);
  if (!task || !cpu_supports_winograd()) return std::nullopt;
  if (entry.direction != ConvDirection::forward && !chain.empty()) return std::nullopt;
  const DType dtype = task->result.dtype;
  if (dtype != DType::f32 && dtype != DType::bf16 && dtype != DType::f16) return std::nullopt;
  const Type& in =
      entry.direction == ConvDirection::input_gradient ? task->result : task->operands[0];
  const Type& w = computes_filter_gradient ? task->result : task->operands[1];
  const Type& out = entry.direction == ConvDirection::forward
                        ? task->result
                        : task->operands[computes_filter_gradient ? 1 : 0];
  if (!is_image(in) || !is_image(out) || w.layout) return std::nullopt;
  const Window2d window = window_of(op.attrs, w.shape[2].size, w.shape[3].size);
  if (!fits(window.y) || !fits(window.x) || window.y.kernel != window.x.kernel) return std::nullopt;
  if (op.attrs.get<int64_t>("groups") != 1) return std::nullopt;
  const WinogradVariant variant{dtype, static_cast<int>(window.y.kernel)};
  const bool rotated = entry.direction == ConvDirection::input_gradient;
  return WinogradProblem{.direction = entry.direction,
                         .variant = variant,
                         .images = in.shape[0].size,
                         .y = axis_of(window.y, in.shape[2], out.shape[2], rotated),
                         .x = axis_of(window.x, in.shape[3], out.shape[3], rotated),
                         .filter = {variant, w.shape[0].size, w.shape[1].size, rotated},
                         .bias = task->epilogue.bias.has_value(),
                         .relu = task->epilogue.relu};
}

/// A batch of matrices, one per plane, with `channels` columns. The plane stride is padded by one
/// cache line, so that stores to different planes hit different cache sets.
struct Matrices {
  int64_t planes, rows, channels;

  int64_t row() const { return winograd_row(channels); }
  int64_t stride() const { return rows * row() + kWinogradLanes; }
  int64_t bytes() const { return align_up(planes * stride() * int64_t{sizeof(float)}); }
  Desc first(int64_t n) const { return desc({n, channels}, {row(), 1}); }
  Desc first_transposed(int64_t n) const { return desc({channels, n}, {1, row()}); }

 private:
  Desc desc(std::pair<int64_t, int64_t> extents, std::pair<int64_t, int64_t> strides) const {
    return {{planes, extents.first, extents.second},
            dnnl::memory::data_type::f32,
            dnnl::memory::dims{stride(), strides.first, strides.second}};
  }
};

/// How threads process the chunks of a convolution.
enum class ChunkMode {
  /// Each thread processes chunks of its own, which fit in its L2 cache. The filters are read for
  /// each chunk, so they must be small.
  per_thread,
  /// All threads process one chunk after the other. A chunk is multiplied right after its
  /// transform, while it is still in the L3 cache.
  cooperative,
};

constexpr int64_t kCooperativeChunkBytes = 8 << 20;  // target bytes of the tiles of a chunk
constexpr int64_t kMinCooperativeTiles = 32;         // minimum tiles of a chunk
constexpr int64_t kThreadChunkBytes = 320 << 10;     // target bytes of the tiles of a chunk
constexpr int64_t kMinThreadTiles = 6;               // minimum tiles of a chunk
/// Maximum bytes of the transformed filters for ChunkMode::per_thread.
constexpr int64_t kMaxThreadFilterBytes = 1 << 20;

/// The chunks into which the tiles are divided. A chunk has `size` tiles; the last chunk may be
/// smaller. The tiles of a chunk are transformed and multiplied together.
struct Chunks {
  int64_t tiles, size;

  Chunks(int64_t tiles, int64_t values_per_tile, ChunkMode mode) : tiles(tiles) {
    const bool per_thread = mode == ChunkMode::per_thread;
    const int64_t tile_bytes = values_per_tile * int64_t{sizeof(float)};
    const int64_t max_tiles =
        per_thread ? std::max(kThreadChunkBytes / tile_bytes, kMinThreadTiles)
                   : std::max(kCooperativeChunkBytes / tile_bytes, kMinCooperativeTiles);
    // Gives each thread the same number of chunks.
    const int64_t threads = per_thread ? std::min<int64_t>(tiles, thread_count(0)) : 1;
    const int64_t rounds = (tiles + threads * max_tiles - 1) / (threads * max_tiles);
    size = (tiles + rounds * threads - 1) / (rounds * threads);
  }
  int64_t count() const { return (tiles + size - 1) / size; }
};

/// A batched matmul over the tiles of a chunk, with one matrix per plane.
struct BatchedMatmul {
  int64_t tiles;
  bool accumulates;  ///< whether the product is added to the previous result (beta = 1)

  auto operator<=>(const BatchedMatmul&) const = default;
};

/// The shapes, chunks and matmul descriptors of a kernel, before code generation.
struct WinogradPlan {
  WinogradProblem problem;
  WinogradTiles tiles;
  ChunkMode mode;
  Chunks chunks;
  int64_t concurrent_chunks;  ///< number of chunks that threads work on at the same time
  Matrices from, to, filters;
  std::map<BatchedMatmul, dnnl::matmul::primitive_desc> matmuls;
  Desc scratch;

  WinogradPlan(const WinogradProblem& p, bool may_span_images)
      : problem(p),
        tiles(p.tiles(may_span_images)),
        mode(mode_of(p)),
        chunks(tiles.count(),
               p.variant.planes() * (winograd_row(p.filter.source_channels()) +
                                     winograd_row(p.filter.result_channels())),
               mode),
        concurrent_chunks(
            mode == ChunkMode::per_thread ? std::min<int64_t>(thread_count(0), chunks.count()) : 1),
        from{p.variant.planes(), chunks.size, p.filter.source_channels()},
        to{p.variant.planes(), chunks.size, p.filter.result_channels()},
        filters{p.variant.planes(), winograd_row(p.filter.source_channels()),
                p.filter.result_channels()} {
    if (mode == ChunkMode::per_thread) return;
    for (int64_t begin = 0; begin < chunks.tiles; begin += chunks.size) {
      add({std::min(chunks.size, chunks.tiles - begin), computes_filter_gradient() && begin > 0});
    }
  }

  static ChunkMode mode_of(const WinogradProblem& p) {
    const int64_t filter_bytes = p.variant.planes() * winograd_row(p.filter.source_channels()) *
                                 winograd_row(p.filter.result_channels()) * int64_t{sizeof(float)};
    const bool is_small = filter_bytes <= kMaxThreadFilterBytes;
    return is_small && p.direction != ConvDirection::filter_gradient ? ChunkMode::per_thread
                                                                     : ChunkMode::cooperative;
  }

  bool computes_filter_gradient() const {
    return problem.direction == ConvDirection::filter_gradient;
  }

  /// Returns the descriptors of a matmul: left matrix, right matrix, result.
  std::array<Desc, 3> matrices(const BatchedMatmul& p) const {
    const Desc filter = filters.first(problem.filter.source_channels());
    if (computes_filter_gradient())
      return {from.first_transposed(p.tiles), to.first(p.tiles), filter};
    return {from.first(p.tiles), filter, to.first(p.tiles)};
  }

  void add(const BatchedMatmul& matmul) {
    dnnl::primitive_attr attributes = onednn_attributes({});
    if (matmul.accumulates) {
      dnnl::post_ops sum;
      sum.append_sum();
      attributes.set_post_ops(sum);
    }
    const auto [left, right, result] = matrices(matmul);
    const dnnl::matmul::primitive_desc pd({left, right, result}, attributes, onednn_engine());
    matmuls.try_emplace(matmul, pd);
    if (pd.scratchpad_desc().get_size() >= scratch.get_size()) scratch = pd.scratchpad_desc();
  }

  int64_t zeros_bytes() const {
    return align_up(std::max(from.row(), to.row()) * size_of(problem.variant.dtype));
  }
  int64_t workspace() const {
    return zeros_bytes() + concurrent_chunks * (from.bytes() + to.bytes()) + filters.bytes() +
           align_up(static_cast<int64_t>(scratch.get_size()));
  }
};

/// Makes oneDNN generate its f32 GEMM code (several MiB) now, not in the first large matmul.
void warm_up_gemm() {
  constexpr dnnl_dim_t kSide = 32;
  std::array<float, kSide * kSide> factor{}, result{};
  dnnl::sgemm('N', 'N', kSide, kSide, kSide, 1, factor.data(), kSide, factor.data(), kSide, 0,
              result.data(), kSide);
}

/// A plan, and the generated code of its matmuls. Code generation takes time and memory, so a
/// candidate has only a WinogradPlan.
struct CompiledWinogradPlan : WinogradPlan {
  std::map<BatchedMatmul, dnnl::matmul> primitives;

  CompiledWinogradPlan(const WinogradProblem& p, bool may_span_images)
      : WinogradPlan(p, may_span_images) {
    if (!matmuls.empty()) warm_up_gemm();
    for (const auto& [matmul, pd] : matmuls) primitives.try_emplace(matmul, pd);
  }
};

/// A Winograd kernel with bound memory addresses.
class WinogradCall {
 public:
  WinogradCall(const CompiledWinogradPlan& compiled, void* const* buffers, void* workspace)
      : plan_(compiled) {
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
    const auto planes = [&](const Matrices& m) {
      return WinogradPlanes{reinterpret_cast<float*>(take(m.bytes())), m.stride()};
    };
    for (int64_t i = 0; i < plan_.concurrent_chunks; ++i) {
      chunks_.push_back({.from = planes(plan_.from), .to = planes(plan_.to)});
    }
    filter_planes_ = planes(plan_.filters);
    bind_matmuls(take(0));
  }

  void run() {
    std::fill_n(zeros_, plan_.zeros_bytes(), std::byte{});
    if (!plan_.computes_filter_gradient()) {
      parallel_over_source_channels([](WinogradCall& c, int64_t begin, int64_t end) {
        transform_winograd_filter(c.plan_.problem.filter, c.filter_, begin * kWinogradLanes,
                                  end * kWinogradLanes, c.filter_planes_);
      });
    }
    plan_.mode == ChunkMode::per_thread ? run_per_thread() : run_cooperatively();
    if (plan_.computes_filter_gradient()) {
      parallel_over_source_channels([](WinogradCall& c, int64_t begin, int64_t end) {
        transform_winograd_filter_gradient(c.plan_.problem.filter, c.filter_planes_,
                                           begin * kWinogradLanes, end * kWinogradLanes, c.filter_);
      });
    }
  }

 private:
  using Body = void (*)(WinogradCall&, int64_t begin, int64_t end);

  struct BoundMatmul {
    const_dnnl_primitive_t primitive;
    std::vector<dnnl_exec_arg_t> args;
  };

  void bind_matmuls(void* scratch) {
    const auto arg = [&](int id, const Desc& desc, void* data) {
      memory_.emplace_back(desc, onednn_engine(), data);
      return dnnl_exec_arg_t{id, memory_.back().get()};
    };
    const bool gradient = plan_.computes_filter_gradient();
    float* const left = chunks_[0].from.data;
    float* const right = gradient ? chunks_[0].to.data : filter_planes_.data;
    float* const result = gradient ? filter_planes_.data : chunks_[0].to.data;
    for (const auto& [matmul, primitive] : plan_.primitives) {
      const std::array<Desc, 3> matrices = plan_.matrices(matmul);
      matmuls_[matmul] = {
          primitive.get(),
          {arg(DNNL_ARG_SRC, matrices[0], left), arg(DNNL_ARG_WEIGHTS, matrices[1], right),
           arg(DNNL_ARG_DST, matrices[2], result),
           arg(DNNL_ARG_SCRATCHPAD, plan_.scratch, scratch)}};
    }
  }

  void parallel_over(int64_t n, Body body) {
    struct Context {
      WinogradCall& call;
      Body body;
    } context{*this, body};
    parallel_for(
        n, thread_count(0),
        [](void* context, int64_t begin, int64_t end) {
          const auto& c = *static_cast<Context*>(context);
          c.body(c.call, begin, end);
        },
        &context);
  }

  /// Runs `body` in parallel over the source channels, in units of kWinogradLanes channels.
  void parallel_over_source_channels(Body body) {
    parallel_over(plan_.filters.rows / kWinogradLanes, body);
  }

  /// A chunk: its tiles, and the planes of its transformed tiles.
  struct Chunk {
    WinogradPlanes from, to;
    int64_t first = 0, tiles = 0;
  };

  void move_to(int64_t index, Chunk& chunk) const {
    chunk.first = index * plan_.chunks.size;
    chunk.tiles = std::min(plan_.chunks.size, plan_.chunks.tiles - chunk.first);
  }

  // The functions transform_... transform tiles [begin, end) of a chunk.

  void transform_inputs(const Chunk& chunk, int64_t begin, int64_t end) const {
    if (begin == end) return;
    WinogradInputPixels pixels = input_pixels(chunk, begin);
    for (int64_t t = begin; t < end; ++t) {
      const WinogradInputPixels next = t + 1 < end ? input_pixels(chunk, t + 1) : pixels;
      transform_input(chunk, t, pixels, next);
      pixels = next;
    }
  }

  void transform_inputs_and_gradients(const Chunk& chunk, int64_t begin, int64_t end) const {
    if (begin == end) return;
    WinogradInputPixels inputs = input_pixels(chunk, begin);
    WinogradOutputPixels gradients = output_pixels(chunk, begin, zeros_);
    for (int64_t t = begin; t < end; ++t) {
      const bool is_last = t + 1 == end;
      const WinogradInputPixels next_inputs = is_last ? inputs : input_pixels(chunk, t + 1);
      const WinogradOutputPixels next_gradients =
          is_last ? gradients : output_pixels(chunk, t + 1, zeros_);
      transform_input(chunk, t, inputs, next_inputs);
      transform_winograd_output_gradient(plan_.problem.variant, gradients, next_gradients,
                                         plan_.to.channels, chunk.to.at(t * plan_.to.row()));
      inputs = next_inputs;
      gradients = next_gradients;
    }
  }

  void transform_outputs(const Chunk& chunk, int64_t begin, int64_t end) const {
    for (int64_t t = begin; t < end; ++t) {
      transform_winograd_output(plan_.problem.variant, chunk.to.at(t * plan_.to.row()),
                                plan_.to.channels, bias_, plan_.problem.relu,
                                output_pixels(chunk, t, nullptr));
    }
  }

  void transform_input(const Chunk& chunk, int64_t t, const WinogradInputPixels& pixels,
                       const WinogradInputPixels& next) const {
    transform_winograd_input(plan_.problem.variant, pixels, next, plan_.from.channels,
                             chunk.from.at(t * plan_.from.row()));
  }

  WinogradInputPixels input_pixels(const Chunk& chunk, int64_t t) const {
    return plan_.tiles.input_pixels(chunk.first + t, from_, zeros_);
  }
  WinogradOutputPixels output_pixels(const Chunk& chunk, int64_t t, std::byte* outside) const {
    return plan_.tiles.output_pixels(chunk.first + t, to_, outside);
  }

  void run_per_thread() {
    parallel_over(plan_.concurrent_chunks, [](WinogradCall& c, int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) c.run_chunks(i);
    });
  }

  /// Processes range `index` of the concurrent_chunks ranges of chunks, on the calling thread.
  void run_chunks(int64_t index) {
    Chunk& chunk = chunks_[static_cast<size_t>(index)];
    const int64_t chunks = plan_.chunks.count(), ranges = plan_.concurrent_chunks;
    for (int64_t i = chunks * index / ranges; i < chunks * (index + 1) / ranges; ++i) {
      move_to(i, chunk);
      transform_inputs(chunk, 0, chunk.tiles);
      multiply_winograd_planes(plan_.problem.variant.planes(), chunk.from, filter_planes_, chunk.to,
                               chunk.tiles, plan_.from.channels, plan_.to.channels);
      transform_outputs(chunk, 0, chunk.tiles);
    }
  }

  void run_cooperatively() {
    for (int64_t i = 0; i < plan_.chunks.count(); ++i) {
      move_to(i, chunks_[0]);
      plan_.computes_filter_gradient() ? accumulate_chunk() : run_chunk();
    }
  }

  void run_chunk() {
    const int64_t tiles = chunks_[0].tiles;
    parallel_over(tiles, [](WinogradCall& c, int64_t begin, int64_t end) {
      c.transform_inputs(c.chunks_[0], begin, end);
    });
    multiply(false);
    parallel_over(tiles, [](WinogradCall& c, int64_t begin, int64_t end) {
      c.transform_outputs(c.chunks_[0], begin, end);
    });
  }

  void accumulate_chunk() {
    parallel_over(chunks_[0].tiles, [](WinogradCall& c, int64_t begin, int64_t end) {
      c.transform_inputs_and_gradients(c.chunks_[0], begin, end);
    });
    multiply(chunks_[0].first > 0);
  }

  void multiply(bool accumulates) {
    const BoundMatmul& matmul = matmuls_.at({chunks_[0].tiles, accumulates});
    run_onednn(matmul.primitive, stream_, matmul.args);
  }

  const CompiledWinogradPlan& plan_;
  WinogradImages from_, to_;
  void* filter_ = nullptr;
  const void* bias_ = nullptr;
  std::byte* zeros_ = nullptr;
  std::vector<Chunk> chunks_;  ///< one, or one for each thread (ChunkMode::per_thread)
  WinogradPlanes filter_planes_;
  dnnl::stream stream_{onednn_engine()};
  std::vector<dnnl::memory> memory_;
  std::map<BatchedMatmul, BoundMatmul> matmuls_;
};

/// Predicts the time of a Winograd convolution. Matmuls reach kEfficiency of the peak FLOP/s, as
/// measured with oneDNN 2.6.3. In each plane, a transform costs kTransform operations per image
/// value, and kFilterTransform operations per filter value. These constants were fitted to
/// convolutions with 20 to 512 channels on two cores with AVX-512 (Zen 4). The matmuls of a filter
/// gradient with few channels, which oneDNN computes, are slower: their rows are counted padded.
double predicted_seconds(const WinogradPlan& plan, const OnednnRates& rates) {
  constexpr double kEfficiency = 0.87, kTransform = 28, kFilterTransform = 140;
  const WinogradProblem& p = plan.problem;
  const auto from = static_cast<double>(plan.from.row()), to = static_cast<double>(plan.to.row());
  const auto n = static_cast<double>(plan.chunks.tiles);
  const double terms = p.direction == ConvDirection::filter_gradient
                           ? from
                           : static_cast<double>(p.filter.source_channels());
  const double flops = 2 * n * terms * to / kEfficiency + kTransform * n * (from + to) +
                       kFilterTransform * from * to;
  // A call runs a parallel region for the filter, and one for the tiles or three per chunk.
  const bool per_thread = plan.mode == ChunkMode::per_thread;
  const auto regions = static_cast<double>(1 + (per_thread ? 1 : 3 * plan.chunks.count()));
  return regions * kLibraryCallSeconds + p.variant.planes() * flops / rates.flops_per_second;
}

void add_candidate(const WinogradKernelEntry& entry, const ir::Op& op, const EpilogueOps& epilogue,
                   const OnednnRates& rates, std::vector<KernelCandidate>& candidates) {
  const auto problem = problem_of(entry, op, epilogue, 1);
  if (!problem) return;
  const WinogradPlan plan(*problem, entry.may_span_images);
  KernelCandidate candidate = {
      .kernel = std::string(entry.kernel),
      .seconds = predicted_seconds(plan, rates),
      .workspace = plan.workspace(),
      .mixes_samples = entry.may_span_images && entry.direction == ConvDirection::forward};
  for (const Value& v : op.operands) candidate.operands.push_back(v.type().layout);
  candidate.results = {op.results[0].type.layout};
  candidates.push_back(std::move(candidate));
}

}  // namespace

std::vector<KernelCandidate> winograd_candidates(const ir::Op& op, const EpilogueOps& epilogue,
                                                 const OnednnRates& rates) {
  std::vector<KernelCandidate> candidates;
  for (const WinogradKernelEntry* entry : cpu_kernels_for(kWinogradKernels, op))
    add_candidate(*entry, op, epilogue, rates, candidates);
  return candidates;
}

std::optional<LibraryRoutine> winograd_kernel(std::string_view kernel, const ir::Op& op,
                                              const EpilogueOps& epilogue, int64_t batch) {
  const WinogradKernelEntry* entry = find_kernel(kWinogradKernels, kernel);
  if (entry == nullptr) return std::nullopt;
  const auto problem = problem_of(*entry, op, epilogue, batch);
  if (!problem) {
    throw DeviceError("there is no kernel '" + std::string(kernel) + "' for " + op.name);
  }
  auto compiled = std::make_shared<const CompiledWinogradPlan>(*problem, entry->may_span_images);
  LibraryBinder bind = [compiled](void* const* buffers, void* workspace) -> LibraryCall {
    auto call = std::make_shared<WinogradCall>(*compiled, buffers, workspace);
    return {.run = [compiled, call] { call->run(); }};
  };
  return LibraryRoutine{std::move(bind), compiled->workspace()};
}

}  // namespace fluid
