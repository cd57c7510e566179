#include "executor/cpu_libraries/onednn_winograd.h"

#include <algorithm>
#include <map>

#include "executor/cpu_libraries/onednn_plan.h"
#include "executor/cpu_libraries/winograd_tiles.h"
#include "executor/device/library_task.h"
#include "executor/host/parallel.h"
#include "ops/nn/window.h"
#include "passes/layouts.h"
#include "passes/memory_plan.h"

namespace fluid {
namespace {

using Desc = dnnl::memory::desc;

enum class Gives { result, input_gradient, filter_gradient };

struct WinogradKind {
  std::string_view kernel;
  Gives gives;
  bool across = true;  ///< tiles may span images
};

constexpr WinogradKind kWinogradKinds[] = {{"winograd.conv2d", Gives::result, false},
                                           {"winograd.conv2d_across", Gives::result},
                                           {"winograd.conv2d_grad_input", Gives::input_gradient},
                                           {"winograd.conv2d_grad_filter", Gives::filter_gradient}};

bool is_image(const Type& t) {
  return t.shape.size() == 4 && t.layout == channels_last() &&
         t.shape[1].size % kWinogradLanes == 0;
}

/// A convolution of images `from` to images `to`. In an input gradient `from` is dy and `to` is dx.
/// In a filter gradient both are operands.
struct WinogradProblem {
  Gives gives;
  WinogradForm form;
  int64_t images;
  WinogradAxis y, x;
  WinogradFilter filter;
  bool bias, relu;

  WinogradTiles tiles(bool across) const { return {images, y, x, form.reach(), across}; }
};

WinogradAxis axis_of(const WindowAxis& window, const Dim& in, const Dim& out, bool turned) {
  const WinogradAxis axis{in.size, out.size, window.before, window.after};
  if (!turned) return axis;
  return {axis.out, axis.in, window.kernel - 1 - axis.before, window.kernel - 1 - axis.after};
}

bool fits(const WindowAxis& window) {
  const bool taps = window.kernel == 3 || window.kernel == 5;
  return taps && window.stride == 1 && window.dilation == 1 && window.before < window.kernel &&
         window.after < window.kernel;
}

std::optional<WinogradProblem> problem_of(const WinogradKind& kind, const ir::Op& op,
                                          const Chain& chain, int64_t batch) {
  const bool computes_filter_gradient = kind.gives == Gives::filter_gradient;
  const auto task = library_task(op, chain, batch, computes_filter_gradient ? 4 : 3);
  if (!task || !winograd_supported()) return std::nullopt;
  if (kind.gives != Gives::result && !chain.empty()) return std::nullopt;
  const DType dtype = task->result.dtype;
  if (dtype != DType::f32 && dtype != DType::bf16 && dtype != DType::f16) return std::nullopt;
  const Type& in = kind.gives == Gives::input_gradient ? task->result : task->operands[0];
  const Type& w = computes_filter_gradient ? task->result : task->operands[1];
  const Type& out =
      kind.gives == Gives::result ? task->result : task->operands[computes_filter_gradient ? 1 : 0];
  if (!is_image(in) || !is_image(out) || w.layout) return std::nullopt;
  const Window2d window = window_of(op.attrs, w.shape[2].size, w.shape[3].size);
  if (!fits(window.y) || !fits(window.x) || window.y.kernel != window.x.kernel) return std::nullopt;
  if (op.attrs.get<int64_t>("groups") != 1) return std::nullopt;
  const WinogradForm form{dtype, static_cast<int>(window.y.kernel)};
  const bool turned = kind.gives == Gives::input_gradient;
  return WinogradProblem{.gives = kind.gives,
                         .form = form,
                         .images = in.shape[0].size,
                         .y = axis_of(window.y, in.shape[2], out.shape[2], turned),
                         .x = axis_of(window.x, in.shape[3], out.shape[3], turned),
                         .filter = {form, w.shape[0].size, w.shape[1].size, turned},
                         .bias = task->epilogue.bias.has_value(),
                         .relu = task->epilogue.relu};
}

/// One matrix per plane. Planes are one cache line further apart than their rows need, so that
/// stores to all planes do not hit the same cache set.
struct Matrices {
  int64_t planes, rows, columns;

