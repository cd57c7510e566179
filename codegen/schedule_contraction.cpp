#include "codegen/schedule_contraction.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace fluid {
namespace {

using Kind = kir::For::Kind;

// Minimum number of independent multiply-adds in flight, as a fraction of Processor::accumulators.
// Fewer would not hide the latency of a multiply-add.
constexpr double kMinInFlight = 1.0 / 3;
// Cost of a broadcast load. Less than 1, the cost of a multiply-add, because the load folds into
// the multiply-add.
constexpr double kBroadcastCost = 0.5;
constexpr double kGatherCost = 16;
// Maximum cost per multiply-add. At a higher cost, the row-wise schedule (Sweep) is used.
constexpr double kMaxContractionCost = 3;
// Minimum length of the sum; shorter sums use the row-wise schedule (Sweep).
constexpr double kMinContractionTerms = 9;
// Number of results that are assumed to share a load, see shared_cost(). Used only if no vector
// variable is acceptable at the full cost of the loads. For example, a depthwise convolution of
// channels-last images gathers the filters.
constexpr double kResultsPerSharedLoad = 8;
// Maximum number of multiply-adds in the body of the innermost loop.
constexpr double kMaxUnrolledProducts = 300;
// Maximum extent of an unrolled reduction loop. Covers the kernel sizes of most convolutions.
constexpr int64_t kMaxUnrolledExtent = 8;
constexpr double kBlockProducts = 200e3;
// Tile size for the remainder of a tiled variable whose extent depends on the batch size. Used only
// if full tiles are larger.
constexpr int64_t kRemainderTile = 4;
// Maximum number of vector accumulators of a tile with several vectors along the vector variable.
constexpr int64_t kMaxParallelAccumulators = 16;
constexpr int64_t kChunk = 256;  // tile size along the vector variable
// Maximum bytes of the operands that a strip of the reduction reads, so that they fit in the L1
// cache.
constexpr double kStripBytes = 20e3;
// Maximum number of vector accumulators in memory: 40 KiB of stack.
constexpr int64_t kMaxMemoryVectors = 640;
constexpr double kMinBlocks = 16;  // minimum number of blocks, so that all threads have work

/// Returns the cost of one access at `offset` if `vector_var` is vectorized. A multiply-add costs
/// 1.
double access_cost(const Expr& offset, int64_t vector_var) {
  if (!depends_on(offset, vector_var)) return kBroadcastCost;
  const std::optional<Affine> affine = as_affine(offset);
  const int64_t stride = affine ? std::abs(affine->coefficient(vector_var)) : INT64_MAX;
  if (stride == 1) return 1;
  return stride <= 4 ? static_cast<double>(stride) : kGatherCost;
}

std::vector<Expr> load_offsets(const Expr& body) {
  std::vector<Expr> offsets;
  for_each_node(body, [&](const Expr& e) {
    if (e.op() == ScalarOp::load) offsets.push_back(e.args()[0]);
  });
  return offsets;
}

}  // namespace

std::optional<std::vector<FlatRoot>> match_sum_with_epilogue(KernelBuilder& b, Vars& rows) {
  if (b.group.parts.size() != 1) return std::nullopt;
  const GroupPart& part = b.group.parts.front();
  for (size_t i = 0; i < part.roots.size(); ++i) {
    const FusionRoot& s = b.group.roots[static_cast<size_t>(part.roots[i])];
    const bool sum = s.combine == Combine::sum && is_float(s.body.dtype());
    if (s.in_finish_phase || s.reduces_rows || (i == 0 ? !sum : s.combine.has_value()))
      return std::nullopt;
  }
  rows = part.rows;
  std::vector<FlatRoot> roots;
  for (int id : part.roots) {
    roots.push_back(
        flatten(b, id, [](const Expr& let) { return read_let(let.node().ivalue, let.dtype()); }));
    if (!roots.back().checks.empty()) return std::nullopt;
  }
  collapse_vars(b, roots, rows);
  const FlatRoot& sum = roots.front();
  for (const FlatRoot& s : roots) {
    if (!without(s.out, rows).empty() || s.out.size() != sum.out.size()) return std::nullopt;
  }
  if (sum.reduce.empty() || sum.out.empty()) return std::nullopt;
  if (estimated_trip_count(b, sum.reduce) < kMinContractionTerms) return std::nullopt;
  return roots;
}

