#include "codegen/schedule_sweep.h"

#include <algorithm>
#include <limits>

namespace fluid {
namespace {

constexpr int64_t kMaxAccumulators = 8;  // in registers; a reduction with more results uses memory
constexpr double kMaxUnrolled = 32;      // most copies of an unrolled loop body
constexpr double kTeamLoop = 1024;       // iterations that keep a GPU's largest team busy

int64_t round_up(double n, int64_t multiple) {
  const auto whole = static_cast<int64_t>(std::min(n, 1e12));
  return std::max<int64_t>((whole + multiple - 1) / multiple, 1) * multiple;
}

Expr identity(Combine combine, DType dtype) {
  if (combine == Combine::sum) return Expr::constant(dtype, 0);
  const double sign = combine == Combine::min ? 1 : -1;
  if (is_float(dtype)) {
    return Expr::constant(dtype, sign * std::numeric_limits<double>::infinity());
  }
  return Expr::index(combine == Combine::min ? INT64_MAX : INT64_MIN);
}

Expr combined(Combine combine, const Expr& a, const Expr& b) {
  if (combine == Combine::sum && b.op() == Scalar::product) {
    return Expr::make(Scalar::fma, a.dtype(), {b.args()[0], b.args()[1], a});
  }
  if (combine == Combine::sum) return a + b;
  return combine == Combine::min ? scalar::min(a, b) : scalar::max(a, b);
}

Expr row_local(const Expr& let) { return let_node(let.node().ivalue, let.dtype()); }

std::vector<FlatSink> sinks_of(KernelBuilder& b, const GroupPart& part) {
  std::vector<FlatSink> sinks;
  for (int id : part.sinks) {
    if (!b.group.sinks[static_cast<size_t>(id)].finish) sinks.push_back(flatten(b, id, row_local));
  }
  return sinks;
}

}  // namespace

Sweep::Sweep(KernelBuilder& builder, const GroupPart& part)
    : Sweep(builder, sinks_of(builder, part), part.rows) {}

Sweep::Sweep(KernelBuilder& builder, std::vector<FlatSink> sinks, Vars rows,
             const SweepOptions& options)
    : b_(builder), sinks_(std::move(sinks)), rows_(std::move(rows)), options_(options) {
  collapse(b_, sinks_, rows_);
  make_partials();
  make_nests();
  choose_vector();
  partition();
  for (Partial& p : partials_) {
    p.stride = max_blocks_;
    Dim elements = p.sink->kept_size;
    elements.size *= max_blocks_;
    p.buffer = b_.scratch(p.sink->acc, elements);
    if (p.sink->position) p.positions = b_.scratch(i64, elements);
  }
}

const Partial* Sweep::partial_of(const FlatSink& sink) const {
  for (const Partial& p : partials_) {
    if (p.sink == &sink) return &p;
  }
  return nullptr;
}

void Sweep::make_partials() {
  for (const FlatSink& sink : sinks_) {
    if (!sink.source->across) continue;
    const Dim& kept = sink.kept_size;
    const bool many = kept.batch || kept.size > kMaxAccumulators;
    partials_.push_back({.sink = &sink, .block_major = many});
  }
}

void Sweep::make_nests() {
  for (FlatSink& sink : sinks_) {
    const auto stage = static_cast<size_t>(sink.source->stage);
    if (stages_.size() <= stage) stages_.resize(stage + 1);
  }
  for (FlatSink& sink : sinks_) {
    Nest& nest = nest_for(sink);
    nest.sinks.push_back(&sink);
  }
}

/// Returns the nest with equal loops, whose variables replace the sink's, or a new nest.
Sweep::Nest& Sweep::nest_for(FlatSink& sink) {
  std::vector<Nest>& nests = stages_[static_cast<size_t>(sink.source->stage)];
  const Partial* partial = partial_of(sink);
  Nest wanted;
  const Vars kept = without(sink.out, rows_);
  wanted.array = partial && !partial->block_major && !kept.empty();
  wanted.kept_dims = partial && partial->block_major ? kept.size() : 0;
  if (sink.is_reduction() && !partial) {
    wanted.outer = kept;
  } else {
    wanted.inner = kept;
  }
  for (int64_t v : without(sink.reduce, rows_)) wanted.inner.push_back(v);
  for (Nest& nest : nests) {
    const bool fits = !wanted.array && !nest.array && wanted.outer.empty() && nest.outer.empty() &&
                      std::ranges::equal(wanted.inner, nest.inner, [&](int64_t a, int64_t b) {
                        return b_.extent(a) == b_.extent(b);
                      });
    const bool keep_the_same =
        wanted.kept_dims == 0 || nest.kept_dims == 0 || wanted.kept_dims == nest.kept_dims;
    if (!fits || !keep_the_same) continue;
    nest.kept_dims = std::max(nest.kept_dims, wanted.kept_dims);
    Vars fresh;
    for (int64_t v : wanted.inner) {
      fresh.push_back(b_.next_var++);
      b_.extents.resize(static_cast<size_t>(b_.next_var));
      rename(sink, v, Expr::var(fresh.back()));
    }
    for (size_t i = 0; i < fresh.size(); ++i) rename(sink, fresh[i], Expr::var(nest.inner[i]));
    return nest;
  }
  nests.push_back(std::move(wanted));
  return nests.back();
}

double Sweep::row_operations() const {
  double n = 0;
  for (const auto& nests : stages_) {
    for (const Nest& nest : nests) {
      double point = 0;
      for (const FlatSink* s : nest.sinks) point += operations(*s);
      n += point * nominal_points(b_, nest.outer) * nominal_points(b_, nest.inner);
    }
  }
  return std::max(n, 1.0);
}

/// Chooses the variables that are vectorized: one row variable, or one variable of each nest.
void Sweep::choose_vector() {
  double inside = 0;
  bool fixed_rows = false;
  for (auto& nests : stages_) {
    for (Nest& nest : nests) {
      const double points = nominal_points(b_, nest.outer) * nominal_points(b_, nest.inner);
      double best = 0;
      Vars candidates = nest.inner;
      if (nest.array) candidates = nest.sinks.front()->reduce;
      candidates.insert(candidates.end(), nest.outer.begin(), nest.outer.end());
      if (nest.kept_dims > 0) candidates.resize(nest.kept_dims);
      fixed_rows = fixed_rows || nest.kept_dims > 0;
      for (const FlatSink* s : nest.sinks) {
        fixed_rows = fixed_rows || (partial_of(*s) && s->position && rows_.size() > 1);
      }
      for (int64_t v : without(candidates, rows_)) {
        double good = 0;
        for (const FlatSink* s : nest.sinks) good += vector_fit(b_, *s, v).good;
        good *= lane_utilization(b_.extent(v), b_.processor.lanes) * points;
        if (good > best) {
          best = good;
          nest.vector = v;
        }
      }
      double all = 0;
      for (const FlatSink* s : nest.sinks) all += vector_fit(b_, *s, -1).all;
      inside += nest.vector >= 0 ? best : all / static_cast<double>(b_.processor.lanes);
    }
  }
  if (fixed_rows || !options_.rows_in_lanes) return;
  double best = 0;
  for (int64_t v : rows_) {
    double good = 0;
    for (const auto& nests : stages_) {
      for (const Nest& nest : nests) {
        const double points = nominal_points(b_, nest.outer) * nominal_points(b_, nest.inner);
        for (const FlatSink* s : nest.sinks) good += points * vector_fit(b_, *s, v).good;
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
    for (Nest& nest : nests) nest.vector = -1;
  }
}

void Sweep::partition() {
  const double row = row_operations();
  count_ = Expr::index(1);
  if (!rows_.empty()) {
    const size_t serial = rows_.size() - (row_vector_ >= 0 ? 1 : 0);
    double rest = row * nominal_points(b_, rows_);
    while (prefix_.size() < std::max<size_t>(serial, 1) &&
           (prefix_.empty() || rest > b_.processor.block_operations)) {
      const int64_t v = rows_[prefix_.size()];
      rest /= nominal(b_.extent(v));
      prefix_.push_back(v);
    }
    count_ = points(b_, prefix_);
    const bool lanes = prefix_.back() == row_vector_;
    if (!lanes && row_vector_ >= 0 && prefix_.size() == serial &&
        rest > 2 * b_.processor.block_operations) {
      chunk_ = round_up(b_.processor.block_operations / row, b_.processor.row_multiple);
    }
    const Dim& lanes_extent = b_.extent(rows_.back());
    if (!lanes_extent.batch && lanes_extent.size <= chunk_) chunk_ = 0;
    if (chunk_ > 0) {
      count_ = count_ * ceil_div(extent_expr(b_.extent(row_vector_)), chunk_);
      rest = row * static_cast<double>(chunk_);
    }
    const double rows = std::max(b_.processor.block_operations / rest, 1.0);
    per_block_ = per_block(rest, rows, lanes);
  } else {
    per_block_ = Expr::index(1);
    max_blocks_ = 1;
    operations_per_block_ = row;
  }
  blocks_ = scalar::floordiv(count_ + per_block_ - Expr::index(1), per_block_);
}

/// Returns the combinations of prefix variables per block. Partial results bound the number of
/// blocks, so that their scratch does not depend on the batch.
Expr Sweep::per_block(double operations_a_row, double rows_a_block, bool vector) {
  const int64_t least = vector ? round_up(rows_a_block, b_.processor.row_multiple)
                               : std::max<int64_t>(static_cast<int64_t>(rows_a_block), 1);
  operations_per_block_ = operations_a_row * static_cast<double>(least);
  Expr per = Expr::index(least);
  if (partials_.empty()) return per;
  max_blocks_ = b_.processor.max_partials;
  Expr even = ceil_div(count_, b_.processor.max_partials);
  if (vector)
    even = ceil_div(even, b_.processor.row_multiple) * Expr::index(b_.processor.row_multiple);
  per = scalar::max(per, even);
  if (is_constant(count_) && is_constant(per)) {
    const int64_t blocks = (count_.node().ivalue + per.node().ivalue - 1) / per.node().ivalue;
    max_blocks_ = std::max<int64_t>(blocks, 1);
  }
  return per;
}

void Sweep::emit(const Expr& number, kir::Block& out) {
  number_ = number;
  start_partials(number, out);
  std::vector<Expr*> bodies;
  for (FlatSink& s : sinks_) bodies.push_back(&s.body);
  const int64_t results = 2 * static_cast<int64_t>(b_.group.sinks.size());
  hoist(
      b_, bodies,
      [&](const Expr& leaf) { return leaf.op() == Scalar::let && leaf.node().ivalue >= results; },
      out);
  emit_row(row_loops(number, out));
  end_partials(number, out);
}

void Sweep::start_partials(const Expr& number, kir::Block& out) {
  for (const Partial& p : partials_) {
    if (!p.block_major) {
      bool lanes = row_vector_ >= 0;
      for (const auto& nests : stages_) {
        for (const Nest& nest : nests) {
          const bool here = std::ranges::find(nest.sinks, p.sink) != nest.sinks.end();
          lanes = lanes || (here && nest.vector >= 0);
        }
      }
      declare(*p.sink, lanes, out);
      continue;
    }
    const int64_t v = b_.next_var++;
    const Expr size = extent_expr(p.sink->kept_size);
    kir::Block& loop = add_loop(out, v, Expr::index(0), size, kir::For::Kind::vector);
    loop.push_back({kir::StoreTo{p.buffer,
                                 number * size + Expr::var(v),
                                 identity(*p.sink->source->combine, p.sink->acc),
                                 {}}});
  }
}

void Sweep::end_partials(const Expr& number, kir::Block& out) {
  for (const Partial& p : partials_) {
    if (p.block_major) continue;
    const Binding& binding = accs_.at(p.sink->id);
    over_kept(*p.sink, out, [&](kir::Block& at) {
      std::vector<Expr> index;
      for (int64_t v : p.sink->out) index.push_back(Expr::var(v));
      const Expr place = p.sink->kept * Expr::index(p.stride) + number;
      at.push_back({kir::StoreTo{
          p.buffer, place, read_acc(binding.acc, p.sink->acc, index, binding.lanes), {}}});
      if (p.positions < 0) return;
      const Expr position = read_position(binding.acc, p.sink->acc, index, binding.lanes);
      at.push_back({kir::StoreTo{p.positions, place, position, {}}});
    });
  }
}

void Sweep::over_kept(const FlatSink& sink, kir::Block& out,
                      const std::function<void(kir::Block&)>& body) {
  kir::Block* at = &out;
  for (int64_t v : sink.out) {
    at = &add_loop(*at, v, Expr::index(0), extent_expr(b_.extent(v)), kir::For::Kind::unroll);
  }
  body(*at);
}

kir::Block& Sweep::row_loops(const Expr& number, kir::Block& out) {
  if (rows_.empty()) return out;
  const auto kind_of = [&](int64_t v) {
    return v == row_vector_ ? kir::For::Kind::vector : kir::For::Kind::serial;
  };
  const Expr begin = number * per_block_;
  const Expr end = min_index(count_, begin + per_block_);
  kir::Block* at = &out;
  Expr chunk = Expr::index(0);
  if (prefix_.size() == 1 && chunk_ == 0) {
    at = &add_loop(*at, prefix_[0], begin, end, kind_of(prefix_[0]));
  } else {
    const Expr r = b_.new_var();
    at = &add_loop(*at, r.node().ivalue, begin, end);
    Expr rest = r;
    if (chunk_ > 0) {
      const Expr chunks = ceil_div(extent_expr(b_.extent(row_vector_)), chunk_);
      const Expr c = b_.new_var();
      at = &give(*at, c.node().ivalue, scalar::mod(rest, chunks));
      chunk = c * Expr::index(chunk_);
      rest = scalar::floordiv(rest, chunks);
    }
    for (size_t i = prefix_.size(); i-- > 0;) {
      const Expr size = extent_expr(b_.extent(prefix_[i]));
      at = &give(*at, prefix_[i], i == 0 ? rest : scalar::mod(rest, size));
      rest = scalar::floordiv(rest, size);
    }
  }
  for (size_t i = prefix_.size(); i < rows_.size(); ++i) {
    const int64_t v = rows_[i];
    Expr last = extent_expr(b_.extent(v));
    if (chunk_ > 0 && v == row_vector_) last = min_index(last, chunk + Expr::index(chunk_));
    at = &add_loop(*at, v, v == row_vector_ ? chunk : Expr::index(0), last, kind_of(v));
  }
  return *at;
}

void Sweep::emit_row(kir::Block& out) {
  for (const auto& nests : stages_) {
    for (const Nest& nest : nests) emit_nest(nest, out);
  }
}

/// Emits one loop over all combinations of `fastest` and `others`. A short loop would leave threads
/// of the team idle.
kir::Block& Sweep::flat_loop(int64_t fastest, const Vars& others, kir::Block& out) {
  std::vector<std::pair<int64_t, Expr>> digits = {{fastest, extent_expr(b_.extent(fastest))}};
  Expr count = digits[0].second;
  for (size_t i = others.size(); i-- > 0;) {
    digits.push_back({others[i], extent_expr(b_.extent(others[i]))});
    count = count * digits.back().second;
  }
  const Expr number = b_.new_var();
  kir::Block& loop =
      add_loop(out, number.node().ivalue, Expr::index(0), count, kir::For::Kind::vector);
  return unpack(b_, number, digits, loop);
}

/// Returns the variables that share one loop with the vector variable, on a GPU. Sums kept in
/// memory exclude reduced variables: two threads would add to the same sum.
Vars Sweep::flattened(const Nest& nest, const Vars& vars) const {
  const bool wide = nominal(b_.extent(nest.vector)) >= kTeamLoop;
  if (!b_.processor.gpu || nest.array || wide) return {};
  Vars flat = without(vars, {nest.vector});
  if (nest.kept_dims > 0) {
    Vars kept = nest.inner;
    kept.resize(nest.kept_dims);
    std::erase_if(flat, [&](int64_t v) { return !contains(kept, v); });
  }
  return flat;
}

/// Emits loops over `vars`. The nest's vector variable is innermost, and short loops are unrolled.
kir::Block& Sweep::nest_loops(const Nest& nest, const Vars& vars, kir::Block& out) {
  const bool vector = contains(vars, nest.vector);
  const Vars flat = vector ? flattened(nest, vars) : Vars();
  const Vars order = without(without(vars, {nest.vector}), flat);
  std::vector<kir::For::Kind> kinds(order.size(), kir::For::Kind::serial);
  double copies = 1;
  for (size_t i = order.size(); i-- > 0;) {
    const Dim& extent = b_.extent(order[i]);
    const bool array = nest.array && contains(nest.sinks.front()->out, order[i]);
    copies *= nominal(extent);
    if (extent.batch || (!array && copies > (vector ? 4 : kMaxUnrolled))) {
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
  if (!flat.empty()) return flat_loop(nest.vector, flat, *at);
  return add_loop(*at, nest.vector, Expr::index(0), extent_expr(b_.extent(nest.vector)),
                  kir::For::Kind::vector);
}

void Sweep::declare(const FlatSink& sink, bool lanes, kir::Block& out) {
  kir::Acc acc{b_.next_acc++, sink.acc, *sink.source->combine, {}, lanes};
  if (sink.source->across) {
    for (int64_t v : sink.out) acc.dims.push_back(b_.extent(v).size);
  }
  accs_[sink.id] = {acc.id, lanes};
  out.push_back({std::move(acc)});
}

void Sweep::emit_nest(const Nest& nest, kir::Block& out) {
  kir::Block& row = nest_loops(nest, nest.outer, out);
  for (const FlatSink* s : nest.sinks) {
    if (s->is_reduction() && !s->source->across) {
      declare(*s, contains(nest.inner, nest.vector), row);
    }
  }
  std::vector<FlatSink> copies;
  copies.reserve(nest.sinks.size());
  for (const FlatSink* s : nest.sinks) copies.push_back(*s);
  std::vector<Expr*> bodies;
  for (FlatSink& s : copies) bodies.push_back(&s.body);
  if (!nest.inner.empty()) {
    hoist(
        b_, bodies,
        [&](const Expr& leaf) {
          return leaf.op() == Scalar::let || !contains(nest.inner, leaf.node().ivalue);
        },
        row);
  }
  kir::Block& inside = nest_loops(nest, nest.inner, row);
  emit_point(nest, copies, inside);
  for (const FlatSink* s : nest.sinks) {
    if (s->is_reduction() && !s->source->across) emit_results(*s, row);
  }
}

/// Emits all values before the stores, because an output may alias an input.
void Sweep::emit_point(const Nest& nest, std::vector<FlatSink>& sinks, kir::Block& out) {
  std::vector<Expr*> bodies;
  bool stores = false;
  for (FlatSink& s : sinks) {
    bodies.push_back(&s.body);
    stores = stores || !s.is_reduction();
    emit_checks(s, out);
  }
  share(b_, bodies, out);
  if (stores && sinks.size() > 1) {
    for (FlatSink& s : sinks) s.body = name_value(b_, s.body, out);
  }
  for (size_t i = 0; i < sinks.size(); ++i) {
    const FlatSink& s = sinks[i];
    if (s.is_reduction()) {
      accumulate(nest, *nest.sinks[i], s.body, out);
    } else {
      out.push_back({kir::StoreTo{s.buffers[0], s.stores[0].second, s.body, {}}});
    }
  }
}

void Sweep::accumulate(const Nest& nest, const FlatSink& sink, const Expr& value, kir::Block& out) {
  const Partial* partial = partial_of(sink);
  if (partial && partial->block_major) {
    const Expr place = number_ * extent_expr(sink.kept_size) + sink.kept;
    const Expr old = load(partial->buffer, sink.acc, place);
    out.push_back(
        {kir::StoreTo{partial->buffer, place, combined(*sink.source->combine, old, value), {}}});
    return;
  }
  std::vector<Expr> index;
  if (nest.array) {
    for (int64_t v : sink.out) index.push_back(Expr::var(v));
  }
  out.push_back({kir::Accumulate{accs_.at(sink.id).acc, index, value, sink.position}});
}

void Sweep::emit_results(const FlatSink& sink, kir::Block& out) {
  const Binding& binding = accs_.at(sink.id);
  const auto dtype_of = [&](size_t result) {
    return sink.unrounded ? sink.acc : sink.source->op->results[result].type.dtype;
  };
  for (size_t r = 0; r < sink.source->outputs.size(); ++r) {
    const Expr value = r == 1 ? read_position(binding.acc, sink.acc, {}, binding.lanes)
                              : read_acc(binding.acc, sink.acc, {}, binding.lanes);
    out.push_back(
        {kir::Let{2 * sink.id + static_cast<int64_t>(r), scalar::cast(value, dtype_of(r))}});
  }
  for (size_t i = 0; i < sink.stores.size(); ++i) {
    const int result = sink.stores[i].first;
    const DType dtype = compute_dtype(dtype_of(static_cast<size_t>(result)));
    out.push_back({kir::StoreTo{
        sink.buffers[i], sink.stores[i].second, let_node(2 * sink.id + result, dtype), {}}});
  }
}

}  // namespace fluid