  int64_t stride() const { return rows * columns + kWinogradLanes; }
  int64_t bytes() const { return aligned(planes * stride() * int64_t{sizeof(float)}); }
  Desc all() const { return first(rows); }
  Desc first(int64_t n) const { return desc({n, columns}, {columns, 1}); }
  Desc first_transposed(int64_t n) const { return desc({columns, n}, {1, columns}); }

 private:
  Desc desc(std::pair<int64_t, int64_t> extents, std::pair<int64_t, int64_t> strides) const {
    return {{planes, extents.first, extents.second},
            dnnl::memory::data_type::f32,
            dnnl::memory::dims{stride(), strides.first, strides.second}};
  }
};

/// Bytes of the tiles that are transformed before their products are computed, so that they stay in
/// the cache.
constexpr int64_t kChunkBytes = 8 << 20;

/// The division of tiles into chunks that are transformed together. All chunks but the last have
/// the same size.
struct Chunks {
  int64_t tiles, size;

  Chunks(int64_t tiles, int64_t values_a_tile) : tiles(tiles) {
    const int64_t tile_bytes = values_a_tile * int64_t{sizeof(float)};
    const int64_t most = std::max<int64_t>(kChunkBytes / tile_bytes, 32);
    const int64_t n = (tiles + most - 1) / most;
    size = (tiles + n - 1) / n;
  }
  int64_t count() const { return (tiles + size - 1) / size; }
};

/// A batched matrix product, one matrix per plane.
struct Product {
  int64_t tiles;
  bool adds;  ///< adds to the existing result

  auto operator<=>(const Product&) const = default;
};

/// The part of a kernel that does not depend on memory addresses.
struct Prepared {
  WinogradProblem problem;
  WinogradTiles tiles;
  Chunks chunks;
  Matrices from, to, filters;
  std::map<Product, dnnl::matmul::primitive_desc> products;
  Desc scratch;

  Prepared(const WinogradProblem& p, bool across)
      : problem(p),
        tiles(p.tiles(across)),
        chunks(tiles.count(), p.form.planes() * (p.filter.from() + p.filter.to())),
        from{p.form.planes(), chunks.size, p.filter.from()},
        to{p.form.planes(), chunks.size, p.filter.to()},
        filters{p.form.planes(), p.filter.from(), p.filter.to()} {
    for (int64_t begin = 0; begin < chunks.tiles; begin += chunks.size) {
      add({std::min(chunks.size, chunks.tiles - begin), computes_filter_gradient() && begin > 0});
    }
  }

  bool computes_filter_gradient() const { return problem.gives == Gives::filter_gradient; }

  /// Returns the descriptors of a product: left matrix, right matrix, result.
  std::array<Desc, 3> matrices(const Product& p) const {
    if (computes_filter_gradient())
      return {from.first_transposed(p.tiles), to.first(p.tiles), filters.all()};
    return {from.first(p.tiles), filters.all(), to.first(p.tiles)};
  }

  void add(const Product& product) {
    dnnl::primitive_attr attributes = onednn_attributes({});
    if (product.adds) {
      dnnl::post_ops sum;
      sum.append_sum();
      attributes.set_post_ops(sum);
    }
    const auto [left, right, result] = matrices(product);
    const dnnl::matmul::primitive_desc pd({left, right, result}, attributes, onednn_engine());
    products.try_emplace(product, pd);
    if (pd.scratchpad_desc().get_size() >= scratch.get_size()) scratch = pd.scratchpad_desc();
  }

  int64_t zeros_bytes() const {
    return aligned(std::max(from.columns, to.columns) * size_of(problem.form.dtype));
  }
  int64_t workspace() const {
    return zeros_bytes() + from.bytes() + to.bytes() + filters.bytes() +
           aligned(static_cast<int64_t>(scratch.get_size()));
  }
};

/// Makes oneDNN generate its f32 GEMM code, several MiB, now instead of at the first large product.
void warm_up_gemm() {
  constexpr dnnl_dim_t kSide = 32;
  std::array<float, kSide * kSide> factor{}, product{};
  dnnl::sgemm('N', 'N', kSide, kSide, kSide, 1, factor.data(), kSide, factor.data(), kSide, 0,
              product.data(), kSide);
}

/// A kernel that can be bound to memory. Generating the products' code takes time and memory, which
/// claims do not need.
struct Compiled : Prepared {
  std::map<Product, dnnl::matmul> primitives;