void emit_sum_results(KernelBuilder& b, const std::vector<FlatRoot>& roots, int64_t accumulator_id,
                      const std::vector<Expr>& index, bool per_lane, kir::Block& out) {
  const FlatRoot& sum = roots.front();
  const DType dtype = sum.source->op->results[0].type.dtype;
  const Expr total =
      scalar::cast(read_accumulator(accumulator_id, sum.acc_dtype, index, per_lane), dtype);
  out.push_back({kir::Let{2 * sum.id, total}});
  std::vector<kir::Stmt> stores;
  for (const FlatRoot& s : roots) {
    for (size_t i = 0; i < s.stores.size(); ++i) {
      const Expr value = s.is_reduction() ? read_let(2 * sum.id, compute_dtype(dtype))
                                          : append_let(b, s.body, out);
      stores.push_back({kir::StoreTo{s.buffers[i], s.stores[i].second, value, {}}});
    }
  }
  out.insert(out.end(), stores.begin(), stores.end());
}

std::optional<Contraction> Contraction::match(KernelBuilder& b) {
  Contraction c(b);
  std::optional<std::vector<FlatRoot>> roots = match_sum_with_epilogue(b, c.rows_);
  if (!roots) return std::nullopt;
  c.roots_ = *std::move(roots);
  if (!c.choose_vector_var(false) && !c.choose_vector_var(true)) return std::nullopt;
  c.choose_tiles();
  c.choose_vars_accumulated_in_memory();
  return c;
}

/// Returns the operand loads of one product, with their costs if `vector_var` is vectorized.
std::vector<Contraction::OperandLoad> Contraction::operand_loads(int64_t vector_var) const {
  std::vector<OperandLoad> loads;
  for (const Expr& offset : load_offsets(roots_.front().body)) {
    loads.push_back({offset, access_cost(offset, vector_var)});
  }
  return loads;
}

/// Returns the cost, per product, of the stores of a result and the loads of its epilogue, if
/// `vector_var` is vectorized.
double Contraction::result_access_cost(int64_t vector_var) const {
  double cost = 0;
  for (const FlatRoot& s : roots_) {
    for (const auto& [result, offset] : s.stores) cost += access_cost(offset, vector_var);
    if (s.is_reduction()) continue;
    for (const Expr& offset : load_offsets(s.body)) cost += access_cost(offset, vector_var);
  }
  return cost / estimated_trip_count(b_, roots_.front().reduce);
}

/// Returns the cost of `load` per product, divided by kResultsPerSharedLoad if that many results
/// share the load. They share it if it does not depend on some result variable (other than
/// `vector_var`) with at least kResultsPerSharedLoad values.
double Contraction::shared_cost(const OperandLoad& load, int64_t vector_var) const {
  const bool shared = std::ranges::any_of(roots_.front().out, [&](int64_t v) {
    return v != vector_var && !depends_on(load.offset, v) &&
           estimated_extent(b_.extent(v)) >= kResultsPerSharedLoad;
  });
  return shared ? load.cost / kResultsPerSharedLoad : load.cost;
}

/// Chooses the vector variable with the lowest cost per product. Returns false if no cost is below
/// kMaxContractionCost, or if a product has fewer than two operand loads. `share_loads`: whether to
/// use shared_cost() instead of the full cost of a load.
bool Contraction::choose_vector_var(bool share_loads) {
  const FlatRoot& sum = roots_.front();
  Vars candidates = sum.out;
  candidates.insert(candidates.end(), sum.reduce.begin(), sum.reduce.end());
  double best = std::numeric_limits<double>::infinity();
  for (int64_t v : candidates) {
    const bool reduced = contains(sum.reduce, v);
    double cost = reduced ? 0.2 : 0;
    bool varies = false;
    for (const OperandLoad& load : operand_loads(v)) {
      cost += (share_loads ? shared_cost(load, v) : load.cost) / 2;
      varies = varies || depends_on(load.offset, v);
    }
    cost /= lane_utilization(b_.extent(v));
    if (!varies || cost >= kMaxContractionCost) continue;
    cost += result_access_cost(v);
    if (cost < best) {
      best = cost;
      vector_ = v;
      lanes_reduced_ = reduced;
    }
  }
  return vector_ >= 0 && operand_loads(vector_).size() >= 2;
}

