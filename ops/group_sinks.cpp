#include "ops/group_sinks.h"

#include <algorithm>

#include "ops/contract.h"

namespace fluid {
namespace {

const Expr kTrue = Expr::constant(boolean, 1);

Expr both(const Expr& a, const Expr& b) { return scalar::logical_and(a, b); }

bool is_alias(const ir::Op& op) { return std::holds_alternative<Alias>(*def_of(op).lower); }

Shape without_ones(const Shape& shape) {
  Shape kept;
  std::ranges::copy_if(shape, std::back_inserter(kept), [](const Dim& d) { return !d.is(1); });
  return kept;
}

/// Lowers an Alias to a Map that reads the operand at the same index, skipping dimensions of extent
/// 1.
Lowered lower_alias(const ir::Op& op) {
  const Value from = op.operands.at(0);
  const Shape& to = op.results[0].type.shape;
  Lowered low;
  low.out = to;
  std::vector<Expr> index;
  size_t d = 0;
  for (const Dim& extent : from.shape()) {
    if (extent.is(1)) {
      index.push_back(Expr::index(0));
      continue;
    }
    while (to[d].is(1)) ++d;
    index.push_back(Expr::var(static_cast<int64_t>(d++)));
  }
  ExprNode read{.op = Scalar::read, .dtype = compute_dtype(from.dtype()), .args = index};
  low.bodies.push_back(Expr(std::make_shared<const ExprNode>(std::move(read))));
  return low;
}

}  // namespace

bool is_groupable(const ir::Op& op) {
  if (is_alias(op)) {
    const Value from = op.operands.at(0);
    return !from.type().layout && !op.results[0].type.layout &&
           without_ones(from.shape()) == without_ones(op.results[0].type.shape);
  }
  const Lower& lower = *def_of(op).lower;
  return std::holds_alternative<Map>(lower) || std::holds_alternative<Reduce>(lower);
}

SinkBuilder::SinkBuilder(std::span<const ir::Op* const> ops, std::span<const Value> outputs,
                         std::span<const Value> inputs, LoweredOps& lowered)
    : members_(ops.begin(), ops.end()), lowered_(lowered) {
  group.inputs.assign(inputs.begin(), inputs.end());
  group.outputs.assign(outputs.begin(), outputs.end());
}

bool SinkBuilder::build() {
  for (size_t slot = 0; slot < group.outputs.size(); ++slot) {
    const Value& v = group.outputs[slot];
    if (!members_.contains(v.op())) return false;
    if (lowered_.of(v.op()).combine) {
      const int sink = reduction(v.op());
      group.sinks[static_cast<size_t>(sink)].outputs[static_cast<size_t>(v.index())] =
          static_cast<int>(slot);
    } else {
      add_map(v, static_cast<int>(slot));
    }
  }
  return possible_;
}

const Lowered& LoweredOps::of(const ir::Op* op) {
  const auto [it, added] = lowered_.try_emplace(kinds.of(*op));
  if (added) {
    it->second = is_alias(*op) ? lower_alias(*op) : lower_op(*op);
    contract(it->second);
  }
  return it->second;
}

int64_t SinkBuilder::new_var(const Dim& extent) {
  if (extent.is(1)) return -1;
  group.extents.push_back(extent);
  return static_cast<int64_t>(group.extents.size()) - 1;
}

SinkBuilder::Domain SinkBuilder::new_domain(const Lowered& lowered) {
  Domain domain;
  for (const Dim& d : lowered.out) domain.out.push_back(new_var(d));
  for (const Dim& d : lowered.reduce) domain.reduce.push_back(new_var(d));
  for (const auto* vars : {&domain.out, &domain.reduce}) {
    for (int64_t v : *vars) domain.index.push_back(v < 0 ? Expr::index(0) : Expr::var(v));
  }
  for (Expr& e : domain.index) e = intern_(e);
  return domain;
}

void SinkBuilder::add_map(const Value& output, int slot) {
  const ir::Op* op = output.op();
  auto it = map_domains_.find(op);
  if (it == map_domains_.end()) {
    it = map_domains_.emplace(op, new_domain(lowered_.of(op))).first;
    note_read(Value(output.op(), 0), it->second.index);
  }
  GroupSink sink;
  sink.op = op;
  sink.outputs = {slot};
  sink.result = output.index();
  sink.out = it->second.out;
  const Domain domain = it->second;
  sink.body = inline_map(output, domain.index, kTrue);
  group.sinks.push_back(std::move(sink));
}

int SinkBuilder::reduction(const ir::Op* op) {
  if (auto it = reductions_.find(op); it != reductions_.end()) return it->second;
  const Lowered& low = lowered_.of(op);
  const Domain domain = new_domain(low);
  GroupSink sink;
  sink.op = op;
  sink.outputs.assign(op->results.size(), -1);
  sink.out = domain.out;
  sink.reduce = domain.reduce;
  sink.combine = low.combine;
  sink.body = intern_(expand(op, low.bodies.at(0), domain.index, kTrue));
  group.sinks.push_back(std::move(sink));
  const int id = static_cast<int>(group.sinks.size()) - 1;
  reductions_[op] = id;
  return id;
}

Expr SinkBuilder::expand(const ir::Op* op, const Expr& body, const std::vector<Expr>& index,
                         const Expr& mask) {
  return rewrite(body, [&](const Expr& e) -> Expr {
    if (e.op() == Scalar::var) return index.at(static_cast<size_t>(e.node().ivalue));
    if (e.op() == Scalar::read) return read(op, e, mask);
    return {};
  });
}

Expr SinkBuilder::in_range(const Expr& index, const Dim& extent) const {
  Expr low = scalar::compare(Scalar::ge, index, Expr::index(0));
  Expr high = scalar::compare(Scalar::lt, index, extent_expr(extent));
  const std::optional<Affine> affine = as_affine(index);
  if (!affine) return both(low, high);
  if (affine->terms.size() == 1 && affine->terms[0].second == 1 && affine->offset == 0 &&
      group.extents[static_cast<size_t>(affine->terms[0].first)] == extent) {
    return kTrue;
  }
  int64_t least = affine->offset;
  int64_t most = affine->offset;
  bool bounded_below = true;
  bool bounded_above = !extent.batch;
  for (const auto& [var, coef] : affine->terms) {
    const Dim& d = group.extents[static_cast<size_t>(var)];
    if (d.batch) (coef > 0 ? bounded_above : bounded_below) = false;
    (coef > 0 ? most : least) += coef * (d.size - 1);
  }
  return both(bounded_below && least >= 0 ? kTrue : low,
              bounded_above && most < extent.size ? kTrue : high);
}

Expr SinkBuilder::read(const ir::Op* op, const Expr& e, const Expr& mask) {
  const Value v = op->operands.at(static_cast<size_t>(e.node().ivalue));
  std::vector<Expr> index = e.args();
  Expr guard = kTrue;
  for (size_t d = 0; d < index.size(); ++d) {
    const Dim& extent = v.shape()[d];
    if (e.node().guarded) guard = both(guard, in_range(index[d], extent));
    index[d] = intern_(extent.is(1) && !e.node().checked ? Expr::index(0) : index[d]);
  }
  if (!members_.contains(v.op())) return input_read(e, v, std::move(index), both(mask, guard));
  if (e.node().checked) possible_ = false;
  Expr inside;
  if (lowered_.of(v.op()).combine) {
    const int sink = reduction(v.op());
    group.sinks[static_cast<size_t>(sink)].consumed = true;
    ExprNode let{.op = Scalar::let, .dtype = compute_dtype(v.dtype()), .args = std::move(index)};
    let.ivalue = sink * 2 + v.index();
    inside = Expr(std::make_shared<const ExprNode>(std::move(let)));
  } else {
    note_read(Value(v.op(), 0), index);
    inside = inline_map(v, index, intern_(both(mask, guard)));
  }
  if (is_constant(guard, 1)) return inside;
  return scalar::select(guard, inside, Expr::constant(inside.dtype(), e.node().fvalue));
}

Expr SinkBuilder::inline_map(const Value& v, const std::vector<Expr>& index, const Expr& mask) {
  std::vector<const void*> key = {v.op(), intern_(Expr::index(v.index())).get(),
                                  intern_(mask).get()};
  for (const Expr& e : index) key.push_back(intern_(e).get());
  if (auto it = inlined_.find(key); it != inlined_.end()) return it->second;
  const Expr body = lowered_.of(v.op()).bodies.at(static_cast<size_t>(v.index()));
  const Expr e = intern_(scalar::cast(expand(v.op(), body, index, mask), v.dtype()));
  inlined_[key] = e;
  return e;
}

Expr SinkBuilder::input_read(const Expr& read, const Value& v, std::vector<Expr> index,
                             const Expr& mask) {
  note_read(v, index);
  ExprNode n = read.node();
  n.ivalue = input(v);
  n.args = std::move(index);
  n.guarded = false;
  if (!is_constant(mask, 1)) n.args.push_back(mask);
  return intern_(Expr(std::make_shared<const ExprNode>(std::move(n))));
}

void SinkBuilder::note_read(const Value& place, const std::vector<Expr>& index) {
  auto it = std::find_if(anchors.begin(), anchors.end(),
                         [&](const Anchor& a) { return a.place == place; });
  if (it == anchors.end()) it = anchors.insert(it, Anchor{place, {}});
  it->reads.push_back(index);
}

int SinkBuilder::input(const Value& v) {
  const auto it = std::find(group.inputs.begin(), group.inputs.end(), v);
  const auto position = static_cast<int>(it - group.inputs.begin());
  if (it == group.inputs.end()) group.inputs.push_back(v);
  return position;
}

}  // namespace fluid
