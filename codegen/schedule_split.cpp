#include "codegen/schedule_split.h"

#include <algorithm>
#include <cmath>

#include "codegen/schedule_contraction.h"

namespace fluid {
namespace {

using Kind = kir::For::Kind;

// Minimum fraction of lanes in use in the vectorized loop.
constexpr double kMinUtilization = 0.5;
// Number of values of the vectorized variable per block.
constexpr int64_t kChannels = 256;
// Maximum bytes of the operands that a strip reads for one vector, so that they fit in the L1
// cache.
constexpr int64_t kSplitStripBytes = 20 * 1024;
// Maximum size of the partial results, as a fraction of the size of the operands.
constexpr double kPartialsShare = 1.0 / 8;
// Minimum number of slices of the reduction at the nominal batch size. Fewer slices would leave
// threads of large machines idle.
constexpr double kMinSplits = 16;
// Maximum number of slices of the reduction. Kernel::finish, which runs in one thread, reads the
// partial results of all slices.
constexpr double kMaxSplits = 32;
constexpr double kMinBlockProducts = 200e3;
// Maximum number of multiply-adds in an unrolled loop over a reduction variable.
constexpr double kMaxUnrolledBorder = 64;

/// Divides `extent` elements evenly into the fewest tiles of at most `most` elements. Returns the
/// size of a tile.
int64_t balanced(int64_t extent, int64_t most) {
  most = std::max<int64_t>(most, 1);
  return ceil_of(extent, ceil_of(extent, most));
}

}  // namespace

std::optional<SplitContraction> SplitContraction::match(KernelBuilder& b) {
  if (b.group.parts.size() != 1) return std::nullopt;
  const GroupPart& part = b.group.parts.front();
  const auto is_map = [&](int id) {
    return !b.group.roots[static_cast<size_t>(id)].combine.has_value();
  };
  if (part.roots.empty() || is_map(part.roots.front())) return std::nullopt;
  if (!std::all_of(part.roots.begin() + 1, part.roots.end(), is_map)) return std::nullopt;
  SplitContraction c(b);
  c.flatten_epilogue(part);
  Vars rows;
  std::optional<std::vector<FlatRoot>> roots = match_sum_with_epilogue(b, rows);
  if (!roots) return std::nullopt;
  c.sum_ = std::move(roots->front());
  const auto is_empty = [&](int64_t v) { return b.extent(v).is(0); };
  if (std::ranges::any_of(c.sum_.out, is_empty)) return std::nullopt;
  if (std::ranges::any_of(c.sum_.reduce, is_empty)) return std::nullopt;
  if (c.sum_.result_elements.batch || c.sum_.body.op() != ScalarOp::product) return std::nullopt;
  if (!c.choose_vector_var() || !c.choose_partials()) return std::nullopt;
  c.choose_strips();
  c.choose_tiles();
  c.find_interior();
  return c;
}

/// Flattens the epilogue with new loop variables, so that collapse_vars() may merge them. The
/// epilogue runs in Kernel::finish.
void SplitContraction::flatten_epilogue(const GroupPart& part) {
  if (part.roots.size() == 1) return;
  const FusionRoot& sum = b_.group.roots[static_cast<size_t>(part.roots.front())];
  total_ = b_.add_scratch_buffer(compute_dtype(sum.op->results[0].type.dtype),
                                 element_count(b_, sum.out));
  std::map<int64_t, int64_t> fresh;
  for (size_t i = 1; i < part.roots.size(); ++i) {
    epilogue_.push_back(flatten(b_, part.roots[i], [&](const Expr& let) {
      return load_reduction_result(b_.group, let, total_);
    }));
    const Vars vars = epilogue_.back().out;
    for (int64_t v : vars) {
      if (!fresh.contains(v)) {
        fresh[v] = b_.next_var++;
        b_.extents.resize(static_cast<size_t>(b_.next_var));
        b_.extents.back() = b_.extent(v);
      }
      substitute(epilogue_.back(), v, Expr::var(fresh.at(v)));
    }
  }
  Vars rows;
  collapse_vars(b_, epilogue_, rows);
}

/// Chooses the result variable along which all loads are contiguous or broadcast. Returns false if
/// there is no such variable.
bool SplitContraction::choose_vector_var() {
  const std::vector<Expr> loads = loads_of(sum_.body);
  for (int64_t v : sum_.out) {
    bool walks = false, fits = true;
    for (const Expr& load : loads) {
      const std::optional<Affine> affine = as_affine(load.args()[0]);
      const int64_t stride = affine ? affine->coefficient(v) : -1;
      fits = fits && (stride == 0 || stride == 1);
      walks = walks || stride == 1;
    }
    if (!fits || !walks || lane_utilization(b_.extent(v)) < kMinUtilization) continue;
    vector_ = v;
    others_ = without(sum_.out, {v});
    return loads.size() >= 2;
  }
  return false;
}

/// Chooses the maximum number of slices of the reduction, so that the partial results are small.
/// Returns false if the maximum is less than kMinSplits.
bool SplitContraction::choose_partials() {
  double operands = 0;
  for (size_t i = 0; i < b_.group.inputs.size(); ++i) {
    const bool read = std::ranges::any_of(loads_of(sum_.body), [&](const Expr& load) {
      return load.node().ivalue == static_cast<int64_t>(i);
    });
    const kir::Buffer& buffer = b_.kernel.buffers[i];
    if (read)
      operands += estimated_extent(buffer.elements) * static_cast<double>(size_of(buffer.dtype));
  }
  const double results =
      estimated_extent(sum_.result_elements) * static_cast<double>(size_of(sum_.acc_dtype));
  const double splits = std::min(kPartialsShare * operands / results, kMaxSplits);
  max_splits_ = static_cast<int64_t>(splits);
  return splits >= kMinSplits;
}

/// Chooses the reduction variable to divide into strips: the outermost one whose inner loops read
/// operands that fit in the cache.
void SplitContraction::choose_strips() {
  const auto loads = static_cast<int64_t>(loads_of(sum_.body).size());
  const int64_t limit = kSplitStripBytes / (kir::kVectorBytes * loads);
  int64_t inner = 1;
  strip_var_ = sum_.reduce.size() - 1;
  while (strip_var_ > 0) {
    const Dim& extent = b_.extent(sum_.reduce[strip_var_]);
    if (extent.batch || inner * extent.size > limit) break;
    inner *= extent.size;
    --strip_var_;
  }
  const auto extent = static_cast<int64_t>(estimated_extent(b_.extent(sum_.reduce[strip_var_])));
  strip_ = balanced(extent, limit / inner);
}

/// Chooses the tile sizes, innermost variables first, so that the accumulators of a tile fit in
/// registers.
void SplitContraction::choose_tiles() {
  int64_t left = b_.processor.accumulators;
  tile_sizes_.resize(others_.size());
  for (size_t i = others_.size(); i-- > 0;) {
    tile_sizes_[i] = balanced(b_.extent(others_[i]).size, left);
    left /= tile_sizes_[i];
  }
}

/// Finds the interior: the range of the innermost reduction variable in which the bounds
/// comparisons of all load masks are true for every result. Loads in the interior need no masks
/// along the innermost axis.
void SplitContraction::find_interior() {
  const int64_t inner = sum_.reduce.back();
  const Dim& extent = b_.extent(inner);
  if (extent.batch || strip_var_ + 1 == sum_.reduce.size()) return;
  int64_t begin = 0, end = extent.size;
  for_each_node(sum_.body, [&](const Expr& e) {
    if (e.op() != ScalarOp::ge && e.op() != ScalarOp::lt) return;
    const std::optional<Affine> affine = as_affine(e.args()[0]);
    const int64_t coef = affine ? affine->coefficient(inner) : 0;
    if (coef <= 0 || !is_constant(e.args()[1])) return;
    int64_t least = affine->offset, most = affine->offset;
    for (const auto& [var, c] : affine->terms) {
      if (b_.extent(var).batch) return;
      if (var != inner) (c > 0 ? most : least) += c * (b_.extent(var).size - 1);
    }
    const int64_t bound = e.args()[1].node().ivalue;
    if (e.op() == ScalarOp::ge) {
      begin = std::max(begin, ceil_of(std::max<int64_t>(bound - least, 0), coef));
    } else {
      end = std::min(end, bound - most <= 0 ? 0 : ceil_of(bound - most, coef));
    }
  });
  if (begin >= end) return;
  interior_begin_ = begin;
  interior_end_ = end;
}

/// Returns the offset of the current result in the buffer of partial results, for slice `split`.
/// The vectorized variable is innermost.
Expr SplitContraction::partial_offset(const Expr& split) const {
  return (split * extent_expr(element_count(b_, others_)) + row_major_index(b_, others_)) *
             extent_expr(b_.extent(vector_)) +
         Expr::var(vector_);
}

void SplitContraction::emit() {
  const int64_t channels = b_.extent(vector_).size;
  const int64_t chunks = ceil_of(channels, kChannels);
  const Vars outer(sum_.reduce.begin(), sum_.reduce.begin() + static_cast<int64_t>(strip_var_));
  const int64_t strip_var = sum_.reduce[strip_var_];
  const Expr strips = ceil_div(extent_expr(b_.extent(strip_var)), strip_);
  const Expr items = trip_count(b_, outer) * strips;

  double products = static_cast<double>(std::min(channels, kChannels)) *
                    estimated_trip_count(b_, others_) * static_cast<double>(strip_);
  for (size_t i = strip_var_ + 1; i < sum_.reduce.size(); ++i) {
    products *= estimated_extent(b_.extent(sum_.reduce[i]));
  }
  const auto least = static_cast<int64_t>(std::max(kMinBlockProducts / products, 1.0));
  const Expr per = scalar::max(Expr::index(least), ceil_div(items, max_splits_));
  splits_ = scalar::floordiv(items + per - Expr::index(1), per);
  Dim elements = sum_.result_elements;
  elements.size *= max_splits_;
  partials_ = b_.add_scratch_buffer(sum_.acc_dtype, elements);

  const Expr block = b_.new_var();
  b_.kernel.block_var = block.node().ivalue;
  b_.kernel.blocks = splits_ * Expr::index(chunks);
  b_.kernel.flops_per_block = 2 * products * static_cast<double>(least);
  split_ = b_.new_var();
  kir::Block& body =
      bind_var(b_.kernel.body, split_.node().ivalue, scalar::floordiv(block, Expr::index(chunks)));
  begin_ = scalar::mod(block, Expr::index(chunks)) * Expr::index(kChannels);
  end_ = min_index(Expr::index(channels), begin_ + Expr::index(kChannels));
  if (chunks == 1) begin_ = Expr::index(0), end_ = Expr::index(channels);

  kir::Block* at = &body;
  for (int64_t v : others_) {
    at = &add_loop(*at, v, Expr::index(0), extent_expr(b_.extent(v)));
  }
  add_loop(*at, vector_, begin_, end_, Kind::vector)
      .push_back(
          {kir::StoreTo{partials_, partial_offset(split_), Expr::constant(sum_.acc_dtype, 0), {}}});

  const Expr item = b_.new_var();
  const Expr strip = b_.new_var();
  at = &add_loop(body, item.node().ivalue, split_ * per,
                 min_index(items, (split_ + Expr::index(1)) * per));
  std::vector<std::pair<int64_t, Expr>> digits = {{strip.node().ivalue, strips}};
  for (size_t i = outer.size(); i-- > 0;) {
    digits.push_back({outer[i], extent_expr(b_.extent(outer[i]))});
  }
  at = &delinearize(b_, item, digits, *at);
  const Expr first = strip * Expr::index(strip_);
  strip_range_ = {first, min_index(extent_expr(b_.extent(strip_var)), first + Expr::index(strip_))};
  emit_strip(*at);
  emit_finish();
}

/// Adds the products of one strip to the partial results.
void SplitContraction::emit_strip(kir::Block& out) {
  kir::Block& lanes = add_loop(out, vector_, begin_, end_, Kind::vector);
  emit_tiles(sum_, partial_offset(split_), 0, {}, lanes);
}

/// Emits loops over the tiles of the variable others_[next] and of all later variables.
void SplitContraction::emit_tiles(const FlatRoot& sum, const Expr& offset, size_t next,
                                  std::vector<Segment> segments, kir::Block& out) {
  if (next == others_.size()) return emit_tile(sum, offset, segments, out);
  const int64_t var = others_[next];
  const int64_t extent = b_.extent(var).size;
  const int64_t size = tile_sizes_[next];
  const auto emit_segment = [&](const Expr& base, int64_t count, kir::Block& block) {
    const Expr within = b_.new_var();
    FlatRoot renamed = sum;
    substitute(renamed, var, base + within);
    const Expr at = rewrite(offset, [&](const Expr& e) {
      return e.op() == ScalarOp::var && e.node().ivalue == var ? base + within : Expr();
    });
    std::vector<Segment> more = segments;
    more.push_back({base, within.node().ivalue, count});
    emit_tiles(renamed, at, next + 1, std::move(more), block);
  };
  const int64_t full = extent / size;
  if (full == 1) {
    emit_segment(Expr::index(0), size, out);
  } else if (full > 1) {
    const Expr tile = b_.new_var(), base = b_.new_var();
    kir::Block& loop = add_loop(out, tile.node().ivalue, Expr::index(0), Expr::index(full));
    emit_segment(base, size, bind_var(loop, base.node().ivalue, tile * Expr::index(size)));
  }
  if (full * size < extent) emit_segment(Expr::index(full * size), extent - full * size, out);
}

void SplitContraction::emit_tile(const FlatRoot& sum, const Expr& offset,
                                 const std::vector<Segment>& segments, kir::Block& out) {
  kir::Accumulator acc{b_.next_accumulator++, sum.acc_dtype, Combine::sum, {}, false};
  std::vector<Expr> index;
  double copies = 1;
  for (const Segment& s : segments) {
    acc.dims.push_back(s.size);
    index.push_back(Expr::var(s.var));
    copies *= static_cast<double>(s.size);
  }
  const auto unrolled = [&](kir::Block& block) -> kir::Block& {
    kir::Block* at = &block;
    for (const Segment& s : segments) {
      at = &add_loop(*at, s.var, Expr::index(0), Expr::index(s.size), Kind::unroll);
    }
    return *at;
  };
  out.push_back({acc});
  kir::Block* at = &out;
  for (size_t i = strip_var_; i + 1 < sum.reduce.size(); ++i) {
    const bool strip = i == strip_var_;
    at = &add_loop(*at, sum.reduce[i], strip ? strip_range_[0] : Expr::index(0),
                   strip ? strip_range_[1] : extent_expr(b_.extent(sum.reduce[i])));
  }
  const auto products = [&](int64_t begin, int64_t end) {
    if (begin >= end) return;
    const bool unroll = static_cast<double>(end - begin) * copies <= kMaxUnrolledBorder;
    kir::Block& loop = add_loop(*at, sum.reduce.back(), Expr::index(begin), Expr::index(end),
                                unroll ? Kind::unroll : Kind::serial);
    unrolled(loop).push_back({kir::Accumulate{acc.id, index, sum.body, {}}});
  };
  const Dim& inner = b_.extent(sum.reduce.back());
  if (strip_var_ + 1 == sum.reduce.size()) {
    kir::Block& loop = add_loop(*at, sum.reduce.back(), strip_range_[0], strip_range_[1]);
    unrolled(loop).push_back({kir::Accumulate{acc.id, index, sum.body, {}}});
  } else {
    products(0, interior_begin_);
    products(interior_begin_, interior_end_);
    products(interior_end_, inner.size);
  }
  const Expr old = load(partials_, sum.acc_dtype, offset);
  const Expr added = old + read_accumulator(acc.id, sum.acc_dtype, index, false);
  unrolled(out).push_back({kir::StoreTo{partials_, offset, added, {}}});
}

/// Adds the partial results in the order of the slices, then computes the epilogue.
void SplitContraction::emit_finish() {
  kir::Block* at = &b_.kernel.finish;
  for (int64_t v : others_) {
    at = &add_loop(*at, v, Expr::index(0), extent_expr(b_.extent(v)));
  }
  at = &add_loop(*at, vector_, Expr::index(0), extent_expr(b_.extent(vector_)), Kind::vector);
  const kir::Accumulator acc{b_.next_accumulator++, sum_.acc_dtype, Combine::sum, {}, false};
  at->push_back({acc});
  const Expr split = b_.new_var();
  add_loop(*at, split.node().ivalue, Expr::index(0), splits_)
      .push_back({kir::Accumulate{
          acc.id, {}, load(partials_, sum_.acc_dtype, partial_offset(split)), {}}});
  const DType dtype = compute_dtype(sum_.source->op->results[0].type.dtype);
  const Expr total =
      append_let(b_, scalar::cast(read_accumulator(acc.id, sum_.acc_dtype, {}, false), dtype), *at);
  for (size_t i = 0; i < sum_.stores.size(); ++i) {
    at->push_back({kir::StoreTo{sum_.buffers[i], sum_.stores[i].second, total, {}}});
  }
  if (total_ < 0) return;
  at->push_back({kir::StoreTo{total_, sum_.result_index, total, {}}});
  emit_epilogue(b_.kernel.finish);
}

/// Computes the values of all roots before the first store, because an output may alias an input.
void SplitContraction::emit_epilogue(kir::Block& out) {
  const Vars& vars = epilogue_.front().out;
  kir::Block* at = &out;
  for (int64_t v : vars) {
    at = &add_loop(*at, v, Expr::index(0), extent_expr(b_.extent(v)),
                   v == vars.back() ? Kind::vector : Kind::serial);
  }
  std::vector<Expr*> bodies;
  for (FlatRoot& s : epilogue_) bodies.push_back(&s.body);
  eliminate_common_subexpressions(b_, bodies, *at);
  for (FlatRoot& s : epilogue_) s.body = append_let(b_, s.body, *at);
  for (const FlatRoot& s : epilogue_) {
    for (size_t i = 0; i < s.stores.size(); ++i) {
      at->push_back({kir::StoreTo{s.buffers[i], s.stores[i].second, s.body, {}}});
    }
  }
}

}  // namespace fluid