  Compiled(const WinogradProblem& p, bool across) : Prepared(p, across) {
    warm_up_gemm();
    for (const auto& [product, pd] : products) primitives.try_emplace(product, pd);
  }
};

/// A kernel bound to memory addresses.
class WinogradCall {
 public:
  WinogradCall(const Compiled& compiled, void* const* buffers, void* workspace) : p_(compiled) {
    const WinogradProblem& problem = p_.problem;
    const size_t last = problem.bias ? 3 : 2;
    const auto image = [&](size_t i, int64_t channels) {
      return WinogradImages{static_cast<std::byte*>(buffers[i]),
                            channels * size_of(problem.form.dtype)};
    };
    from_ = image(0, problem.filter.from());
    to_ = image(p_.computes_filter_gradient() ? 1 : last, problem.filter.to());
    filter_ = buffers[p_.computes_filter_gradient() ? last : 1];
    bias_ = problem.bias ? buffers[2] : nullptr;
    auto* next = static_cast<std::byte*>(workspace);
    const auto take = [&](int64_t bytes) { return std::exchange(next, next + bytes); };
    zeros_ = take(p_.zeros_bytes());
    const auto planes = [&](const Matrices& m) {
      return WinogradPlanes{reinterpret_cast<float*>(take(m.bytes())), m.stride()};
    };
    from_planes_ = planes(p_.from);
    to_planes_ = planes(p_.to);
    filter_planes_ = planes(p_.filters);
    bind_products(take(0));
  }

  void run() {
    std::fill_n(zeros_, p_.zeros_bytes(), std::byte{});
    if (!p_.computes_filter_gradient()) {
      over_filters([](WinogradCall& c, int64_t begin, int64_t end) {
        winograd_filter(c.p_.problem.filter, c.filter_, begin * kWinogradLanes,
                        end * kWinogradLanes, c.filter_planes_);
      });
    }
    for (first_ = 0; first_ < p_.chunks.tiles; first_ += p_.chunks.size) {
      p_.computes_filter_gradient() ? add_chunk() : run_chunk();
    }
    if (p_.computes_filter_gradient()) {
      over_filters([](WinogradCall& c, int64_t begin, int64_t end) {
        winograd_filter_gradient(c.p_.problem.filter, c.filter_planes_, begin * kWinogradLanes,
                                 end * kWinogradLanes, c.filter_);
      });
    }
  }

 private:
  using Body = void (*)(WinogradCall&, int64_t begin, int64_t end);

  struct Bound {
    const_dnnl_primitive_t primitive;
    std::vector<dnnl_exec_arg_t> args;
  };

  void bind_products(void* scratch) {
    const auto arg = [&](int id, const Desc& desc, void* data) {
      memory_.emplace_back(desc, onednn_engine(), data);
      return dnnl_exec_arg_t{id, memory_.back().get()};
    };
    float* const left = from_planes_.data;
    float* const right = p_.computes_filter_gradient() ? to_planes_.data : filter_planes_.data;
    float* const result = p_.computes_filter_gradient() ? filter_planes_.data : to_planes_.data;
    for (const auto& [product, primitive] : p_.primitives) {
      const std::array<Desc, 3> matrices = p_.matrices(product);
      products_[product] = {
          primitive.get(),
          {arg(DNNL_ARG_SRC, matrices[0], left), arg(DNNL_ARG_WEIGHTS, matrices[1], right),
           arg(DNNL_ARG_DST, matrices[2], result), arg(DNNL_ARG_SCRATCHPAD, p_.scratch, scratch)}};
    }
  }

  int64_t chunk_tiles() const { return std::min(p_.chunks.size, p_.chunks.tiles - first_); }