double Contraction::tile_cost(const std::vector<OperandLoad>& loads, const Tile& a,
                              const Tile& b) const {
  double loaded = 0;
  for (const OperandLoad& load : loads) {
    double n = load.cost;
    for (const Tile& t : {a, b}) {
      if (t.var >= 0 && depends_on(load.offset, t.var)) n *= static_cast<double>(t.size);
    }
    loaded += n;
  }
  double use = 1;
  for (const Tile& t : {a, b}) {
    if (t.var < 0) continue;
    const double n = estimated_extent(b_.extent(t.var));
    const auto size = static_cast<double>(t.size);
    use *= n / (std::ceil(n / size) * size);
  }
  const auto products = static_cast<double>(a.size * b.size);
  const double in_flight = kMinInFlight * static_cast<double>(b_.processor.accumulators);
  return (std::max({products, loaded, in_flight}) + 0.1 * loaded) / products / use;
}

void Contraction::choose_tiles() {
  const std::vector<OperandLoad> loads = operand_loads(vector_);
  const Vars vars = without(roots_.front().out, {vector_});
  const int64_t accumulators = b_.processor.accumulators;
  auto largest = [&](int64_t v) {
    const Dim& d = b_.extent(v);
    return d.batch ? accumulators : std::min(d.size, accumulators);
  };
  double best = tile_cost(loads, {}, {});
  auto consider = [&](const Tile& a, const Tile& b) {
    const double cost = tile_cost(loads, a, b);
    // Breaks ties in favour of tiles along the innermost variables, because their loads are
    // contiguous.
    if (cost > best + 1e-9) return;
    best = cost;
    tiles_ = {a};
    if (b.var >= 0) tiles_.push_back(b);
  };
  for (size_t i = 0; i < vars.size(); ++i) {
    for (int64_t m = 2; m <= largest(vars[i]); ++m) {
      consider({vars[i], m}, {});
      for (size_t j = i + 1; j < vars.size(); ++j) {
        const int64_t most = std::min(largest(vars[j]), accumulators / m);
        for (int64_t n = 2; n <= most; ++n) consider({vars[i], m}, {vars[j], n});
      }
    }
  }
}

/// Returns the bytes of the distinct operand elements that a tile reads in the loops over `vars`.
double Contraction::operand_bytes(const Vars& vars) const {
  double bytes = 0;
  for_each_node(roots_.front().body, [&](const Expr& e) {
    if (e.op() != ScalarOp::load) return;
    double n = static_cast<double>(size_of(e.dtype()));
    for (int64_t v : vars) {
      if (depends_on(e.args()[0], v)) n *= estimated_extent(b_.extent(v));
    }
    for (const Tile& t : tiles_) {
      if (depends_on(e.args()[0], t.var)) n *= static_cast<double>(t.size);
    }
    bytes += n;
  });
  return bytes;
}

