#include "ops/operators.h"
#include "ops/record.h"
#include "ops/table.h"
#include "passes/passes.h"
#include "passes/rewrite.h"

// No table of algebraic rules: an op is lowered to its scalar expression, what its operands compute
// is substituted, and the expression's own folding does the rest. When a plain read or a constant
// remains, the op was not needed. This covers x + 0, x * 1, -(-x), double transposes, casts to the
// same type, slices of everything, reductions over extents of one, and constants of any depth.

namespace fluid {
namespace {

using Substitute = std::function<bool(const ir::Op&)>;

bool is_pure_map(const ir::Op& op) {
  const OpDef& def = def_of(op);
  return std::holds_alternative<Map>(*def.lower) && std::holds_alternative<Pure>(*def.effects) &&
         op.results.size() == 1;
}

/// A scalar expression over elements of values: read nodes count into `leaves`.
struct Body {
  Expr expr;
  Values leaves;
};

int64_t leaf(Values& leaves, Value v) {
  const auto at = std::ranges::find(leaves, v);
  if (at != leaves.end()) return at - leaves.begin();
  leaves.push_back(v);
  return static_cast<int64_t>(leaves.size()) - 1;
}

Expr with_reads_of(const Expr& e, const Values& operands, Values& leaves) {
  return rewrite(e, [&](const Expr& node) {
    if (node.op() != Scalar::read) return Expr();
    ExprNode read = node.node();
    read.ivalue = leaf(leaves, operands.at(static_cast<size_t>(read.ivalue)));
    return Expr(std::make_shared<const ExprNode>(std::move(read)));
  });
}

Expr at_index(const Expr& body, const std::vector<Expr>& index) {
  return rewrite(body, [&](const Expr& node) {
    return node.op() == Scalar::var ? index.at(static_cast<size_t>(node.node().ivalue)) : Expr();
  });
}

/// Rounding to a half is part of the value, and guarded or checked reads have a range to respect.
bool may_substitute(const Expr& read, Value from) {
  return !read.node().guarded && !read.node().checked && !is_half(from.dtype()) &&
         from.op()->results.size() == 1 && is_pure_map(*from.op());
}

/// The op's expression with the operands that `substitute` picks replaced by what they compute.
Body body_of(const ir::Op& op, const Expr& own, const Substitute& substitute) {
  Body body;
  std::map<int64_t, Expr> of_operand;
  body.expr = rewrite(own, [&](const Expr& node) {
    if (node.op() != Scalar::read) return Expr();
    const Value from = op.operands.at(static_cast<size_t>(node.node().ivalue));
    if (may_substitute(node, from) && substitute(*from.op())) {
      const Expr inner = lower_op(*from.op()).bodies.at(0);
      return with_reads_of(at_index(inner, node.args()), from.op()->operands, body.leaves);
    }
    ExprNode read = node.node();
    read.ivalue = leaf(body.leaves, from);
    return Expr(std::make_shared<const ExprNode>(std::move(read)));
  });
  return body;
}

/// Whether the read takes element (i0, i1, ...) for result element (i0, i1, ...): extents of one
/// aside, which may be missing on either side.
bool reads_in_order(const Expr& read, Value from, const Type& result) {
  std::vector<Expr> index;
  std::vector<Dim> extents;
  for (size_t d = 0; d < from.shape().size(); ++d) {
    if (from.shape()[d].is(1)) continue;
    index.push_back(read.args().at(d));
    extents.push_back(from.shape()[d]);
  }
  size_t next = 0;
  for (size_t d = 0; d < result.shape.size(); ++d) {
    if (result.shape[d].is(1)) continue;
    if (next == index.size() || extents[next] != result.shape[d] ||
        !same(index[next], Expr::var(static_cast<int64_t>(d)))) {
      return false;
    }
    ++next;
  }
  return next == index.size();
}

Values replacement(ir::Op& op, const Body& body) {
  const Type& type = op.results.front().type;
  if (is_constant(body.expr) && !op.operands.empty()) {
    const ExprNode& c = body.expr.node();
    const double value = is_float(c.dtype) ? c.fvalue : static_cast<double>(c.ivalue);
    return {fill(*op.graph(), {.type = type, .value = value})};
  }
  if (body.expr.op() != Scalar::read || body.expr.node().guarded || body.expr.node().checked) {
    return {};
  }
  const Value from = body.leaves.at(static_cast<size_t>(body.expr.node().ivalue));
  if (from.dtype() != type.dtype || from.type().layout || type.layout) return {};
  if (!reads_in_order(body.expr, from, type)) return {};
  return {from.type() == type ? from : reshape(from, type.shape)};
}

/// The expression of a Map, or of a Reduce over extents of one.
Expr expression_of(const ir::Op& op) {
  const bool map = is_pure_map(op);
  const bool reduce = std::holds_alternative<Reduce>(*def_of(op).lower) && op.results.size() == 1;
  if (!map && !reduce) return {};
  const Lowered lowered = lower_op(op);
  const Expr body = lowered.bodies.at(0);
  if (map) return body;
  if (!std::ranges::all_of(lowered.reduce, [](const Dim& d) { return d.is(1); })) return {};
  std::vector<Expr> index;
  for (size_t d = 0; d < lowered.out.size(); ++d)
    index.push_back(Expr::var(static_cast<int64_t>(d)));
  index.resize(lowered.out.size() + lowered.reduce.size(), Expr::index(0));
  return at_index(body, index);
}

Values simplify_alias(ir::Op& op) {
  const Value from = op.operands.front();
  if (from.type() == op.results.front().type) return {from};
  if (!std::holds_alternative<Alias>(*def_of(*from.op()).lower)) return {};
  return {reshape(from.op()->operands.front(), op.results.front().type.shape)};
}

Values simplified(ir::Op& op) {
  if (std::holds_alternative<Alias>(*def_of(op).lower)) return simplify_alias(op);
  const Expr own = expression_of(op);
  if (!own) return {};
  const Substitute constants = [](const ir::Op& from) { return from.operands.empty(); };
  const Substitute all = [](const ir::Op&) { return true; };
  for (const Substitute& substitute : {constants, all}) {
    if (Values with = replacement(op, body_of(op, own, substitute)); !with.empty()) return with;
  }
  return {};
}

bool run(ir::Program& program, const Options&, const Target&) {
  bool changed = false;
  while (rewrite_ops(program.main(), simplified)) changed = true;
  return changed;
}

}  // namespace

Pass simplify_pass() {
  return {.name = "simplify",
          .doc = "Removes ops that only pass a value on, and computes what is constant.",
          .needs = {"typed"},
          .gives = {},
          .run = run};
}

}  // namespace fluid
