#include "codegen/schedule.h"

#include <algorithm>
#include <list>

#include "codegen/schedule_contraction.h"
#include "codegen/schedule_sweep.h"

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

/// The finish of a kernel, which runs once after all blocks. It combines partial results in a fixed
/// order, then computes the sinks that need them, in small serial loops.
class Finish {
 public:
  explicit Finish(KernelBuilder& builder) : b_(builder) {}
  /// Appends the work of one part to the finish.
  void emit(const GroupPart& part, const Sweep& sweep);

 private:
  struct Stored {  ///< buffers that hold a reduction's results
    int64_t buffers[2] = {-1, -1};
  };
  void combine(const Partial& partial, const Expr& blocks);
  void reduce(const FlatSink& sink);
  void map(std::vector<FlatSink> sinks);
  void keep(const FlatSink& sink, int64_t acc, bool lanes, kir::Block& out);
  FlatSink flat(int id);
  Expr read_kept(const Expr& let);

  KernelBuilder& b_;
  std::map<int, Stored> stored_;
};

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

/// Replaces kErrorBuffer by the index `buffer`. The error words are the last buffer, so their index
/// is known only after all scratch buffers.
void number_error_words(kir::Block& block, int64_t buffer) {
  for (kir::Stmt& s : block) {
    if (auto* store = std::get_if<kir::StoreTo>(&s)) {
      if (store->buffer == kErrorBuffer) store->buffer = buffer;
    } else if (auto* loop = std::get_if<kir::For>(&s)) {
      number_error_words(*loop->body, buffer);
    } else if (auto* branch = std::get_if<kir::If>(&s)) {
      number_error_words(*branch->body, buffer);
    }
  }
}

void emit_parts(KernelBuilder& b, std::list<Sweep>& sweeps) {
  const Expr block = b.new_var();
  b.kernel.block_var = block.node().ivalue;
  if (sweeps.size() == 1) {
    b.kernel.blocks = sweeps.front().blocks();
    sweeps.front().emit(block, b.kernel.body);
    return;
  }
  Expr first = Expr::index(0);
  for (Sweep& sweep : sweeps) {
    const Expr end = first + sweep.blocks();
    const Expr mine = scalar::logical_and(scalar::compare(Scalar::ge, block, first),
                                          scalar::compare(Scalar::lt, block, end));
    const Expr number = b.new_var();
    kir::Block& branch = add_if(b.kernel.body, mine);
    sweep.emit(number, give(branch, number.node().ivalue, block - first));
    first = end;
  }
  b.kernel.blocks = first;
}

}  // namespace

void sweep(KernelBuilder& b) {
  std::list<Sweep> sweeps;
  for (const GroupPart& part : b.group.parts) sweeps.emplace_back(b, part);
  emit_parts(b, sweeps);
  Finish finish(b);
  auto part = b.group.parts.begin();
  double blocks = 0;
  for (const Sweep& s : sweeps) {
    finish.emit(*part++, s);
    const auto n = static_cast<double>(kir::evaluate(s.blocks(), kNominalBatch));
    b.kernel.flops_per_block += n * s.operations_per_block();
    blocks += n;
  }
  b.kernel.flops_per_block /= std::max(blocks, 1.0);
  if (!b.checks) return;
  const auto error = static_cast<int64_t>(b.kernel.buffers.size());
  const auto words = 2 * static_cast<int64_t>(b.group.inputs.size());
  b.kernel.buffers.push_back({"error", i64, words, kir::Buffer::Role::error});
  number_error_words(b.kernel.body, error);
  number_error_words(b.kernel.finish, error);
}

kir::Kernel schedule(const ir::Graph& body, const std::string& name) {
  const Group group = analyze_body(body);
  {
    KernelBuilder b(group, name);
    if (std::optional<Contraction> contraction = Contraction::match(b)) {
      contraction->emit();
      return std::move(b.kernel);
    }
  }
  KernelBuilder b(group, name);
  sweep(b);
  return std::move(b.kernel);
}

}  // namespace fluid
