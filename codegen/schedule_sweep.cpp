#include "codegen/schedule_sweep.h"

#include <algorithm>
#include <limits>

namespace fluid {
namespace {

// Maximum number of results for which a reduction over rows keeps its accumulators in registers.
// Reductions with more results keep them in memory.
constexpr int64_t kMaxAccumulators = 8;
// Maximum number of interleaved stores; the emitter does not interleave more.
constexpr int64_t kMaxInterleaved = 4;
constexpr double kMaxUnrolled = 32;  // maximum number of copies of an unrolled loop body
// Smallest trip count that keeps every thread of the largest thread block busy.
constexpr double kFullBlockIterations = 1024;

int64_t round_up(double n, int64_t multiple) {
  const auto whole = static_cast<int64_t>(std::min(n, 1e12));
  return std::max<int64_t>((whole + multiple - 1) / multiple, 1) * multiple;
}

Expr identity(Combine combine, DType dtype) {
  if (combine == Combine::sum) return Expr::constant(dtype, 0);
  if (combine == Combine::prod) return Expr::constant(dtype, 1);
  const double sign = combine == Combine::min ? 1 : -1;
  if (is_float(dtype)) {
    return Expr::constant(dtype, sign * std::numeric_limits<double>::infinity());
  }
  return Expr::index(combine == Combine::min ? INT64_MAX : INT64_MIN);
}

Expr combined(Combine combine, const Expr& a, const Expr& b) {
  if (combine == Combine::sum && b.op() == ScalarOp::product) {
    return Expr::make(ScalarOp::fma, a.dtype(), {b.args()[0], b.args()[1], a});
  }
  if (combine == Combine::sum) return a + b;
  if (combine == Combine::prod) return a * b;
  return combine == Combine::min ? scalar::min(a, b) : scalar::max(a, b);
}

std::vector<FlatRoot> roots_of(KernelBuilder& b, const GroupPart& part) {
  std::vector<FlatRoot> roots;
  for (int id : part.roots) {
    if (!b.group.roots[static_cast<size_t>(id)].in_finish_phase)
      roots.push_back(flatten(b, id, row_local));
  }
  return roots;
}

}  // namespace

Expr row_local(const Expr& let) { return read_let(let.node().ivalue, let.dtype()); }

Sweep::Sweep(KernelBuilder& builder, const GroupPart& part)
    : Sweep(builder, roots_of(builder, part), part.rows) {}

Sweep::Sweep(KernelBuilder& builder, std::vector<FlatRoot> roots, Vars rows,
             const SweepOptions& options)
    : b_(builder), roots_(std::move(roots)), rows_(std::move(rows)), options_(options) {
  collapse_vars(b_, roots_, rows_);
  find_partial_results();
  make_nests();
  choose_vector_vars();
  choose_interleaved();
  innermost_rows_ = rows_are_innermost();
  choose_register_partials();
  partition_rows();
  for (PartialResults& p : partials_) {
    p.stride = max_blocks_;
    Dim elements = p.root->result_elements;
    elements.size *= max_blocks_;
    p.buffer = b_.add_scratch_buffer(p.root->acc_dtype, elements);
    if (p.root->argmax_index) p.argmax_indices = b_.add_scratch_buffer(i64, elements);
  }
}

const PartialResults* Sweep::partial_results_of(const FlatRoot& root) const {
  for (const PartialResults& p : partials_) {
    if (p.root == &root) return &p;
  }
  return nullptr;
}

void Sweep::find_partial_results() {
  for (const FlatRoot& root : roots_) {
    if (!root.source->reduces_rows) continue;
    const Dim& results = root.result_elements;
    const bool many = results.batch || results.size > kMaxAccumulators;
    partials_.push_back({.root = &root, .block_major = many});
  }
}

void Sweep::make_nests() {
  for (FlatRoot& root : roots_) {
    const auto stage = static_cast<size_t>(root.source->stage);
    if (stages_.size() <= stage) stages_.resize(stage + 1);
  }
  for (FlatRoot& root : roots_) {
    LoopNest& nest = find_or_add_nest(root);
    nest.roots.push_back(&root);
  }
}

/// Returns the nest with the same loops as the root. If there is none, adds a nest. Renames the
/// variables of the root to the variables of the nest.
Sweep::LoopNest& Sweep::find_or_add_nest(FlatRoot& root) {
  std::vector<LoopNest>& nests = stages_[static_cast<size_t>(root.source->stage)];
  const PartialResults* partial = partial_results_of(root);
  LoopNest wanted;
  const Vars result_vars = without(root.out, rows_);
  wanted.array = partial && !partial->block_major && !result_vars.empty();
  wanted.result_dims = partial && partial->block_major ? result_vars.size() : 0;
  if (root.is_reduction() && !partial) {
    wanted.outer = result_vars;
  } else {
    wanted.inner = result_vars;
  }
  for (int64_t v : without(root.reduce, rows_)) wanted.inner.push_back(v);
  for (LoopNest& nest : nests) {
    const bool fits = !wanted.array && !nest.array && wanted.outer.empty() && nest.outer.empty() &&
                      std::ranges::equal(wanted.inner, nest.inner, [&](int64_t a, int64_t b) {
                        return b_.extent(a) == b_.extent(b);
                      });
    const bool same_result_dims =
        wanted.result_dims == 0 || nest.result_dims == 0 || wanted.result_dims == nest.result_dims;
    if (!fits || !same_result_dims) continue;
    nest.result_dims = std::max(nest.result_dims, wanted.result_dims);
    Vars fresh;
    for (int64_t v : wanted.inner) {
      fresh.push_back(b_.next_var++);
      b_.extents.resize(static_cast<size_t>(b_.next_var));
      substitute(root, v, Expr::var(fresh.back()));
    }
    for (size_t i = 0; i < fresh.size(); ++i) substitute(root, fresh[i], Expr::var(nest.inner[i]));
    return nest;
  }
  nests.push_back(std::move(wanted));
  return nests.back();
}

double Sweep::operations_per_row() const {
  double n = 0;
  for (const auto& nests : stages_) {
    for (const LoopNest& nest : nests) {
      double point = 0;
      for (const FlatRoot* s : nest.roots) point += operation_count(*s);
      n += point * estimated_trip_count(b_, nest.outer) * estimated_trip_count(b_, nest.inner);
    }
  }
  if (interleaved_ >= 0) n *= estimated_extent(b_.extent(interleaved_));
  return std::max(n, 1.0);
}

/// Chooses the vectorized variables: either one row variable, or one variable of each nest.
void Sweep::choose_vector_vars() {
  double inside = 0;
  bool fixed_rows = false;
  for (auto& nests : stages_) {
    for (LoopNest& nest : nests) {
      const double points =
          estimated_trip_count(b_, nest.outer) * estimated_trip_count(b_, nest.inner);
      double best = 0;
      Vars candidates = nest.inner;
      if (nest.array) candidates = nest.roots.front()->reduce;
      candidates.insert(candidates.end(), nest.outer.begin(), nest.outer.end());
      if (nest.result_dims > 0) candidates.resize(nest.result_dims);
      fixed_rows = fixed_rows || nest.result_dims > 0;
      for (const FlatRoot* s : nest.roots) {
        fixed_rows = fixed_rows || (partial_results_of(*s) && s->argmax_index && rows_.size() > 1);
      }
      for (int64_t v : without(candidates, rows_)) {
        double good = 0;
        for (const FlatRoot* s : nest.roots) good += vectorization_score(b_, *s, v).score;
        good *= lane_utilization(b_.extent(v), b_.processor.lanes) * points;
        if (good > best) {
          best = good;
          nest.vector = v;
        }
      }
      double all = 0;
      for (const FlatRoot* s : nest.roots) all += vectorization_score(b_, *s, -1).accesses;
      inside += nest.vector >= 0 ? best : all / static_cast<double>(b_.processor.lanes);
    }
  }
  if (fixed_rows || !options_.may_vectorize_rows) return;
  double best = 0;
  for (int64_t v : rows_) {
    double good = 0;
    for (const auto& nests : stages_) {
      for (const LoopNest& nest : nests) {
        const double points =
            estimated_trip_count(b_, nest.outer) * estimated_trip_count(b_, nest.inner);
        for (const FlatRoot* s : nest.roots) good += points * vectorization_score(b_, *s, v).score;
      }
    }
    good *= lane_utilization(b_.extent(v), b_.processor.lanes);
    if (good >= best && good >= inside) {
      best = good;
      row_vector_ = v;
    }
  }
  if (row_vector_ < 0) return;
  std::erase(rows_, row_vector_);
  rows_.push_back(row_vector_);
  for (auto& nests : stages_) {
    for (LoopNest& nest : nests) nest.vector = -1;
  }
}

/// Finds a row variable that is innermost in memory and too short to vectorize, such as the three
/// channels of channels-last images. Unrolling the loop over this variable inside the vectorized
/// loop makes the interleaved stores contiguous.
void Sweep::choose_interleaved() {
  if (b_.processor.gpu || row_vector_ < 0 || stages_.size() != 1 || stages_[0].size() != 1) return;
  const LoopNest& nest = stages_[0][0];
  if (!nest.outer.empty() || !nest.inner.empty() || nest.roots.size() != 1) return;
  const FlatRoot& root = *nest.roots.front();
  if (root.is_reduction() || root.stores.size() != 1) return;
  const std::optional<Affine> affine = as_affine(root.stores.front().second);
  if (!affine) return;
  for (int64_t v : rows_) {
    const Dim& extent = b_.extent(v);
    if (v == row_vector_ || extent.batch || affine->coefficient(v) != 1) continue;
    if (affine->coefficient(row_vector_) != extent.size || extent.size > kMaxInterleaved) continue;
    interleaved_ = v;
    std::erase(rows_, v);
    return;
  }
}

/// Whether the loop over the vectorized rows can be inside the loops over the results of a row. The
/// kernel then accesses memory sequentially if adjacent rows are adjacent in memory, for example if
/// the rows are the channels of channels-last images.
bool Sweep::rows_are_innermost() const {
  if (b_.processor.gpu || row_vector_ < 0 || stages_.size() != 1 || !partials_.empty()) {
    return false;
  }
  bool loops = false;
  for (const FlatRoot& s : roots_) {
    for (const auto& [result, offset] : s.stores) {
      const std::optional<Affine> affine = as_affine(offset);
      if (!affine || affine->coefficient(row_vector_) != 1) return false;
    }
    loops = loops || !without(s.out, rows_).empty();
  }
  return loops;
}

/// Keeps the partial results of a nest with few results in registers. In memory, each addition
/// would wait for the store of the previous row's sum.
void Sweep::choose_register_partials() {
  if (b_.processor.gpu || stages_.size() != 1 || stages_.front().size() != 1) return;
  const LoopNest& nest = stages_.front().front();
  if (nest.result_dims != 1 || nest.inner != Vars{nest.vector} || b_.extent(nest.vector).batch) {
    return;
  }
  for (const PartialResults& p : partials_) {
    if (!p.block_major || p.root->argmax_index) return;
  }
  const auto reduces_within_rows = [&](const FlatRoot* root) {
    return !root->reduce.empty() && partial_results_of(*root) == nullptr;
  };
  if (std::ranges::any_of(nest.roots, reduces_within_rows)) return;
  const auto sums = static_cast<int64_t>(partials_.size());
  if (sums * vector_count(nest.vector) > b_.processor.accumulators) return;
  in_registers_ = true;
  b_.kernel.vector_width = b_.lanes();
}

/// Returns the number of vectors along `var`, including a partial last vector.
int64_t Sweep::vector_count(int64_t var) const {
  return (b_.extent(var).size + b_.lanes() - 1) / b_.lanes();
}

void Sweep::partition_rows() {
  const double row = operations_per_row();
  item_count_ = Expr::index(1);
  if (!rows_.empty()) {
    const size_t serial = rows_.size() - (row_vector_ >= 0 ? 1 : 0);
    double rest = row * estimated_trip_count(b_, rows_);
    while (prefix_.size() < std::max<size_t>(serial, 1) &&
           (prefix_.empty() || rest > b_.processor.block_operations)) {
      const int64_t v = rows_[prefix_.size()];
      rest /= estimated_extent(b_.extent(v));
      prefix_.push_back(v);
    }
    item_count_ = trip_count(b_, prefix_);
    const bool lanes = prefix_.back() == row_vector_;
    if (!lanes && row_vector_ >= 0 && prefix_.size() == serial &&
        rest > 2 * b_.processor.block_operations) {
      chunk_ = round_up(b_.processor.block_operations / row, b_.processor.row_multiple);
    }
    const Dim& lanes_extent = b_.extent(rows_.back());
    if (!lanes_extent.batch && lanes_extent.size <= chunk_) chunk_ = 0;
    if (chunk_ > 0) {
      item_count_ = item_count_ * ceil_div(extent_expr(b_.extent(row_vector_)), chunk_);
      rest = row * static_cast<double>(chunk_);
    }
    const double rows = std::max(b_.processor.block_operations / rest, 1.0);
    items_per_block_ = items_per_block(rest, rows, lanes);
  } else {
    items_per_block_ = Expr::index(1);
    max_blocks_ = 1;
    operations_per_block_ = row;
  }
  blocks_ = scalar::floordiv(item_count_ + items_per_block_ - Expr::index(1), items_per_block_);
}

/// Returns the number of items per block. An item is an iteration of the loops over `prefix_` and
/// over the chunks. If there are partial results, limits the number of blocks, so that the size of
/// the scratch buffers does not depend on the batch size.
Expr Sweep::items_per_block(double operations_per_item, double min_items, bool vector) {
  const int64_t least = vector ? round_up(min_items, b_.processor.row_multiple)
                               : std::max<int64_t>(static_cast<int64_t>(min_items), 1);
  operations_per_block_ = operations_per_item * static_cast<double>(least);
  Expr per = Expr::index(least);
  if (partials_.empty()) return per;
  max_blocks_ = b_.processor.max_partials;
  Expr even = ceil_div(item_count_, b_.processor.max_partials);
  if (vector)
    even = ceil_div(even, b_.processor.row_multiple) * Expr::index(b_.processor.row_multiple);
  per = scalar::max(per, even);
  if (is_constant(item_count_) && is_constant(per)) {
    const int64_t blocks = (item_count_.node().ivalue + per.node().ivalue - 1) / per.node().ivalue;
    max_blocks_ = std::max<int64_t>(blocks, 1);
  }
  return per;
}

void Sweep::emit(const Expr& block_index, kir::Block& out) {
  block_index_ = block_index;
  init_partial_results(block_index, out);
  std::vector<Expr*> bodies;
  for (FlatRoot& s : roots_) bodies.push_back(&s.body);
  const int64_t results = 2 * static_cast<int64_t>(b_.group.roots.size());
  hoist(
      b_, bodies,
      [&](const Expr& leaf) { return leaf.op() == ScalarOp::let && leaf.node().ivalue >= results; },
      out);
  kir::Block* row = &emit_row_loops(block_index, out);
  if (interleaved_ >= 0) {
    row = &add_loop(*row, interleaved_, Expr::index(0), extent_expr(b_.extent(interleaved_)),
                    kir::For::Kind::unroll);
  }
  emit_row(*row);
  store_partial_results(block_index, out);
}

void Sweep::init_partial_results(const Expr& block_index, kir::Block& out) {
  for (const PartialResults& p : partials_) {
    if (in_registers_) {
      declare_accumulator(*p.root, true, out);
      continue;
    }
    if (!p.block_major) {
      bool per_lane = row_vector_ >= 0;
      for (const auto& nests : stages_) {
        for (const LoopNest& nest : nests) {
          const bool here = std::ranges::find(nest.roots, p.root) != nest.roots.end();
          per_lane = per_lane || (here && nest.vector >= 0);
        }
      }
      declare_accumulator(*p.root, per_lane, out);
      continue;
    }
    const int64_t v = b_.next_var++;
    const Expr size = extent_expr(p.root->result_elements);
    kir::Block& loop = add_loop(out, v, Expr::index(0), size, kir::For::Kind::vector);
    loop.push_back({kir::StoreTo{p.buffer,
                                 block_index * size + Expr::var(v),
                                 identity(*p.root->source->combine, p.root->acc_dtype),
                                 {}}});
  }
}

void Sweep::store_partial_results(const Expr& block_index, kir::Block& out) {
  for (const PartialResults& p : partials_) {
    if (in_registers_) store_register_partials(p, block_index, out);
    if (p.block_major) continue;
    const RootAccumulator& binding = accs_.at(p.root->id);
    for_each_result(*p.root, out, [&](kir::Block& at) {
      std::vector<Expr> index;
      for (int64_t v : p.root->out) index.push_back(Expr::var(v));
      const Expr offset = p.root->result_index * Expr::index(p.stride) + block_index;
      at.push_back({kir::StoreTo{
          p.buffer,
          offset,
          read_accumulator(binding.accumulator_id, p.root->acc_dtype, index, binding.per_lane),
          {}}});
      if (p.argmax_indices < 0) return;
      const Expr argmax_index =
          read_argmax_index(binding.accumulator_id, p.root->acc_dtype, index, binding.per_lane);
      at.push_back({kir::StoreTo{p.argmax_indices, offset, argmax_index, {}}});
    });
  }
}

void Sweep::store_register_partials(const PartialResults& partial, const Expr& block_index,
                                    kir::Block& out) {
  const FlatRoot& root = *partial.root;
  for_each_vector(root.out.front(), out, [&](const Expr& vector, kir::Block& loop) {
    const Expr offset = block_index * extent_expr(root.result_elements) + root.result_index;
    loop.push_back({kir::StoreTo{
        partial.buffer,
        offset,
        read_accumulator(accs_.at(root.id).accumulator_id, root.acc_dtype, {vector}, false),
        {}}});
  });
}

/// Appends an unrolled loop over the full vectors along `var`, then the code for a partial last
/// vector. Calls body(vector, loop) to emit the code for vector number `vector` into the vector
/// loop `loop`.
void Sweep::for_each_vector(int64_t var, kir::Block& out,
                            const std::function<void(const Expr& vector, kir::Block& loop)>& body) {
  const int64_t size = b_.extent(var).size, lanes = b_.lanes(), full = size / lanes;
  const Expr vector = b_.new_var();
  const Expr begin = vector * Expr::index(lanes);
  kir::Block& unrolled = add_loop(out, vector.node().ivalue, Expr::index(0), Expr::index(full),
                                  kir::For::Kind::unroll);
  body(vector, add_loop(unrolled, var, begin, begin + Expr::index(lanes), kir::For::Kind::vector));
  if (full * lanes == size) return;
  body(Expr::index(full),
       add_loop(out, var, Expr::index(full * lanes), Expr::index(size), kir::For::Kind::vector));
}

void Sweep::for_each_result(const FlatRoot& root, kir::Block& out,
                            const std::function<void(kir::Block&)>& body) {
  kir::Block* at = &out;
  for (int64_t v : root.out) {
    at = &add_loop(*at, v, Expr::index(0), extent_expr(b_.extent(v)), kir::For::Kind::unroll);
  }
  body(*at);
}

kir::Block& Sweep::emit_row_loops(const Expr& block_index, kir::Block& out) {
  if (rows_.empty()) return out;
  const auto kind_of = [&](int64_t v) {
    return v == row_vector_ ? kir::For::Kind::vector : kir::For::Kind::serial;
  };
  const Expr begin = block_index * items_per_block_;
  const Expr end = min_index(item_count_, begin + items_per_block_);
  kir::Block* at = &out;
  Expr chunk = Expr::index(0);
  const auto add_row_loop = [&](int64_t v, const Expr& first, const Expr& last) {
    if (innermost_rows_ && v == row_vector_) {
      row_begin_ = first;
      row_end_ = last;
    } else {
      at = &add_loop(*at, v, first, last, kind_of(v));
    }
  };
  if (prefix_.size() == 1 && chunk_ == 0) {
    add_row_loop(prefix_[0], begin, end);
  } else {
    const Expr r = b_.new_var();
    at = &add_loop(*at, r.node().ivalue, begin, end);
    Expr rest = r;
    if (chunk_ > 0) {
      const Expr chunks = ceil_div(extent_expr(b_.extent(row_vector_)), chunk_);
      const Expr c = b_.new_var();
      at = &bind_var(*at, c.node().ivalue, scalar::mod(rest, chunks));
      chunk = c * Expr::index(chunk_);
      rest = scalar::floordiv(rest, chunks);
    }
    for (size_t i = prefix_.size(); i-- > 0;) {
      const Expr size = extent_expr(b_.extent(prefix_[i]));
      at = &bind_var(*at, prefix_[i], i == 0 ? rest : scalar::mod(rest, size));
      rest = scalar::floordiv(rest, size);
    }
  }
  for (size_t i = prefix_.size(); i < rows_.size(); ++i) {
    const int64_t v = rows_[i];
    Expr last = extent_expr(b_.extent(v));
    if (chunk_ > 0 && v == row_vector_) last = min_index(last, chunk + Expr::index(chunk_));
    add_row_loop(v, v == row_vector_ ? chunk : Expr::index(0), last);
  }
  return *at;
}

void Sweep::emit_row(kir::Block& out) {
  for (const auto& nests : stages_) {
    for (const LoopNest& nest : nests) emit_nest(nest, out);
  }
}

/// Emits one vector loop over the flattened index of `fastest` and `others`. A loop over `fastest`
/// alone would be too short to keep all threads of a thread group busy.
kir::Block& Sweep::emit_flattened_loop(int64_t fastest, const Vars& others, kir::Block& out) {
  std::vector<std::pair<int64_t, Expr>> digits = {{fastest, extent_expr(b_.extent(fastest))}};
  Expr count = digits[0].second;
  for (size_t i = others.size(); i-- > 0;) {
    digits.push_back({others[i], extent_expr(b_.extent(others[i]))});
    count = count * digits.back().second;
  }
  const Expr flat_index = b_.new_var();
  kir::Block& loop =
      add_loop(out, flat_index.node().ivalue, Expr::index(0), count, kir::For::Kind::vector);
  return delinearize(b_, flat_index, digits, loop);
}

/// Returns the variables to flatten into one loop with the vector variable. Returns none on a CPU,
/// for an array of accumulators, and if the loop over the vector variable alone is long enough. If
/// the sums are in memory, excludes reduction variables, because two threads would otherwise add to
/// the same sum.
Vars Sweep::vars_to_flatten(const LoopNest& nest, const Vars& vars) const {
  const bool wide = estimated_extent(b_.extent(nest.vector)) >= kFullBlockIterations;
  if (!b_.processor.gpu || nest.array || wide) return {};
  Vars flat = without(vars, {nest.vector});
  if (nest.result_dims > 0) {
    Vars memory_vars = nest.inner;
    memory_vars.resize(nest.result_dims);
    std::erase_if(flat, [&](int64_t v) { return !contains(memory_vars, v); });
  }
  return flat;
}

/// Returns the maximum number of copies of the body of an unrolled loop. On a GPU all copies load
/// at once, so that the loads of several buffers would take too many registers.
double Sweep::max_unrolled(const LoopNest& nest) const {
  if (!b_.processor.gpu) return kMaxUnrolled;
  double loads = 0;
  for (const FlatRoot* s : nest.roots) {
    for (const Expr& load : loads_of(s->body)) {
      const auto varies = [&](int64_t v) { return depends_on(load.args()[0], v); };
      loads += std::ranges::any_of(nest.inner, varies) ? 1 : 0;
    }
  }
  return kMaxUnrolled / std::max(loads, 1.0);
}

/// Emits loops over `vars`. The loop over the vector variable of the nest is innermost, and short
/// loops are unrolled.
kir::Block& Sweep::emit_nest_loops(const LoopNest& nest, const Vars& vars, kir::Block& out) {
  const bool vector = contains(vars, nest.vector);
  const Vars flat = vector ? vars_to_flatten(nest, vars) : Vars();
  const Vars order = without(without(vars, {nest.vector}), flat);
  std::vector<kir::For::Kind> kinds(order.size(), kir::For::Kind::serial);
  const double most = vector ? 4 : max_unrolled(nest);
  double copies = 1;
  for (size_t i = order.size(); i-- > 0;) {
    const Dim& extent = b_.extent(order[i]);
    const bool array = nest.array && contains(nest.roots.front()->out, order[i]);
    copies *= estimated_extent(extent);
    if (extent.batch || (!array && copies > most)) {
      copies = kMaxUnrolled + 1;
    } else {
      kinds[i] = kir::For::Kind::unroll;
    }
  }
  kir::Block* at = &out;
  for (size_t i = 0; i < order.size(); ++i) {
    at = &add_loop(*at, order[i], Expr::index(0), extent_expr(b_.extent(order[i])), kinds[i]);
  }
  if (!vector) return *at;
  if (!flat.empty()) return emit_flattened_loop(nest.vector, flat, *at);
  return add_loop(*at, nest.vector, Expr::index(0), extent_expr(b_.extent(nest.vector)),
                  kir::For::Kind::vector);
}

void Sweep::declare_accumulator(const FlatRoot& root, bool per_lane, kir::Block& out) {
  kir::Accumulator acc{b_.next_accumulator++, root.acc_dtype, *root.source->combine, {}, per_lane};
  const PartialResults* partial = partial_results_of(root);
  if (partial && in_registers_) {
    acc.dims.push_back(vector_count(root.out.front()));
  } else if (partial) {
    for (int64_t v : root.out) acc.dims.push_back(b_.extent(v).size);
  }
  accs_[root.id] = {acc.id, per_lane};
  out.push_back({std::move(acc)});
}

/// Emits the loops around the accumulators of a nest.
kir::Block& Sweep::emit_outer_loops(const LoopNest& nest, kir::Block& out) {
  if (!innermost_rows_) return emit_nest_loops(nest, nest.outer, out);
  kir::Block* at = &out;
  for (int64_t v : nest.outer) {
    at = &add_loop(*at, v, Expr::index(0), extent_expr(b_.extent(v)));
  }
  return add_loop(*at, row_vector_, row_begin_, row_end_, kir::For::Kind::vector);
}

void Sweep::emit_nest(LoopNest nest, kir::Block& out) {
  if (innermost_rows_ && std::ranges::none_of(nest.roots, &FlatRoot::is_reduction)) {
    nest.outer.swap(nest.inner);  // no accumulators: make the row loop the innermost loop
  }
  kir::Block& row = emit_outer_loops(nest, out);
  for (const FlatRoot* s : nest.roots) {
    if (s->is_reduction() && !s->source->reduces_rows) {
      declare_accumulator(*s, contains(nest.inner, nest.vector), row);
    }
  }
  std::vector<FlatRoot> copies;
  copies.reserve(nest.roots.size());
  for (const FlatRoot* s : nest.roots) copies.push_back(*s);
  std::vector<Expr*> bodies;
  for (FlatRoot& s : copies) bodies.push_back(&s.body);
  if (!nest.inner.empty()) {
    hoist(
        b_, bodies,
        [&](const Expr& leaf) {
          return leaf.op() == ScalarOp::let || !contains(nest.inner, leaf.node().ivalue);
        },
        row);
  }
  if (in_registers_) {
    for_each_vector(nest.vector, row, [&](const Expr& vector, kir::Block& loop) {
      emit_loop_body(nest, copies, vector, loop);
    });
  } else {
    emit_loop_body(nest, copies, {}, emit_nest_loops(nest, nest.inner, row));
  }
  for (const FlatRoot* s : nest.roots) {
    if (s->is_reduction() && !s->source->reduces_rows) emit_reduction_results(*s, row);
  }
}

/// Computes the values of all roots before the first store, because an output may alias an input.
/// If the accumulators are in registers, `vector` is the number of the vector along the vector
/// variable, and indexes the accumulators. Otherwise `vector` is null.
void Sweep::emit_loop_body(const LoopNest& nest, std::vector<FlatRoot> roots, const Expr& vector,
                           kir::Block& out) {
  std::vector<Expr*> bodies;
  bool stores = false;
  for (FlatRoot& s : roots) {
    bodies.push_back(&s.body);
    stores = stores || !s.is_reduction();
    emit_bounds_checks(s, out);
  }
  eliminate_common_subexpressions(b_, bodies, out);
  if (stores && roots.size() > 1) {
    for (FlatRoot& s : roots) s.body = append_let(b_, s.body, out);
  }
  for (size_t i = 0; i < roots.size(); ++i) {
    const FlatRoot& s = roots[i];
    if (s.is_reduction()) {
      accumulate(nest, *nest.roots[i], s.body, vector, out);
    } else {
      out.push_back({kir::StoreTo{s.buffers[0], s.stores[0].second, s.body, {}}});
    }
  }
}

void Sweep::accumulate(const LoopNest& nest, const FlatRoot& root, const Expr& value,
                       const Expr& vector, kir::Block& out) {
  const PartialResults* partial = partial_results_of(root);
  if (partial && partial->block_major && !in_registers_) {
    const Expr offset = block_index_ * extent_expr(root.result_elements) + root.result_index;
    const Expr old = load(partial->buffer, root.acc_dtype, offset);
    out.push_back(
        {kir::StoreTo{partial->buffer, offset, combined(*root.source->combine, old, value), {}}});
    return;
  }
  std::vector<Expr> index;
  if (vector) index.push_back(vector);
  if (nest.array) {
    for (int64_t v : root.out) index.push_back(Expr::var(v));
  }
  out.push_back(
      {kir::Accumulate{accs_.at(root.id).accumulator_id, index, value, root.argmax_index}});
}

void Sweep::emit_reduction_results(const FlatRoot& root, kir::Block& out) {
  const RootAccumulator& binding = accs_.at(root.id);
  const auto dtype_of = [&](size_t result) {
    return root.unrounded ? root.acc_dtype : root.source->op->results[result].type.dtype;
  };
  for (size_t r = 0; r < root.source->outputs.size(); ++r) {
    const Expr value =
        r == 1 ? read_argmax_index(binding.accumulator_id, root.acc_dtype, {}, binding.per_lane)
               : read_accumulator(binding.accumulator_id, root.acc_dtype, {}, binding.per_lane);
    out.push_back(
        {kir::Let{2 * root.id + static_cast<int64_t>(r), scalar::cast(value, dtype_of(r))}});
  }
  for (size_t i = 0; i < root.stores.size(); ++i) {
    const int result = root.stores[i].first;
    const DType dtype = compute_dtype(dtype_of(static_cast<size_t>(result)));
    out.push_back({kir::StoreTo{
        root.buffers[i], root.stores[i].second, read_let(2 * root.id + result, dtype), {}}});
  }
}

}  // namespace fluid