/// Chooses the result variables whose accumulators are in memory, for example those of the filter
/// window in a filter gradient. The results along these variables read the same operands, which do
/// not fit in the cache. One block therefore computes all these results and divides the reduction
/// into strips whose operands fit in the cache.
void Contraction::choose_vars_accumulated_in_memory() {
  const FlatRoot& sum = roots_.front();
  const Vars reduced = without(sum.reduce, {vector_});
  if (!lanes_reduced_ || reduced.empty()) return;
  const double once = operand_bytes(without(sum.reduce, {reduced.front()}));
  if (once * estimated_extent(b_.extent(reduced.front())) <= kStripBytes) return;
  double blocks = 1;
  int64_t vectors = 1;
  for (int64_t v : sum.out) {
    blocks *= std::ceil(estimated_extent(b_.extent(v)) / static_cast<double>(tile_size(v)));
  }
  for (const Tile& t : tiles_) vectors *= t.size;
  for (size_t i = sum.out.size(); i-- > 0;) {
    const int64_t v = sum.out[i];
    const Dim& extent = b_.extent(v);
    if (tile_size(v) > 1 || extent.batch) break;
    vectors *= extent.size;
    blocks /= static_cast<double>(extent.size);
    if (vectors > kMaxMemoryVectors || blocks < kMinBlocks) break;
    vars_accumulated_in_memory_.insert(vars_accumulated_in_memory_.begin(), v);
  }
  strip_ = std::max<int64_t>(static_cast<int64_t>(kStripBytes / once), 1);
}

int64_t Contraction::tile_size(int64_t var) const {
  if (var == vector_) return kChunk;
  for (const Tile& t : tiles_) {
    if (t.var == var) return t.size;
  }
  return 1;
}

Expr Contraction::tile_count(int64_t var) const {
  return ceil_div(extent_expr(b_.extent(var)), tile_size(var));
}

void Contraction::emit() {
  const Expr block = b_.new_var();
  b_.kernel.block_var = block.node().ivalue;
  const Vars vars = without(roots_.front().out, vars_accumulated_in_memory_);
  Expr count = Expr::index(1);
  double products = estimated_trip_count(b_, roots_.front().reduce) *
                    estimated_trip_count(b_, vars_accumulated_in_memory_);
  for (int64_t v : vars) {
    count = count * tile_count(v);
    products *= std::min(estimated_extent(b_.extent(v)), static_cast<double>(tile_size(v)));
  }
  const auto per = static_cast<int64_t>(std::max(kBlockProducts / products, 1.0));
  b_.kernel.blocks = ceil_div(count, per);
  b_.kernel.flops_per_block = 2 * products * static_cast<double>(per);
  const Expr begin = block * Expr::index(per);
  const Expr r = b_.new_var();
  kir::Block* at =
      &add_loop(b_.kernel.body, r.node().ivalue, begin, min_index(count, begin + Expr::index(per)));
  Expr rest = r;
  std::map<int64_t, Expr> tile_indices;
  for (size_t i = vars.size(); i-- > 0;) {
    const Expr tiles = tile_count(vars[i]);
    const bool whole = tile_size(vars[i]) == 1;
    const Expr number = whole ? Expr::var(vars[i]) : b_.new_var();
    at = &bind_var(*at, number.node().ivalue, i == 0 ? rest : scalar::mod(rest, tiles));
    rest = scalar::floordiv(rest, tiles);
    tile_indices[vars[i]] = number;
  }
  if (!lanes_reduced_) {
    const Expr size = extent_expr(b_.extent(vector_));
    const bool one = is_constant(tile_count(vector_), 1);
    const Expr begin = one ? Expr::index(0) : tile_indices.at(vector_) * Expr::index(kChunk);
    chunk_ = {vector_, begin, one ? size : min_index(size, begin + Expr::index(kChunk))};
  } else {
    chunk_ = {vector_, Expr::index(0), extent_expr(b_.extent(vector_))};
  }
  emit_full_and_partial_tiles(roots_, 0, {}, tile_indices, *at);
}

