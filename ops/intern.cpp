#include "ops/intern.h"

#include <bit>

namespace fluid {

Expr Interner::operator()(const Expr& e) {
  if (!e) return e;
  if (auto it = seen_.find(e.get()); it != seen_.end()) return it->second.second;
  ExprNode copy = e.node();
  for (Expr& arg : copy.args) arg = (*this)(arg);
  Expr result = intern_node(Expr(std::make_shared<const ExprNode>(std::move(copy))));
  seen_.emplace(e.get(), std::pair(e, result));
  seen_.emplace(result.get(), std::pair(result, result));
  return result;
}

Expr Interner::intern_node(const Expr& e) {
  const ExprNode& n = e.node();
  std::vector<const ExprNode*> args;
  for (const Expr& arg : n.args) args.push_back(arg.get());
  Key key(n.op, n.dtype, n.ivalue, std::bit_cast<uint64_t>(n.fvalue), n.guarded, n.checked,
          std::move(args));
  return nodes_.emplace(std::move(key), e).first->second;
}

}  // namespace fluid
