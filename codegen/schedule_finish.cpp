#include "codegen/schedule_finish.h"

#include <algorithm>

namespace fluid {
namespace {

using Kind = kir::For::Kind;

constexpr int64_t kLeastLanes = 8;  // shorter loops are not vectorised

kir::Block& loop_over(const KernelBuilder& b, const Vars& vars, kir::Block& out, bool vector) {
  kir::Block* at = &out;
  for (size_t i = 0; i < vars.size(); ++i) {
    const Dim& extent = b.extent(vars[i]);
    const bool lanes =
        vector && i + 1 == vars.size() && (extent.batch || extent.size >= kLeastLanes);
    at = &add_loop(*at, vars[i], Expr::index(0), extent_expr(extent),
                   lanes ? Kind::vector : Kind::serial);
  }
  return *at;
}

}  // namespace

void Finish::emit(const GroupPart& part, const Sweep& sweep) {
  for (const Partial& p : sweep.partials()) combine(p, sweep.blocks());
  std::vector<std::vector<FlatSink>> maps;  // grouped by equal variables
  for (int id : part.sinks) {
    if (!b_.group.sinks[static_cast<size_t>(id)].finish) continue;
    FlatSink sink = flat(id);
    if (sink.is_reduction()) {
      reduce(sink);
      continue;
    }
    auto same = std::ranges::find_if(
        maps, [&](const std::vector<FlatSink>& m) { return m.front().out == sink.out; });
    if (same == maps.end()) same = maps.insert(same, std::vector<FlatSink>());
    same->push_back(std::move(sink));
  }
  for (auto& sinks : maps) map(std::move(sinks));
}

FlatSink Finish::flat(int id) {
  return flatten(b_, id, [&](const Expr& let) { return read_kept(let); });
}

Expr Finish::read_kept(const Expr& let) {
  const ReductionRead read = reduction_of(let);
  return load_result(b_.group, let, stored_.at(read.sink).buffers[read.result]);
}

/// Stores one element of a reduction: in the outputs, and in scratch if later sinks of the finish
/// read it.
void Finish::keep(const FlatSink& sink, int64_t acc, bool lanes, kir::Block& out) {
  const GroupSink& source = *sink.source;
  for (size_t r = 0; r < source.outputs.size(); ++r) {
    const DType dtype = compute_dtype(source.op->results[r].type.dtype);
    const Expr result =
        r == 1 ? read_position(acc, sink.acc, {}, lanes) : read_acc(acc, sink.acc, {}, lanes);
    const Expr value = name_value(b_, scalar::cast(result, dtype), out);
    if (source.consumed) {
      int64_t& buffer = stored_[sink.id].buffers[r];
      if (buffer < 0) buffer = b_.scratch(dtype, sink.kept_size);
      out.push_back({kir::StoreTo{buffer, sink.kept, value, {}}});
    }
    for (size_t i = 0; i < sink.stores.size(); ++i) {
      if (sink.stores[i].first != static_cast<int>(r)) continue;
      out.push_back({kir::StoreTo{sink.buffers[i], sink.stores[i].second, value, {}}});
    }
  }
}

void Finish::combine(const Partial& p, const Expr& blocks) {
  const FlatSink& sink = *p.sink;
  kir::Block& element = loop_over(b_, sink.out, b_.kernel.finish, p.block_major);
  const kir::Acc acc{b_.next_acc++, sink.acc, *sink.source->combine, {}, !p.block_major};
  element.push_back({acc});
  const int64_t v = b_.next_var++;
  kir::Block& at =
      add_loop(element, v, Expr::index(0), blocks, p.block_major ? Kind::serial : Kind::vector);
  const Expr place = p.block_major ? Expr::var(v) * extent_expr(sink.kept_size) + sink.kept
                                   : sink.kept * Expr::index(p.stride) + Expr::var(v);
  const Expr position = p.positions < 0 ? Expr() : load(p.positions, i64, place);
  at.push_back({kir::Accumulate{acc.id, {}, load(p.buffer, sink.acc, place), position}});
  keep(sink, acc.id, acc.lanes, element);
}

void Finish::reduce(const FlatSink& sink) {
  kir::Block& element = loop_over(b_, sink.out, b_.kernel.finish, false);
  const bool lanes =
      !sink.reduce.empty() && b_.extent(sink.reduce.back()).at(kLeastLanes) >= kLeastLanes;
  const kir::Acc acc{b_.next_acc++, sink.acc, *sink.source->combine, {}, lanes};
  element.push_back({acc});
  kir::Block& at = loop_over(b_, sink.reduce, element, true);
  emit_checks(sink, at);
  at.push_back({kir::Accumulate{acc.id, {}, sink.body, sink.position}});
  keep(sink, acc.id, lanes, element);
}

void Finish::map(std::vector<FlatSink> sinks) {
  kir::Block& at = loop_over(b_, sinks.front().out, b_.kernel.finish, true);
  std::vector<Expr*> bodies;
  for (FlatSink& s : sinks) {
    emit_checks(s, at);
    bodies.push_back(&s.body);
  }
  share(b_, bodies, at);
  for (FlatSink& s : sinks) s.body = name_value(b_, s.body, at);
  for (const FlatSink& s : sinks) {
    at.push_back({kir::StoreTo{s.buffers[0], s.stores[0].second, s.body, {}}});
  }
}

}  // namespace fluid
