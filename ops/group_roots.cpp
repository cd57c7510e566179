#include "ops/group_roots.h"

#include <algorithm>

#include "ops/contract.h"
#include "ops/index_range.h"

namespace fluid {
namespace {

const Expr kTrue = Expr::constant(boolean, 1);

Expr logical_and(const Expr& a, const Expr& b) { return scalar::logical_and(a, b); }

/// Returns the index into the operand of a view, if the dimensions of the result split those of the
/// operand: each dimension of the operand is one dimension of the result, or the product of several
/// adjacent ones. Dimensions of extent 1 may be anywhere. Returns nullopt for other views.
std::optional<std::vector<Expr>> index_of_split(const std::vector<Dim>& from,
                                                const std::vector<Dim>& to) {
  std::vector<Expr> index;
  size_t d = 0;
  const auto skip_ones = [&] {
    while (d < to.size() && to[d].is(1)) ++d;
  };
  for (const Dim& extent : from) {
    if (extent.is(1)) {
      index.push_back(Expr::index(0));
      continue;
    }
    skip_ones();
    if (d == to.size()) return std::nullopt;
    Expr at = Expr::var(static_cast<int64_t>(d));
    if (to[d] != extent) {
      if (!extent.is_constant() || !to[d].is_constant()) return std::nullopt;
      int64_t size = to[d].size;
      while (size < extent.size && d + 1 < to.size() && to[d + 1].is_constant()) {
        ++d;
        size *= to[d].size;
        at = at * Expr::index(to[d].size) + Expr::var(static_cast<int64_t>(d));
      }
      if (size != extent.size) return std::nullopt;
    }
    ++d;
    index.push_back(at);
  }
  skip_ones();
  return d == to.size() ? std::optional(index) : std::nullopt;
}

/// Lowers an Alias that splits dimensions to a Map.
Lowered lower_alias(const ir::Op& op) {
  const Value from = op.operands.at(0);
  Lowered low;
  low.out = op.results[0].type.shape;
  ExprNode read{.op = ScalarOp::read,
                .dtype = compute_dtype(from.dtype()),
                .args = index_of_split(from.shape(), low.out).value()};
  low.bodies.push_back(Expr(std::make_shared<const ExprNode>(std::move(read))));
  return low;
}

}  // namespace

bool is_groupable(const ir::Op& op) {
  if (is_alias(op)) {
    const Value from = op.operands.at(0);
    return !from.type().layout && !op.results[0].type.layout &&
           index_of_split(from.shape(), op.results[0].type.shape).has_value();
  }
  const Lower& lower = *def_of(op).lower;
  return std::holds_alternative<Map>(lower) || std::holds_alternative<Reduce>(lower);
}

RootBuilder::RootBuilder(std::span<const ir::Op* const> ops, std::span<const Value> outputs,
                         std::span<const Value> inputs, LoweringCache& cache)
    : members_(ops.begin(), ops.end()), lowering_cache_(cache) {
  std::ranges::sort(members_);
  group.inputs.assign(inputs.begin(), inputs.end());
  group.outputs.assign(outputs.begin(), outputs.end());
}

bool RootBuilder::build() {
  for (size_t slot = 0; slot < group.outputs.size(); ++slot) {
    const Value& v = group.outputs[slot];
    if (!is_member(v.op())) return false;
    if (lowering_cache_.lower(v.op()).combine) {
      const int root = add_reduction(v.op());
      group.roots[static_cast<size_t>(root)].outputs[static_cast<size_t>(v.index())] =
          static_cast<int>(slot);
    } else {
      add_map(v, static_cast<int>(slot));
    }
  }
  return inlinable_;
}

const Lowered& LoweringCache::lower(const ir::Op* op) {
  const auto [it, added] = lowered_.try_emplace(kinds.kind_id(*op));
  if (added) {
    it->second = is_alias(*op) ? lower_alias(*op) : lower_op(*op);
    contract_to_fma(it->second);
  }
  return it->second;
}

int64_t RootBuilder::new_var(const Dim& extent) {
  if (extent.is(1)) return -1;
  group.extents.push_back(extent);
  return static_cast<int64_t>(group.extents.size()) - 1;
}

RootBuilder::IterationDomain RootBuilder::new_iteration_domain(const Lowered& lowered) {
  IterationDomain domain;
  for (const Dim& d : lowered.out) domain.out.push_back(new_var(d));
  for (const Dim& d : lowered.reduce) domain.reduce.push_back(new_var(d));
  for (const auto* vars : {&domain.out, &domain.reduce}) {
    for (int64_t v : *vars) domain.index.push_back(v < 0 ? zero_ : Expr::var(v));
  }
  for (Expr& e : domain.index) e = intern_(e);
  return domain;
}

void RootBuilder::add_map(const Value& output, int output_index) {
  const ir::Op* op = output.op();
  auto it = map_domains_.find(op);
  if (it == map_domains_.end()) {
    it = map_domains_.emplace(op, new_iteration_domain(lowering_cache_.lower(op))).first;
    record_read(Value(output.op(), 0), it->second.index);
  }
  FusionRoot root;
  root.op = op;
  root.outputs = {output_index};
  root.result = output.index();
  root.out = it->second.out;
  root.body = inline_map(output, it->second.index, kTrue);
  group.roots.push_back(std::move(root));
}

int RootBuilder::add_reduction(const ir::Op* op) {
  if (auto it = reductions_.find(op); it != reductions_.end()) return it->second;
  const Lowered& low = lowering_cache_.lower(op);
  const IterationDomain domain = new_iteration_domain(low);
  FusionRoot root;
  root.op = op;
  root.outputs.assign(op->results.size(), -1);
  root.out = domain.out;
  root.reduce = domain.reduce;
  root.combine = low.combine;
  root.body = intern_(inline_operands(op, low.bodies.at(0), domain.index, kTrue));
  group.roots.push_back(std::move(root));
  const int id = static_cast<int>(group.roots.size()) - 1;
  reductions_[op] = id;
  return id;
}

Expr RootBuilder::inline_operands(const ir::Op* op, const Expr& body,
                                  const std::vector<Expr>& index, const Expr& mask) {
  return rewrite(body, [&](const Expr& e) -> Expr {
    if (e.op() == ScalarOp::var) return index.at(static_cast<size_t>(e.node().ivalue));
    if (e.op() == ScalarOp::read) return inline_read(op, e, mask);
    return {};
  });
}

Expr RootBuilder::inline_read(const ir::Op* op, const Expr& read, const Expr& mask) {
  const Value v = op->operands.at(static_cast<size_t>(read.node().ivalue));
  std::vector<Expr> index = read.args();
  Expr guard = kTrue;
  for (size_t d = 0; d < index.size(); ++d) {
    const Dim& extent = v.shape()[d];
    if (read.node().guarded) guard = logical_and(guard, in_range(index[d], extent, group.extents));
    index[d] = extent.is(1) && !read.node().checked ? zero_ : intern_(index[d]);
  }
  if (!is_member(v.op())) return read_input(read, v, std::move(index), logical_and(mask, guard));
  if (read.node().checked) inlinable_ = false;
  Expr inside;
  if (lowering_cache_.lower(v.op()).combine) {
    const int root = add_reduction(v.op());
    group.roots[static_cast<size_t>(root)].read_by_root = true;
    ExprNode let{.op = ScalarOp::let, .dtype = compute_dtype(v.dtype()), .args = std::move(index)};
    let.ivalue = root * 2 + v.index();
    inside = Expr(std::make_shared<const ExprNode>(std::move(let)));
  } else {
    record_read(Value(v.op(), 0), index);
    inside = inline_map(v, index, intern_(logical_and(mask, guard)));
  }
  if (is_constant(guard, 1)) return inside;
  return scalar::select(guard, inside, Expr::constant(inside.dtype(), read.node().fvalue));
}

Expr RootBuilder::inline_map(const Value& v, const std::vector<Expr>& index, const Expr& mask) {
  const auto address = [](const void* p) { return reinterpret_cast<uintptr_t>(p); };
  std::vector<uintptr_t> key = {address(v.op()), static_cast<uintptr_t>(v.index()),
                                address(intern_(mask).get())};
  for (const Expr& e : index) key.push_back(address(intern_(e).get()));
  if (auto it = inlined_.find(key); it != inlined_.end()) return it->second;
  const Expr body = lowering_cache_.lower(v.op()).bodies.at(static_cast<size_t>(v.index()));
  const Expr e = intern_(scalar::cast(inline_operands(v.op(), body, index, mask), v.dtype()));
  inlined_[key] = e;
  return e;
}

Expr RootBuilder::read_input(const Expr& read, const Value& v, std::vector<Expr> index,
                             const Expr& mask) {
  record_read(v, index);
  ExprNode n = read.node();
  n.ivalue = input_index(v);
  n.args = std::move(index);
  n.guarded = false;
  if (!is_constant(mask, 1)) n.args.push_back(mask);
  return intern_(Expr(std::make_shared<const ExprNode>(std::move(n))));
}

void RootBuilder::record_read(const Value& value, const std::vector<Expr>& index) {
  auto it = std::find_if(value_reads.begin(), value_reads.end(),
                         [&](const ValueReads& a) { return a.value == value; });
  if (it == value_reads.end()) it = value_reads.insert(it, ValueReads{value, {}});
  const bool known = std::ranges::any_of(it->reads, [&](const std::vector<Expr>& read) {
    return std::ranges::equal(read, index, {}, &Expr::get, &Expr::get);
  });
  if (!known) it->reads.push_back(index);
}

bool RootBuilder::is_member(const ir::Op* op) const {
  return std::ranges::binary_search(members_, op);
}

int RootBuilder::input_index(const Value& v) {
  const auto it = std::find(group.inputs.begin(), group.inputs.end(), v);
  const auto position = static_cast<int>(it - group.inputs.begin());
  if (it == group.inputs.end()) group.inputs.push_back(v);
  return position;
}

}  // namespace fluid
