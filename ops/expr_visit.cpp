#include <map>
#include <unordered_map>
#include <unordered_set>

#include "ir/error.h"
#include "ops/expr.h"

namespace fluid {
namespace {

class Rewriter {
 public:
  explicit Rewriter(const std::function<Expr(const Expr&)>& replace) : replace_(replace) {}

  Expr run(const Expr& e) {
    if (const auto known = done_.find(e.get()); known != done_.end()) return known->second;
    const Expr rebuilt = rebuild(e);
    // Folding may replace the node by one of its arguments (x + 0 by x). That argument has already
    // been rewritten, so `replace_` is not called again.
    const Expr replaced = rebuilt.op() == e.op() ? replace_(rebuilt) : Expr();
    return done_[e.get()] = replaced ? replaced : rebuilt;
  }

 private:
  Expr rebuild(const Expr& e) {
    std::vector<Expr> args;
    bool changed = false;
    for (const Expr& a : e.args()) {
      args.push_back(run(a));
      changed = changed || args.back().get() != a.get();
    }
    if (!changed) return e;
    if (e.op() >= ScalarOp::add && e.op() <= ScalarOp::cast) {
      return Expr::make(e.op(), e.dtype(), std::move(args));
    }
    ExprNode node = e.node();
    node.args = std::move(args);
    return Expr(std::make_shared<const ExprNode>(std::move(node)));
  }

  const std::function<Expr(const Expr&)>& replace_;
  std::unordered_map<const ExprNode*, Expr> done_;
};

void visit_nodes(const Expr& e, const std::function<void(const Expr&)>& visit,
                 std::unordered_set<const ExprNode*>& seen) {
  if (!seen.insert(e.get()).second) return;
  for (const Expr& a : e.args()) visit_nodes(a, visit, seen);
  visit(e);
}

Affine combined(const Affine& a, const Affine& b, int64_t scale_b) {
  std::map<int64_t, int64_t> terms(a.terms.begin(), a.terms.end());
  for (const auto& [var, coefficient] : b.terms) terms[var] += scale_b * coefficient;
  Affine sum;
  sum.offset = a.offset + scale_b * b.offset;
  for (const auto& term : terms) {
    if (term.second != 0) sum.terms.push_back(term);
  }
  return sum;
}

}  // namespace

Expr rewrite(const Expr& e, const std::function<Expr(const Expr&)>& replace) {
  return Rewriter(replace).run(e);
}

void for_each_node(const Expr& e, const std::function<void(const Expr&)>& visit) {
  std::unordered_set<const ExprNode*> seen;
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
