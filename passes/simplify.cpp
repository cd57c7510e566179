#include "ops/operators.h"
#include "ops/record.h"
#include "ops/table.h"
#include "passes/pass.h"
#include "passes/rewrite.h"

// Algebraic simplification and constant folding without a table of rewrite rules. The pass lowers
// an op to its scalar expression and substitutes the expressions of the operands. Expressions are
// folded on construction. If the result is a plain read or a constant, the read value or the
// constant replaces the op. This covers x - 0, x * 1, -(-x), double transposes, casts to the same
// type, full slices, reductions over extent 1, and constant folding.

namespace fluid {
namespace {

using Substitute = std::function<bool(const ir::Op&)>;

bool is_pure_map(const ir::Op& op) {
  const OpDef& def = def_of(op);
  return std::holds_alternative<Map>(*def.lower) && std::holds_alternative<Pure>(*def.effects) &&
         op.results.size() == 1;
}

/// The scalar expression of an op. In a read node, `ivalue` is an index into `leaves`, which holds
/// the operands of the op, then those of the substituted ops.
struct Body {
  Expr expr;
  Values leaves;
};

Expr with_leaf(const Expr& read, int64_t leaf) {
  ExprNode node = read.node();
  node.ivalue = leaf;
  return Expr(std::make_shared<const ExprNode>(std::move(node)));
}

Expr with_reads_of(const Expr& e, const Values& operands, Values& leaves) {
  const auto first = static_cast<int64_t>(leaves.size());
  leaves.insert(leaves.end(), operands.begin(), operands.end());
  return rewrite(e, [&](const Expr& node) {
    return node.op() == ScalarOp::read ? with_leaf(node, first + node.node().ivalue) : Expr();
  });
}

Expr at_index(const Expr& body, const std::vector<Expr>& index) {
  return rewrite(body, [&](const Expr& node) {
    return node.op() == ScalarOp::var ? index.at(static_cast<size_t>(node.node().ivalue)) : Expr();
  });
}

/// Whether `read`, a read of `from`, may be replaced by the expression of the op that computes
/// `from`. This op must be a Map without side effects and with one result. The replacement must not
/// lose a rounding to half precision, or the guard or index check of the read.
bool may_substitute(const Expr& read, Value from) {
  return !read.node().guarded && !read.node().checked && !is_half_precision(from.dtype()) &&
         from.op()->results.size() == 1 && is_pure_map(*from.op());
}

/// Returns `expr`, the scalar expression of `op`, after substitution of operands: a read of an
/// operand becomes the expression of the op that computes the operand. Substitutes only if
/// `substitute` and may_substitute() allow it.
Body body_of(const ir::Op& op, const Expr& expr, const Substitute& substitute) {
  Body body{expr, op.operands};
  const auto count = static_cast<int64_t>(op.operands.size());
  body.expr = rewrite(expr, [&](const Expr& node) {
    if (node.op() != ScalarOp::read || node.node().ivalue >= count) return Expr();
    const Value from = op.operands.at(static_cast<size_t>(node.node().ivalue));
    if (!may_substitute(node, from) || !substitute(*from.op())) return Expr();
    const Expr inner = at_index(lower_op(*from.op()).bodies.at(0), node.args());
    return with_reads_of(inner, from.op()->operands, body.leaves);
  });
  return body;
}

/// Whether element (i0, i1, ...) of the result reads element (i0, i1, ...) of `from`. Ignores
/// dimensions of extent 1.
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
        !structurally_equal(index[next], Expr::var(static_cast<int64_t>(d)))) {
      return false;
    }
    ++next;
  }
  return next == index.size();
}

/// Whether `value` is exactly representable as a double, the type of the attribute of `fill`.
bool fits_double(int64_t value) {
  const auto rounded = static_cast<double>(value);
  return rounded < 0x1p63 && static_cast<int64_t>(rounded) == value;
}

/// A `fill` op that replaces `op`, if `e` is a constant that `fill` can represent; else no values.
Values constant(const ir::Op& op, const Expr& e) {
  if (!is_constant(e) || !fits_double(e.node().ivalue)) return {};
  const double value = is_float(e.dtype()) ? e.node().fvalue : static_cast<double>(e.node().ivalue);
  return {fill(*op.graph(), {.type = op.results.front().type, .value = value}, op.loc)};
}

Values replacement(ir::Op& op, const Body& body) {
  const Type& type = op.results.front().type;
  if (is_constant(body.expr)) return op.operands.empty() ? Values() : constant(op, body.expr);
  if (body.expr.op() != ScalarOp::read || body.expr.node().guarded || body.expr.node().checked) {
    return {};
  }
  const Value from = body.leaves.at(static_cast<size_t>(body.expr.node().ivalue));
  if (from.dtype() != type.dtype || from.type().layout || type.layout) return {};
  if (!reads_in_order(body.expr, from, type)) return {};
  return {from.type() == type ? from : reshape(from, type.shape, op.loc)};
}

/// The scalar expression of a Map, or of a Reduce whose reduced dimensions all have extent 1. Null
/// for other ops.
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
  const Type& type = op.results.front().type;
  if (is_pure_map(*from.op()) && from.op()->operands.empty()) {
    if (const Values with = constant(op, lower_op(*from.op()).bodies.at(0)); !with.empty()) {
      return with;
    }
  }
  if (!is_alias(*from.op())) return {};
  return {reshape(from.op()->operands.front(), type.shape, op.loc)};
}

Values simplified(ir::Op& op) {
  if (is_alias(op)) return simplify_alias(op);
  const Expr own = expression_of(op);
  if (!own) return {};
  const Substitute constants = [](const ir::Op& from) { return from.operands.empty(); };
  const Substitute all = [](const ir::Op&) { return true; };
  for (const Substitute& substitute : {constants, all}) {
    if (Values with = replacement(op, body_of(op, own, substitute)); !with.empty()) return with;
  }
  return {};
}

bool run_simplify(ir::Program& program, const Options&, const Target&) {
  bool changed = false;
  while (rewrite_ops(program.main(), simplified)) changed = true;
  return changed;
}

}  // namespace

Pass simplify_pass() {
  return {.name = "simplify",
          .doc = "Folds constants and removes ops whose result is one of their operands.",
          .needs = {"typed"},
          .provides = {},
          .run = run_simplify};
}

}  // namespace fluid