  void over(int64_t n, Body body) {
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
  void over_tiles(Body body) { over(chunk_tiles(), body); }

  /// Parallel over whole vectors of the channels that the filter reads.
  void over_filters(Body body) { over(p_.problem.filter.from() / kWinogradLanes, body); }

  void multiply(bool adds) {
    const Bound& product = products_.at({chunk_tiles(), adds});
    run_onednn(product.primitive, stream_, product.args);
  }

  void transform(int64_t tile) const {
    winograd_image(p_.problem.form, p_.tiles.reach(first_ + tile, from_, zeros_), p_.from.columns,
                   from_planes_.at(tile * p_.from.columns));
  }

  void run_chunk() {
    over_tiles([](WinogradCall& c, int64_t begin, int64_t end) {
      for (int64_t t = begin; t < end; ++t) c.transform(t);
    });
    multiply(false);
    over_tiles([](WinogradCall& c, int64_t begin, int64_t end) {
      const int64_t channels = c.p_.to.columns;
      for (int64_t t = begin; t < end; ++t) {
        winograd_results(c.p_.problem.form, c.to_planes_.at(t * channels), channels, c.bias_,
                         c.p_.problem.relu, c.p_.tiles.given(c.first_ + t, c.to_, nullptr));
      }
    });
  }

  void add_chunk() {
    over_tiles([](WinogradCall& c, int64_t begin, int64_t end) {
      const int64_t channels = c.p_.to.columns;
      for (int64_t t = begin; t < end; ++t) {
        c.transform(t);
        winograd_gradient(c.p_.problem.form, c.p_.tiles.given(c.first_ + t, c.to_, c.zeros_),
                          channels, c.to_planes_.at(t * channels));
      }
    });
    multiply(first_ > 0);
  }

  const Compiled& p_;
  WinogradImages from_, to_;
  void* filter_ = nullptr;
  const void* bias_ = nullptr;
  std::byte* zeros_ = nullptr;
  WinogradPlanes from_planes_, to_planes_, filter_planes_;
  dnnl::stream stream_{onednn_engine()};
  std::vector<dnnl::memory> memory_;
  std::map<Product, Bound> products_;
  int64_t first_ = 0;  ///< first tile of the current chunk
};

/// Predicts the time of a Winograd convolution. Matmuls reach kEfficiency of the peak FLOP/s, as
/// measured with oneDNN 2.6.3. The transforms take as long as kTransform f32 operations per image
/// value and kFilterTransform per filter value, at the peak rate. Both constants are counted per
/// plane. They were fitted to 64 to 512 channels on two cores with AVX-512.
double predicted_seconds(const WinogradProblem& p, const Chunks& chunks, const OnednnRates& rates) {
  constexpr double kEfficiency = 0.87, kTransform = 56, kFilterTransform = 280;
  const auto from = static_cast<double>(p.filter.from()), to = static_cast<double>(p.filter.to());
  const auto n = static_cast<double>(chunks.tiles);
  const double flops =
      2 * n * from * to / kEfficiency + kTransform * n * (from + to) + kFilterTransform * from * to;
  // Three parallel regions per chunk, and one for the filter.
  const auto regions = static_cast<double>(1 + 3 * chunks.count());
  return regions * kLibraryCallSeconds + p.form.planes() * flops / rates.flops;
}

void add_claim(const WinogradKind& kind, const ir::Op& op, const Chain& epilogue,
               const OnednnRates& rates, std::vector<Claim>& claims) {
  const auto problem = problem_of(kind, op, epilogue, 1);
  if (!problem) return;
  const Prepared prepared(*problem, kind.across);
  Claim claim = {.kernel = std::string(kind.kernel),
                 .seconds = predicted_seconds(*problem, prepared.chunks, rates),
                 .workspace = prepared.workspace(),
                 .mixes_samples = kind.across && kind.gives == Gives::result};
  for (const Value& v : op.operands) claim.operands.push_back(v.type().layout);
  claim.results = {op.results[0].type.layout};
  claims.push_back(std::move(claim));
}

}  // namespace

std::vector<Claim> winograd_claims(const ir::Op& op, const Chain& epilogue,
                                   const OnednnRates& rates) {
  std::vector<Claim> claims;
  for (const WinogradKind* kind : kinds_for(kWinogradKinds, op))
    add_claim(*kind, op, epilogue, rates, claims);
  return claims;
}

std::optional<LibraryRoutine> winograd_kernel(std::string_view kernel, const ir::Op& op,
                                              const Chain& epilogue, int64_t batch) {
  const WinogradKind* kind = kind_named(kWinogradKinds, kernel);
  if (kind == nullptr) return std::nullopt;
  const auto problem = problem_of(*kind, op, epilogue, batch);
  if (!problem) {
    throw DeviceError("there is no kernel '" + std::string(kernel) + "' for " + op.name);
  }
  auto compiled = std::make_shared<const Compiled>(*problem, kind->across);
  LibraryBinder bind = [compiled](void* const* buffers, void* workspace) -> LibraryCall {
    auto call = std::make_shared<WinogradCall>(*compiled, buffers, workspace);
    return [compiled, call] { call->run(); };
  };
  return LibraryRoutine{std::move(bind), compiled->workspace()};
}

}  // namespace fluid
