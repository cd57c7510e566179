#include "ops/contract.h"

#include <unordered_map>
#include <unordered_set>

#include "ops/intern.h"

namespace fluid {
namespace {

Expr fma(const Expr& product, const Expr& to) {
  return Expr::make(ScalarOp::fma, to.dtype(), {product.args()[0], product.args()[1], to});
}

Expr negated(const Expr& product) {
  return Expr::make(product.op(), product.dtype(), {-product.args()[0], product.args()[1]});
}

/// Contracts a product and the addition that uses it into an fma. Does not contract a product with
/// several uses, because each fma would recompute the product.
class Contraction {
 public:
  void count(const Expr& root) {
    ++uses_[root.get()];
    for_each_node(root, [&](const Expr& e) {
      if (!counted_.insert(e.get()).second) return;
      for (const Expr& arg : e.args()) ++uses_[arg.get()];
    });
  }

  Expr run(const Expr& e) {
    if (const auto found = done_.find(e.get()); found != done_.end()) return found->second;
    ExprNode n = e.node();
    for (Expr& arg : n.args) arg = run(arg);
    const bool sums = (n.op == ScalarOp::add || n.op == ScalarOp::sub) && is_float(n.dtype);
    Expr result;
    if (sums && is_lone_product(e.args()[0])) {
      result = fma(n.args[0], n.op == ScalarOp::add ? n.args[1] : -n.args[1]);
    } else if (sums && is_lone_product(e.args()[1])) {
      result = fma(n.op == ScalarOp::add ? n.args[1] : negated(n.args[1]), n.args[0]);
    } else {
      result = Expr(std::make_shared<const ExprNode>(std::move(n)));
    }
    return done_[e.get()] = result;
  }

 private:
  bool is_lone_product(const Expr& e) const {
    return e.op() == ScalarOp::mul && uses_.at(e.get()) == 1;
  }

  std::unordered_map<const ExprNode*, int> uses_;
  std::unordered_set<const ExprNode*> counted_;
  std::unordered_map<const ExprNode*, Expr> done_;
};

}  // namespace

void contract_to_fma(Lowered& lowered) {
  Interner intern;
  for (Expr& body : lowered.bodies) body = intern(body);
  Contraction contraction;
  for (const Expr& body : lowered.bodies) contraction.count(body);
  for (Expr& body : lowered.bodies) body = contraction.run(body);
  if (lowered.combine != Combine::sum) return;
  Expr& term = lowered.bodies.front();
  if (term.op() == ScalarOp::mul && is_float(term.dtype())) {
    term = Expr::make(ScalarOp::product, term.dtype(), term.args());
  }
}

}  // namespace fluid