/// Emits separate code for full tiles and for the remainder along each tiled variable.
void Contraction::emit_full_and_partial_tiles(const std::vector<FlatRoot>& roots, size_t next,
                                              Vars tile_vars,
                                              const std::map<int64_t, Expr>& tile_indices,
                                              kir::Block& out) {
  if (next == tiles_.size()) {
    const int64_t vectors = concurrent_vectors(tile_vars);
    if (vectors > 1) return emit_wide_tiles(roots, tile_vars, vectors, out);
    return emit_tile(roots, tile_vars, chunk_, out);
  }
  const Tile& tile = tiles_[next];
  const Dim& extent = b_.extent(tile.var);
  const Expr number = tile_indices.at(tile.var);
  auto unrolled = [&](int64_t size, const Expr& begin, kir::Block& block) {
    const Expr base = b_.new_var();
    const Expr within = b_.new_var();
    sizes_[within.node().ivalue] = size;
    kir::Block& body = bind_var(block, base.node().ivalue, begin);
    std::vector<FlatRoot> renamed = roots;
    for (FlatRoot& s : renamed) substitute(s, tile.var, base + within);
    Vars inner = tile_vars;
    inner.push_back(within.node().ivalue);
    emit_full_and_partial_tiles(renamed, next + 1, inner, tile_indices, body);
  };
  const Expr begin = number * Expr::index(tile.size);
  const int64_t left = extent.batch ? -1 : extent.size % tile.size;
  if (left == 0) return unrolled(tile.size, begin, out);
  const Expr full = scalar::floordiv(extent_expr(extent), Expr::index(tile.size));
  unrolled(tile.size, begin, add_if(out, scalar::compare(ScalarOp::lt, number, full)));
  kir::Block& rest = add_if(out, scalar::compare(ScalarOp::ge, number, full));
  if (left > 0) return unrolled(left, begin, rest);
  Expr first = begin;
  if (tile.size > kRemainderTile) {
    const Expr some = b_.new_var(), few = Expr::index(kRemainderTile);
    const Expr count = scalar::floordiv(extent_expr(extent) - begin, few);
    unrolled(kRemainderTile, begin + some * few,
             add_loop(rest, some.node().ivalue, Expr::index(0), count));
    first = begin + count * few;
  }
  kir::Block& single = add_loop(rest, tile.var, first, extent_expr(extent));
  emit_full_and_partial_tiles(roots, next + 1, tile_vars, tile_indices, single);
}

/// Returns the number of vectors along the vector variable that a tile accumulates at once. A tile
/// with few results uses several vectors, so that loads are contiguous and more multiply-adds are
/// in flight.
int64_t Contraction::concurrent_vectors(const Vars& tile_vars) const {
  if (lanes_reduced_) return 1;
  int64_t results = 1;
  for (int64_t v : tile_vars) results *= sizes_.at(v);
  for (const OperandLoad& load : operand_loads(vector_)) {
    if (load.cost > 1) return 1;
  }
  const auto columns = std::min(estimated_extent(b_.extent(vector_)), static_cast<double>(kChunk));
  const int64_t accumulators = std::min(kMaxParallelAccumulators, b_.processor.accumulators);
  int64_t vectors = 1;
  while (2 * vectors * results <= accumulators &&
         static_cast<double>(2 * vectors * vector_lanes()) <= columns) {
    vectors *= 2;
  }
  return vectors;
}

int64_t Contraction::vector_lanes() const {
  return kir::kVectorBytes / size_of(roots_.front().acc_dtype);
}

/// Emits code for the range `chunk_` of the vector variable. Uses tiles that are `vectors` vectors
/// wide, then one vector loop for the remainder.
void Contraction::emit_wide_tiles(const std::vector<FlatRoot>& roots, const Vars& tile_vars,
                                  int64_t vectors, kir::Block& out) {
  const Expr width = Expr::index(vectors * vector_lanes());
  const Expr tile = b_.new_var(), begin = b_.new_var(), vector = b_.new_var();
  const Expr lane = b_.new_var();
  const Expr tiles = scalar::floordiv(chunk_.end - chunk_.begin, width);
  kir::Block& body = bind_var(add_loop(out, tile.node().ivalue, Expr::index(0), tiles),
                              begin.node().ivalue, chunk_.begin + tile * width);
  sizes_[vector.node().ivalue] = vectors;
  std::vector<FlatRoot> renamed = roots;
  for (FlatRoot& s : renamed) {
    substitute(s, vector_, begin + vector * Expr::index(vector_lanes()) + lane);
  }
  Vars wide = tile_vars;
  wide.push_back(vector.node().ivalue);
  const Expr lanes = Expr::index(vector_lanes());
  emit_tile(renamed, wide, {lane.node().ivalue, Expr::index(0), lanes}, body);
  const Dim& extent = b_.extent(vector_);
  if (!extent.batch && extent.size % (vectors * vector_lanes()) == 0) return;
  emit_tile(roots, tile_vars, {vector_, chunk_.begin + tiles * width, chunk_.end}, out);
}

