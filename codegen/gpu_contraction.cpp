#include "codegen/gpu_contraction.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "codegen/schedule_contraction.h"

namespace fluid {
namespace {

using Kind = kir::For::Kind;

constexpr double kThreads = 32 * 1024;     // threads that keep a GPU busy
constexpr int64_t kGroup = 128;            // threads of a CUDA block; each computes one tile
constexpr int64_t kAccumulators = 32;      // most accumulators of a thread, in registers
constexpr int64_t kTeamAccumulators = 16;  // most accumulators that a team reduces
constexpr int64_t kTile = 8;               // largest tile size along one variable
constexpr double kMinTermsPerSplit = 64;   // fewest terms of a split-K part
constexpr double kUnrolled = 256;          // most multiply-adds in the innermost loop's body
constexpr int64_t kVectorTerms = 4;        // adjacent terms whose operands are loaded together
constexpr double kUncoalescedCost = 8;     // cost of an uncoalesced load; a coalesced load costs 1

bool depends_on(const Expr& e, int64_t var) {
  return depends(
      e, [&](const Expr& leaf) { return leaf.op() == Scalar::var && leaf.node().ivalue == var; });
}

std::vector<Expr> loads_of(const Expr& body) {
  std::vector<Expr> loads;
  for_each_node(body, [&](const Expr& e) {
    if (e.op() == Scalar::load) loads.push_back(e);
  });
  return loads;
}

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
  std::optional<std::vector<FlatSink>> sinks = sum_with_maps(b, rows);
  if (!sinks) return std::nullopt;
  c.sinks_ = *std::move(sinks);
  c.choose_lanes();
  c.choose_tiles();
  c.choose_splits();
  const bool shares = loads_of(c.sinks_.front().body).size() > 1;
  // A sum with one load per term and without split-K is left to the sweep schedule.
  return shares || c.parts_ > 1 ? std::optional(std::move(c)) : std::nullopt;
}

/// Chooses the variable that maps to adjacent threads. Along it, most loads of a term and most
/// loads and stores of a result are contiguous.
void GpuContraction::choose_lanes() {
  const FlatSink& sum = sinks_.front();
  const double terms = nominal_points(b_, sum.reduce);
  double best = -1;
  for (const Vars* vars : {&sum.out, &sum.reduce}) {
    for (int64_t v : *vars) {
      double good = 0;
      for (const FlatSink& s : sinks_) {
        good += vector_fit(b_, s, v).good / (s.is_reduction() ? 1 : terms);
      }
      good *= lane_utilization(b_.extent(v), kGpu.lanes);
      if (good <= best) continue;
      best = good;
      lanes_ = v;
      lanes_reduced_ = vars == &sum.reduce;
    }
  }
}

int64_t GpuContraction::tile_size(int64_t var) const {
  const auto tile = std::ranges::find(tiles_, var, &Tile::var);
  return tile == tiles_.end() ? 1 : tile->size;
}

Expr GpuContraction::tiles_of(int64_t var) const {
  return ceil_div(extent_expr(b_.extent(var)), tile_size(var));
}

/// Returns the cost of `load` for one term of a whole tile, in coalesced loads.
double GpuContraction::load_cost(const Expr& load, const std::vector<Tile>& tiles) const {
  const int64_t step = step_of(load, lanes_);
  double n = step <= 1 ? 1 : (step <= 4 ? 2 : kUncoalescedCost);
  for (const Tile& t : tiles) {
    if (!depends_on(load.args()[0], t.var)) continue;
    const bool together = step_of(load, t.var) == 1 && t.size % kVectorTerms == 0 &&
                          load.args().size() == 1 && !b_.extent(t.var).batch &&
                          b_.extent(t.var).size % kVectorTerms == 0;
    n *= static_cast<double>(t.size) / (together ? static_cast<double>(kVectorTerms) : 1);
  }
  return n;
}

double GpuContraction::threads(const std::vector<Tile>& tiles) const {
  double n = nominal_points(b_, sinks_.front().out);
  for (const Tile& t : tiles) {
    const double extent = nominal(b_.extent(t.var)), size = static_cast<double>(t.size);
    n *= std::ceil(extent / size) / extent;
  }
  const double terms = nominal_points(b_, sinks_.front().reduce);
  if (lanes_reduced_) n *= std::min<double>(static_cast<double>(kGpu.lanes), terms);
  return n;
}

/// Returns the cost of one multiply-add with its share of loads, where the multiply-add alone costs
/// 1. Too few threads raise the cost.
double GpuContraction::cost(const std::vector<Tile>& tiles) const {
  double products = 1, loads = 0, used = 1;
  for (const Tile& t : tiles) {
    const double extent = nominal(b_.extent(t.var)), size = static_cast<double>(t.size);
    products *= size;
    used *= extent / (std::ceil(extent / size) * size);
  }
  for (const Expr& load : loads_of(sinks_.front().body)) loads += load_cost(load, tiles);
  const double terms = nominal_points(b_, sinks_.front().reduce);
  const double most = threads(tiles) * std::max(terms / kMinTermsPerSplit, 1.0);
  return (1 + 2 * loads / products) / used / std::min(most / kThreads, 1.0);
}

void GpuContraction::choose_tiles() {
  const Vars& vars = sinks_.front().out;
  const int64_t most = lanes_reduced_ ? kTeamAccumulators : kAccumulators;
  double best = cost({});
  auto consider = [&](const std::vector<Tile>& tiles) {
    const double c = cost(tiles);
    if (c >= best - 1e-9) return;
    best = c;
    tiles_ = tiles;
  };
  for (size_t i = 0; i < vars.size(); ++i) {
    for (int64_t m = 2; m <= kTile; m *= 2) {
      consider({{vars[i], m}});
      for (size_t j = i + 1; j < vars.size(); ++j) {
        for (int64_t n = 2; n <= kTile && m * n <= most; n *= 2) {
          consider({{vars[i], m}, {vars[j], n}});
        }
      }
    }
  }
}

void GpuContraction::choose_splits() {
  const FlatSink& sum = sinks_.front();
  const double terms = nominal_points(b_, sum.reduce);
  const double wanted = std::ceil(kThreads / threads(tiles_));
  const double most = std::min(nominal(b_.extent(sum.reduce.front())), terms / kMinTermsPerSplit);
  parts_ = std::max<int64_t>(static_cast<int64_t>(std::min(wanted, most)), 1);
  if (parts_ < 4) parts_ = 1;  // too few to pay for a second kernel
}

std::vector<kir::Kernel> GpuContraction::emit() {
  const FlatSink& sum = sinks_.front();
  if (parts_ > 1) {
    Dim elements = sum.kept_size;
    elements.size *= parts_;
    sums_ = b_.scratch(sum.acc, elements);
    part_ = b_.next_var++;
  }
  std::vector<kir::Kernel> passes = {lanes_reduced_ ? terms_kernel() : results_kernel()};
  if (parts_ > 1) passes.push_back(totals_kernel());
  return passes;
}

/// Returns the bounds of the first reduced variable in the current split-K part.
std::pair<Expr, Expr> GpuContraction::split_bounds() const {
  const Expr size = extent_expr(b_.extent(sinks_.front().reduce.front()));
  if (parts_ == 1) return {Expr::index(0), size};
  const Expr length = ceil_div(size, parts_ * kVectorTerms) * Expr::index(kVectorTerms);
  const Expr begin = min_index(size, Expr::var(part_) * length);
  return {begin, min_index(size, begin + length)};
}

/// Binds all result variables to their values in tile `number`.
GpuContraction::Renamed GpuContraction::rename_tile(kir::Block*& at, const Expr& number) {
  Renamed tile{sinks_, {}, {}, {}};
  Vars order = sinks_.front().out;
  std::ranges::reverse(order);
  if (const auto it = std::ranges::find(order, lanes_); it != order.end()) {
    std::rotate(order.begin(), it, it + 1);  // the first variable varies fastest
  }
  std::vector<std::pair<int64_t, Expr>> digits;
  std::map<int64_t, Expr> numbers;
  for (int64_t v : order) {
    numbers[v] = tile_size(v) == 1 ? Expr::var(v) : b_.new_var();
    digits.push_back({numbers[v].node().ivalue, tiles_of(v)});
  }
  if (parts_ > 1) digits.push_back({part_, Expr::index(parts_)});
  at = &unpack(b_, number, digits, *at);
  for (const Tile& t : tiles_) {
    const Expr within = b_.new_var();
    tile.within.push_back(within.node().ivalue);
    tile.index.push_back(within);
    const Dim& extent = b_.extent(t.var);
    Expr place = numbers[t.var] * Expr::index(t.size) + within;
    // The last tile may overhang: its reads are clamped.
    if (extent.batch || extent.size % t.size != 0) {
      tile.inside.push_back(scalar::compare(Scalar::lt, place, extent_expr(extent)));
      place = min_index(place, extent_expr(extent) - Expr::index(1));
    }
    for (FlatSink& s : tile.sinks) rename(s, t.var, place);
  }
  return tile;
}

kir::Block& GpuContraction::tile_loops(const Renamed& tile, kir::Block& out) {
  kir::Block* at = &out;
  for (size_t i = 0; i < tiles_.size(); ++i) {
    at = &add_loop(*at, tile.within[i], Expr::index(0), Expr::index(tiles_[i].size), Kind::unroll);
  }
  return *at;
}

void GpuContraction::accumulate(const Renamed& tile, int64_t acc, kir::Block& out) {
  tile_loops(tile, out).push_back({kir::Accumulate{acc, tile.index, tile.sinks.front().body, {}}});
}

/// Emits the loops over a part's terms. Inner loops are unrolled while the body stays small.
kir::Block& GpuContraction::reduce_loops(Renamed& tile, kir::Block& out) {
  const Vars vars = tile.sinks.front().reduce;
  double copies = 1;
  for (const Tile& t : tiles_) copies *= static_cast<double>(t.size);
  size_t serial = vars.size();
  while (serial > 1) {
    const Dim& extent = b_.extent(vars[serial - 1]);
    copies *= nominal(extent);
    if (extent.batch || copies > kUnrolled) break;
    --serial;
  }
  const Dim& inner = b_.extent(vars[serial - 1]);
  const bool together = serial == vars.size() && !inner.batch && inner.size % kVectorTerms == 0;
  kir::Block* at = &out;
  for (size_t i = 0; i < vars.size(); ++i) {
    const auto [begin, end] =
        i == 0 ? split_bounds() : std::pair(Expr::index(0), extent_expr(b_.extent(vars[i])));
    if (together && i + 1 == vars.size()) {
      const Expr step = b_.new_var(), within = b_.new_var(), four = Expr::index(kVectorTerms);
      at = &add_loop(*at, step.node().ivalue, scalar::floordiv(begin, four),
                     scalar::floordiv(end, four));
      at = &add_loop(*at, within.node().ivalue, Expr::index(0), Expr::index(kVectorTerms),
                     Kind::unroll);
      rename(tile.sinks.front(), vars[i], step * four + within);
    } else {
      at = &add_loop(*at, vars[i], begin, end, i < serial ? Kind::serial : Kind::unroll);
    }
  }
  return *at;
}

/// Returns a kernel in which each thread computes a tile of results.
kir::Kernel GpuContraction::results_kernel() {
  kir::Kernel kernel = b_.kernel;
  Expr count = Expr::index(parts_);
  for (int64_t v : sinks_.front().out) count = count * tiles_of(v);
  const Expr block = b_.new_var(), number = b_.new_var();
  kernel.block_var = block.node().ivalue;
  kernel.blocks = ceil_div(count, kGroup);
  kernel.vector_width = 1;
  kernel.team = kGroup;
  const Expr begin = block * Expr::index(kGroup);
  kir::Block* at = &add_loop(kernel.body, number.node().ivalue, begin,
                             min_index(count, begin + Expr::index(kGroup)), Kind::vector);
  Renamed tile = rename_tile(at, number);
  kir::Acc acc{b_.next_acc++, sinks_.front().acc, Combine::sum, {}, false};
  for (const Tile& t : tiles_) acc.dims.push_back(t.size);
  at->push_back({acc});
  accumulate(tile, acc.id, reduce_loops(tile, *at));
  finish_tile(tile, acc.id, false, *at);
  return kernel;
}

/// Returns a kernel in which a team shares the terms of a tile of results.
kir::Kernel GpuContraction::terms_kernel() {
  kir::Kernel kernel = b_.kernel;
  const FlatSink& sum = sinks_.front();
  Expr count = Expr::index(parts_);
  for (int64_t v : sum.out) count = count * tiles_of(v);
  const Expr block = b_.new_var(), term = b_.new_var();
  kernel.block_var = block.node().ivalue;
  kernel.blocks = count;
  kernel.vector_width = 1;
  kernel.team = kGpu.lanes;
  kir::Block* at = &kernel.body;
  Renamed tile = rename_tile(at, block);
  kir::Acc acc{b_.next_acc++, sum.acc, Combine::sum, {}, true};
  for (const Tile& t : tiles_) acc.dims.push_back(t.size);
  at->push_back({acc});

  Vars order = sum.reduce;
  std::ranges::reverse(order);
  if (order.back() != lanes_) {  // the first variable varies fastest; split-K cuts the last
    const auto it = std::ranges::find(order, lanes_);
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
  accumulate(tile, acc.id, unpack(b_, term, digits, terms));
  finish_tile(tile, acc.id, true, *at);
  return kernel;
}

/// Stores a tile's results, or with split-K its partial sums.
void GpuContraction::finish_tile(const Renamed& tile, int64_t acc, bool lanes, kir::Block& out) {
  const FlatSink& sum = tile.sinks.front();
  kir::Block& at = tile_loops(tile, out);
  const Expr value = name_value(b_, read_acc(acc, sum.acc, tile.index, lanes), at);
  const Expr mask = all_of(tile.inside);
  if (parts_ == 1) return store_results(tile.sinks, value, mask, at);
  const Expr place = Expr::var(part_) * extent_expr(sum.kept_size) + sum.kept;
  at.push_back({kir::StoreTo{sums_, place, value, mask}});
}

void GpuContraction::store_results(const std::vector<FlatSink>& sinks, const Expr& total,
                                   const Expr& mask, kir::Block& out) {
  const FlatSink& sum = sinks.front();
  const DType dtype = sum.source->op->results[0].type.dtype;
  out.push_back({kir::Let{2 * sum.id, scalar::cast(total, dtype)}});
  std::vector<kir::Stmt> stores;
  for (const FlatSink& s : sinks) {
    for (size_t i = 0; i < s.stores.size(); ++i) {
      const Expr value = s.is_reduction() ? let_node(2 * sum.id, compute_dtype(dtype))
                                          : name_value(b_, s.body, out);
      stores.push_back({kir::StoreTo{s.buffers[i], s.stores[i].second, value, mask}});
    }
  }
  out.insert(out.end(), stores.begin(), stores.end());
}

/// Returns a kernel that adds the partial sums of each result, in the order of the parts.
kir::Kernel GpuContraction::totals_kernel() {
  kir::Kernel kernel = b_.kernel;
  const FlatSink& sum = sinks_.front();
  const Expr count = extent_expr(sum.kept_size);
  const Expr block = b_.new_var(), number = b_.new_var(), part = b_.new_var();
  kernel.name += "_finish";
  kernel.block_var = block.node().ivalue;
  kernel.blocks = ceil_div(count, kGroup);
  kernel.vector_width = 1;
  kernel.team = kGroup;
  const Expr begin = block * Expr::index(kGroup);
  kir::Block& each = add_loop(kernel.body, number.node().ivalue, begin,
                              min_index(count, begin + Expr::index(kGroup)), Kind::vector);
  const kir::Acc acc{b_.next_acc++, sum.acc, Combine::sum, {}, false};
  each.push_back({acc});
  kir::Block& add =
      add_loop(each, part.node().ivalue, Expr::index(0), Expr::index(parts_), Kind::serial);
  add.push_back({kir::Accumulate{acc.id, {}, load(sums_, sum.acc, part * count + number), {}}});
  std::vector<std::pair<int64_t, Expr>> digits;
  for (size_t i = sum.out.size(); i-- > 0;) {
    digits.push_back({sum.out[i], extent_expr(b_.extent(sum.out[i]))});
  }
  kir::Block& at = unpack(b_, number, digits, each);
  store_results(sinks_, name_value(b_, read_acc(acc.id, sum.acc, {}, false), at), {}, at);
  return kernel;
}

}  // namespace fluid
