#include <map>

#include "ir/error.h"
#include "ops/expr.h"
#include "ops/node_numbers.h"

namespace fluid {
namespace {

class Rewriter {
 public:
  explicit Rewriter(FunctionRef<Expr(const Expr&)> replace) : replace_(replace) {}

  Expr run(const Expr& e) {
    if (const Expr* known = done_.find(e.get())) return *known;
    const Expr rebuilt = rebuild(e);
    // Folding may replace the node by one of its arguments (x + 0 by x). That argument has already
    // been rewritten, so `replace_` is not called again.
    const Expr replaced = rebuilt.op() == e.op() ? replace_(rebuilt) : Expr();
    const Expr& result = replaced ? replaced : rebuilt;
    done_.add(e.get(), result);
    return result;
  }

 private:
  Expr rebuild(const Expr& e) {
    std::vector<Expr> args = changed_args(e, [&](const Expr& arg) { return run(arg); });
    if (args.empty()) return e;
    if (e.op() >= ScalarOp::add && e.op() <= ScalarOp::cast) {
      return Expr::make(e.op(), e.dtype(), std::move(args));
    }
    return with_args(e, std::move(args));
  }

  FunctionRef<Expr(const Expr&)> replace_;
  NodeMap<Expr> done_;
};

void visit_nodes(const Expr& e, FunctionRef<void(const Expr&)> visit, NodeNumbers& seen) {
  if (!seen.insert(e.get()).second) return;
  for (const Expr& a : e.args()) visit_nodes(a, visit, seen);
  visit(e);
}

/// Returns a + scale * b, with wrap-around on overflow, as the generated code computes it.
int64_t wrapping_sum(int64_t a, int64_t scale, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) +
                              static_cast<uint64_t>(scale) * static_cast<uint64_t>(b));
}

Affine combined(const Affine& a, const Affine& b, int64_t scale_b) {
  std::map<int64_t, int64_t> terms(a.terms.begin(), a.terms.end());
  for (const auto& [var, coefficient] : b.terms) {
    terms[var] = wrapping_sum(terms[var], scale_b, coefficient);
  }
  Affine sum;
  sum.offset = wrapping_sum(a.offset, scale_b, b.offset);
  for (const auto& term : terms) {
    if (term.second != 0) sum.terms.push_back(term);
  }
  return sum;
}

}  // namespace

Expr with_args(const Expr& e, std::vector<Expr> args) {
  const ExprNode& n = e.node();
  return Expr(std::make_shared<const ExprNode>(
      ExprNode{n.op, n.dtype, std::move(args), n.ivalue, n.fvalue, n.guarded, n.checked}));
}

std::vector<Expr> changed_args(const Expr& e, FunctionRef<Expr(const Expr&)> change) {
  std::vector<Expr> args;
  for (size_t i = 0; i < e.args().size(); ++i) {
    Expr arg = change(e.args()[i]);
    if (args.empty() && arg.get() != e.args()[i].get()) args = e.args();
    if (!args.empty()) args[i] = std::move(arg);
  }
  return args;
}

Expr rewrite(const Expr& e, FunctionRef<Expr(const Expr&)> replace) {
  return Rewriter(replace).run(e);
}

void for_each_node(const Expr& e, FunctionRef<void(const Expr&)> visit) {
  NodeNumbers seen;
  visit_nodes(e, visit, seen);
}

int64_t Affine::coefficient(int64_t var) const {
  for (const auto& [v, coefficient] : terms) {
    if (v == var) return coefficient;
  }
  return 0;
}

std::optional<Affine> as_affine(const Expr& e) {
  if (e.dtype() != DType::i64) return std::nullopt;
  if (is_constant(e)) return Affine{{}, e.node().ivalue};
  if (e.op() == ScalarOp::var) return Affine{{{e.node().ivalue, 1}}, 0};
  if (e.op() != ScalarOp::add && e.op() != ScalarOp::sub && e.op() != ScalarOp::mul &&
      e.op() != ScalarOp::neg) {
    return std::nullopt;
  }
  const std::optional<Affine> a = as_affine(e.args()[0]);
  if (!a) return std::nullopt;
  if (e.op() == ScalarOp::neg) return combined({}, *a, -1);
  const std::optional<Affine> b = as_affine(e.args()[1]);
  if (!b) return std::nullopt;
  if (e.op() == ScalarOp::add) return combined(*a, *b, 1);
  if (e.op() == ScalarOp::sub) return combined(*a, *b, -1);
  if (b->terms.empty()) return combined({}, *a, b->offset);
  if (a->terms.empty()) return combined({}, *b, a->offset);
  return std::nullopt;
}

}  // namespace fluid