kir::Block& Contraction::emit_tile_loops(const Vars& tile_vars, kir::Block& out) {
  kir::Block* at = &out;
  for (int64_t v : tile_vars) {
    at = &add_loop(*at, v, Expr::index(0), Expr::index(sizes_.at(v)), Kind::unroll);
  }
  return *at;
}

/// Emits the reduction loops. Unrolls inner loops while the body stays small.
kir::Block& Contraction::emit_reduction_loops(const Vars& vars, double copies, kir::Block& out) {
  size_t serial = vars.size();
  while (!lanes_reduced_ && serial > 0) {
    const Dim& extent = b_.extent(vars[serial - 1]);
    copies *= estimated_extent(extent);
    const bool is_long = extent.batch || extent.size > kMaxUnrolledExtent;
    if (is_long || copies > kMaxUnrolledProducts) break;
    --serial;
  }
  kir::Block* at = &out;
  for (size_t i = 0; i < vars.size(); ++i) {
    at = &add_loop(*at, vars[i], Expr::index(0), extent_expr(b_.extent(vars[i])),
                   i < serial ? Kind::serial : Kind::unroll);
  }
  return *at;
}

kir::Block& Contraction::emit_memory_loops(kir::Block& out) {
  kir::Block* at = &out;
  for (int64_t v : vars_accumulated_in_memory_) {
    at = &add_loop(*at, v, Expr::index(0), extent_expr(b_.extent(v)));
  }
  return *at;
}

void Contraction::emit_tile(const std::vector<FlatRoot>& roots, const Vars& tile_vars,
                            const VectorLoop& lanes, kir::Block& out) {
  const FlatRoot& sum = roots.front();
  kir::Accumulator acc{b_.next_accumulator++, sum.acc_dtype, Combine::sum, {}, lanes_reduced_};
  std::vector<Expr> index;
  double copies = 1;
  for (int64_t v : tile_vars) {
    acc.dims.push_back(sizes_.at(v));
    index.push_back(Expr::var(v));
    copies *= static_cast<double>(sizes_.at(v));
  }
  for (int64_t v : vars_accumulated_in_memory_) {
    acc.dims.push_back(b_.extent(v).size);
    index.push_back(Expr::var(v));
  }
  kir::Block* at = &out;
  if (!lanes_reduced_) at = &add_loop(*at, lanes.var, lanes.begin, lanes.end, Kind::vector);
  at->push_back({acc});
  kir::Block* point = at;
  Vars reduced = without(sum.reduce, {vector_});
  if (!vars_accumulated_in_memory_.empty()) {
    const int64_t first = reduced.front();
    const Expr size = extent_expr(b_.extent(first));
    const Expr strip = b_.new_var();
    point = &add_loop(*point, strip.node().ivalue, Expr::index(0), ceil_div(size, strip_));
    const Expr begin = strip * Expr::index(strip_);
    const Expr end = min_index(size, begin + Expr::index(strip_));
    point = &add_loop(emit_memory_loops(*point), first, begin, end);
    reduced.erase(reduced.begin());
    at = &emit_memory_loops(*at);
  }
  point = &emit_reduction_loops(reduced, copies, *point);
  if (lanes_reduced_) point = &add_loop(*point, lanes.var, lanes.begin, lanes.end, Kind::vector);
  emit_tile_loops(tile_vars, *point).push_back({kir::Accumulate{acc.id, index, sum.body, {}}});
  emit_sum_results(b_, roots, acc.id, index, lanes_reduced_, emit_tile_loops(tile_vars, *at));
}

}  // namespace fluid
