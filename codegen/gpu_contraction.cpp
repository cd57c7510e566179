#include "codegen/gpu_contraction.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "codegen/gpu_stages.h"
#include "codegen/schedule_contraction.h"

namespace fluid {
namespace {

using Kind = kir::For::Kind;

constexpr int64_t kBlockThreads = 128;  // CUDA block size if each thread computes one tile
// Maximum number of register accumulators per thread.
constexpr int64_t kMaxThreadAccumulators = 32;
// Maximum number of accumulators of a tile that a thread group computes.
constexpr int64_t kMaxThreadGroupAccumulators = 16;
constexpr int64_t kMaxTile = 8;           // maximum tile size along one variable
constexpr double kMinTermsPerSplit = 64;  // minimum reduction length per slice of split-K
// Maximum number of multiply-adds in the body of the innermost loop.
constexpr double kMaxUnrolledFmas = 256;
constexpr int64_t kVectorTerms = 4;     // number of elements that one vector load reads
constexpr double kUncoalescedCost = 8;  // cost of an uncoalesced load; a coalesced load costs 1

int64_t step_of(const Expr& load, int64_t var) {
  if (!depends_on(load.args()[0], var)) return 0;
  const std::optional<Affine> affine = as_affine(load.args()[0]);
  return affine ? std::abs(affine->coefficient(var)) : INT64_MAX;
}

Expr all_of(const std::vector<Expr>& conditions) {
  Expr all;
  for (const Expr& c : conditions) all = all ? scalar::logical_and(all, c) : c;
  return all;
}

}  // namespace

std::optional<GpuContraction> GpuContraction::match(KernelBuilder& b) {
  GpuContraction c(b);
  Vars rows;
  std::optional<std::vector<FlatRoot>> roots = match_sum_with_epilogue(b, rows);
  if (!roots) return std::nullopt;
  c.roots_ = *std::move(roots);
  c.choose_lane_var();
  c.choose_tiles();
  c.choose_splits();
  const bool shares = loads_of(c.roots_.front().body).size() > 1;
  // Leaves a sum over a single operand to the row-wise schedule (Sweep), unless split-K is used.
  return shares || c.splits_ > 1 ? std::optional(std::move(c)) : std::nullopt;
}

/// Chooses the variable along which adjacent threads compute adjacent elements. Prefers a variable
/// along which the operand loads, and the loads and stores of the epilogue, are contiguous.
void GpuContraction::choose_lane_var() {
  const FlatRoot& sum = roots_.front();
  const double terms = estimated_trip_count(b_, sum.reduce);
  double best = -1;
  for (const Vars* vars : {&sum.out, &sum.reduce}) {
    for (int64_t v : *vars) {
      double good = 0;
      for (const FlatRoot& s : roots_) {
        good += vectorization_score(b_, s, v).score / (s.is_reduction() ? 1 : terms);
      }
      good *= lane_utilization(b_.extent(v), kGpu.lanes);
      if (good <= best) continue;
      best = good;
      lane_var_ = v;
      lanes_reduced_ = vars == &sum.reduce;
    }
  }
}

int64_t GpuContraction::tile_size(int64_t var) const {
  const auto tile = std::ranges::find(tiles_, var, &Tile::var);
  return tile == tiles_.end() ? 1 : tile->size;
}

Expr GpuContraction::tile_count(int64_t var) const {
  return ceil_div(extent_expr(b_.extent(var)), tile_size(var));
}

/// Returns the cost of `load` in one iteration of a tile's reduction loop: the number of load
/// instructions times the cost of one. A coalesced load by a warp costs 1.
double GpuContraction::load_cost(const Expr& load, const std::vector<Tile>& tiles) const {
  const int64_t step = step_of(load, lane_var_);
  double n = step <= 1 ? 1 : (step <= 4 ? 2 : kUncoalescedCost);
  for (const Tile& t : tiles) {
    if (!depends_on(load.args()[0], t.var)) continue;
    const bool vector_load = step_of(load, t.var) == 1 && t.size % kVectorTerms == 0 &&
                             load.args().size() == 1 && !b_.extent(t.var).batch &&
                             b_.extent(t.var).size % kVectorTerms == 0;
    n *= static_cast<double>(t.size) / (vector_load ? static_cast<double>(kVectorTerms) : 1);
  }
  return n;
}

double GpuContraction::thread_count(const std::vector<Tile>& tiles) const {
  double n = estimated_trip_count(b_, roots_.front().out);
  for (const Tile& t : tiles) {
    const double extent = estimated_extent(b_.extent(t.var)), size = static_cast<double>(t.size);
    n *= std::ceil(extent / size) / extent;
  }
  const double terms = estimated_trip_count(b_, roots_.front().reduce);
  if (lanes_reduced_) n *= std::min<double>(static_cast<double>(kGpu.lanes), terms);
  return n;
}

/// Returns the cost of one multiply-add, including its share of the loads. The multiply-add alone
/// costs 1. A larger tile costs more if too few threads are left to hide memory latency.
double GpuContraction::tile_cost(const std::vector<Tile>& tiles) const {
  double products = 1, loads = 0, used = 1;
  for (const Tile& t : tiles) {
    const double extent = estimated_extent(b_.extent(t.var)), size = static_cast<double>(t.size);
    products *= size;
    used *= extent / (std::ceil(extent / size) * size);
  }
  for (const Expr& load : loads_of(roots_.front().body)) loads += load_cost(load, tiles);
  const double terms = estimated_trip_count(b_, roots_.front().reduce);
  const double most = thread_count(tiles) * std::max(terms / kMinTermsPerSplit, 1.0);
  return (1 + 2 * loads / products) / used / std::min(most / kBusyThreads, 1.0);
}

void GpuContraction::choose_tiles() {
  const Vars& vars = roots_.front().out;
  const int64_t most = lanes_reduced_ ? kMaxThreadGroupAccumulators : kMaxThreadAccumulators;
  double best = tile_cost({});
  auto consider = [&](const std::vector<Tile>& tiles) {
    const double c = tile_cost(tiles);
    if (c >= best - 1e-9) return;
    best = c;
    tiles_ = tiles;
  };
  for (size_t i = 0; i < vars.size(); ++i) {
    for (int64_t m = 2; m <= kMaxTile; m *= 2) {
      consider({{vars[i], m}});
      for (size_t j = i + 1; j < vars.size(); ++j) {
        for (int64_t n = 2; n <= kMaxTile && m * n <= most; n *= 2) {
          consider({{vars[i], m}, {vars[j], n}});
        }
      }
    }
  }
}

void GpuContraction::choose_splits() {
  const FlatRoot& sum = roots_.front();
  const double terms = estimated_trip_count(b_, sum.reduce);
  const double wanted = std::ceil(kBusyThreads / thread_count(tiles_));
  const double most =
      std::min(estimated_extent(b_.extent(sum.reduce.front())), terms / kMinTermsPerSplit);
  splits_ = std::max<int64_t>(static_cast<int64_t>(std::min(wanted, most)), 1);
  if (splits_ < 4) splits_ = 1;  // with fewer slices, a second kernel does not pay off
}

std::vector<kir::Kernel> GpuContraction::emit() {
  const FlatRoot& sum = roots_.front();
  if (splits_ > 1) {
    Dim elements = sum.result_elements;
    elements.size *= splits_;
    partial_sums_ = b_.add_scratch_buffer(sum.acc_dtype, elements);
    split_var_ = b_.next_var++;
  }
  std::vector<kir::Kernel> kernels = {lanes_reduced_ ? tile_per_thread_group_kernel()
                                                     : tile_per_thread_kernel()};
  if (splits_ > 1) kernels.push_back(split_k_reduction_kernel());
  return kernels;
}

/// Returns the bounds [begin, end) of the first reduction variable in the current slice of split-K.
std::pair<Expr, Expr> GpuContraction::split_bounds() const {
  const Expr size = extent_expr(b_.extent(roots_.front().reduce.front()));
  if (splits_ == 1) return {Expr::index(0), size};
  const Expr length = ceil_div(size, splits_ * kVectorTerms) * Expr::index(kVectorTerms);
  const Expr begin = min_index(size, Expr::var(split_var_) * length);
  return {begin, min_index(size, begin + length)};
}

/// Binds all result variables to their values in tile `tile_index`. Returns the roots of this tile.
/// Sets `block` to the block in which the variables are bound.
GpuContraction::TileBody GpuContraction::bind_tile(kir::Block*& block, const Expr& tile_index) {
  TileBody tile{roots_, {}, {}, {}};
  Vars order = roots_.front().out;
  std::ranges::reverse(order);
  if (const auto it = std::ranges::find(order, lane_var_); it != order.end()) {
    std::rotate(order.begin(), it, it + 1);  // lane_var_ varies fastest
  }
  std::vector<std::pair<int64_t, Expr>> digits;
  std::map<int64_t, Expr> tile_indices;
  for (int64_t v : order) {
    tile_indices[v] = tile_size(v) == 1 ? Expr::var(v) : b_.new_var();
    digits.push_back({tile_indices[v].node().ivalue, tile_count(v)});
  }
  if (splits_ > 1) digits.push_back({split_var_, Expr::index(splits_)});
  block = &delinearize(b_, tile_index, digits, *block);
  for (const Tile& t : tiles_) {
    const Expr within = b_.new_var();
    tile.unrolled.push_back(within.node().ivalue);
    tile.index.push_back(within);
    const Dim& extent = b_.extent(t.var);
    Expr index = tile_indices[t.var] * Expr::index(t.size) + within;
    // The last tile may extend past the end of the result. Its reads are clamped to the last
    // element.
    if (extent.batch || extent.size % t.size != 0) {
      tile.in_bounds.push_back(scalar::compare(ScalarOp::lt, index, extent_expr(extent)));
      index = min_index(index, extent_expr(extent) - Expr::index(1));
    }
    for (FlatRoot& s : tile.roots) substitute(s, t.var, index);
  }
  return tile;
}

kir::Block& GpuContraction::emit_tile_loops(const TileBody& tile, kir::Block& out) {
  kir::Block* at = &out;
  for (size_t i = 0; i < tiles_.size(); ++i) {
    at =
        &add_loop(*at, tile.unrolled[i], Expr::index(0), Expr::index(tiles_[i].size), Kind::unroll);
  }
  return *at;
}

void GpuContraction::accumulate(const TileBody& tile, int64_t accumulator_id, kir::Block& out) {
  emit_tile_loops(tile, out).push_back(
      {kir::Accumulate{accumulator_id, tile.index, tile.roots.front().body, {}}});
}

/// Emits the reduction loops of one slice of split-K. Unrolls inner loops while the body stays
/// small.
kir::Block& GpuContraction::emit_reduction_loops(TileBody& tile, kir::Block& out) {
  const Vars vars = tile.roots.front().reduce;
  double copies = 1;
  for (const Tile& t : tiles_) copies *= static_cast<double>(t.size);
  size_t serial = vars.size();
  while (serial > 1) {
    const Dim& extent = b_.extent(vars[serial - 1]);
    copies *= estimated_extent(extent);
    if (extent.batch || copies > kMaxUnrolledFmas) break;
    --serial;
  }
  const Dim& inner = b_.extent(vars[serial - 1]);
  const bool vector_load = serial == vars.size() && !inner.batch && inner.size % kVectorTerms == 0;
  kir::Block* at = &out;
  for (size_t i = 0; i < vars.size(); ++i) {
    const auto [begin, end] =
        i == 0 ? split_bounds() : std::pair(Expr::index(0), extent_expr(b_.extent(vars[i])));
    if (vector_load && i + 1 == vars.size()) {
      const Expr step = b_.new_var(), within = b_.new_var(), four = Expr::index(kVectorTerms);
      at = &add_loop(*at, step.node().ivalue, scalar::floordiv(begin, four),
                     scalar::floordiv(end, four));
      at = &add_loop(*at, within.node().ivalue, Expr::index(0), Expr::index(kVectorTerms),
                     Kind::unroll);
      substitute(tile.roots.front(), vars[i], step * four + within);
    } else {
      at = &add_loop(*at, vars[i], begin, end, i < serial ? Kind::serial : Kind::unroll);
    }
  }
  return *at;
}

/// Returns a kernel in which each thread computes a tile of results.
kir::Kernel GpuContraction::tile_per_thread_kernel() {
  kir::Kernel kernel = b_.kernel;
  Expr count = Expr::index(splits_);
  for (int64_t v : roots_.front().out) count = count * tile_count(v);
  const Expr block = b_.new_var(), number = b_.new_var();
  kernel.block_var = block.node().ivalue;
  kernel.blocks = ceil_div(count, kBlockThreads);
  kernel.vector_width = 1;
  kernel.thread_group_size = kBlockThreads;
  const Expr begin = block * Expr::index(kBlockThreads);
  kir::Block* at = &add_loop(kernel.body, number.node().ivalue, begin,
                             min_index(count, begin + Expr::index(kBlockThreads)), Kind::vector);
  TileBody tile = bind_tile(at, number);
  kir::Accumulator acc{b_.next_accumulator++, roots_.front().acc_dtype, Combine::sum, {}, false};
  for (const Tile& t : tiles_) acc.dims.push_back(t.size);
  at->push_back({acc});
  accumulate(tile, acc.id, emit_reduction_loops(tile, *at));
  store_tile(tile, acc.id, false, *at);
  return kernel;
}

/// Returns a kernel in which a thread group computes a tile of results: its threads divide the
/// reduction dimension among themselves.
kir::Kernel GpuContraction::tile_per_thread_group_kernel() {
  kir::Kernel kernel = b_.kernel;
  const FlatRoot& sum = roots_.front();
  Expr count = Expr::index(splits_);
  for (int64_t v : sum.out) count = count * tile_count(v);
  const Expr block = b_.new_var(), term = b_.new_var();
  kernel.block_var = block.node().ivalue;
  kernel.blocks = count;
  kernel.vector_width = 1;
  kernel.thread_group_size = kGpu.lanes;
  kir::Block* at = &kernel.body;
  TileBody tile = bind_tile(at, block);
  kir::Accumulator acc{b_.next_accumulator++, sum.acc_dtype, Combine::sum, {}, true};
  for (const Tile& t : tiles_) acc.dims.push_back(t.size);
  at->push_back({acc});

  Vars order = sum.reduce;
  std::ranges::reverse(order);
  if (order.back() != lane_var_) {  // lane_var_ varies fastest, unless split-K divides it
    const auto it = std::ranges::find(order, lane_var_);
    std::rotate(order.begin(), it, it + 1);
  }
  std::vector<std::pair<int64_t, Expr>> digits;
  Expr rest = Expr::index(1);
  for (int64_t v : order) {
    digits.push_back({v, extent_expr(b_.extent(v))});
    if (v != sum.reduce.front()) rest = rest * digits.back().second;
  }
  const auto [begin, end] = split_bounds();
  kir::Block& terms = add_loop(*at, term.node().ivalue, begin * rest, end * rest, Kind::vector);
  accumulate(tile, acc.id, delinearize(b_, term, digits, terms));
  store_tile(tile, acc.id, true, *at);
  return kernel;
}

/// Stores the results of a tile or, with split-K, its partial sums.
void GpuContraction::store_tile(const TileBody& tile, int64_t accumulator_id, bool per_lane,
                                kir::Block& out) {
  const FlatRoot& sum = tile.roots.front();
  kir::Block& at = emit_tile_loops(tile, out);
  const Expr value =
      append_let(b_, read_accumulator(accumulator_id, sum.acc_dtype, tile.index, per_lane), at);
  const Expr mask = all_of(tile.in_bounds);
  if (splits_ == 1) return store_results(tile.roots, value, mask, at);
  const Expr offset = Expr::var(split_var_) * extent_expr(sum.result_elements) + sum.result_index;
  at.push_back({kir::StoreTo{partial_sums_, offset, value, mask}});
}

void GpuContraction::store_results(const std::vector<FlatRoot>& roots, const Expr& total,
                                   const Expr& mask, kir::Block& out) {
  const FlatRoot& sum = roots.front();
  const DType dtype = sum.source->op->results[0].type.dtype;
  out.push_back({kir::Let{2 * sum.id, scalar::cast(total, dtype)}});
  std::vector<kir::Stmt> stores;
  for (const FlatRoot& s : roots) {
    for (size_t i = 0; i < s.stores.size(); ++i) {
      const Expr value = s.is_reduction() ? read_let(2 * sum.id, compute_dtype(dtype))
                                          : append_let(b_, s.body, out);
      stores.push_back({kir::StoreTo{s.buffers[i], s.stores[i].second, value, mask}});
    }
  }
  out.insert(out.end(), stores.begin(), stores.end());
}

/// Returns the second kernel of split-K, which adds the partial sums of each result in the order of
/// the slices.
kir::Kernel GpuContraction::split_k_reduction_kernel() {
  kir::Kernel kernel = b_.kernel;
  const FlatRoot& sum = roots_.front();
  const Expr count = extent_expr(sum.result_elements);
  const Expr block = b_.new_var(), number = b_.new_var(), part = b_.new_var();
  kernel.name += "_finish";
  kernel.block_var = block.node().ivalue;
  kernel.blocks = ceil_div(count, kBlockThreads);
  kernel.vector_width = 1;
  kernel.thread_group_size = kBlockThreads;
  const Expr begin = block * Expr::index(kBlockThreads);
  kir::Block& each = add_loop(kernel.body, number.node().ivalue, begin,
                              min_index(count, begin + Expr::index(kBlockThreads)), Kind::vector);
  const kir::Accumulator acc{b_.next_accumulator++, sum.acc_dtype, Combine::sum, {}, false};
  each.push_back({acc});
  kir::Block& add =
      add_loop(each, part.node().ivalue, Expr::index(0), Expr::index(splits_), Kind::serial);
  add.push_back(
      {kir::Accumulate{acc.id, {}, load(partial_sums_, sum.acc_dtype, part * count + number), {}}});
  std::vector<std::pair<int64_t, Expr>> digits;
  for (size_t i = sum.out.size(); i-- > 0;) {
    digits.push_back({sum.out[i], extent_expr(b_.extent(sum.out[i]))});
  }
  kir::Block& at = delinearize(b_, number, digits, each);
  store_results(roots_, append_let(b_, read_accumulator(acc.id, sum.acc_dtype, {}, false), at), {},
                at);
  return kernel;
}

}  // namespace fluid
