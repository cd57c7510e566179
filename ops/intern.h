#pragma once

#include <map>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "ops/expr.h"

namespace fluid {

/// Hash-consing of expressions: structurally equal expressions become the same node, and can be
/// compared by pointer.
class Interner {
 public:
  Expr operator()(const Expr& e);

 private:
  using Key =
      std::tuple<ScalarOp, DType, int64_t, uint64_t, bool, bool, std::vector<const ExprNode*>>;
  Expr intern_node(const Expr& e);

  std::map<Key, Expr> nodes_;
  /// Maps a node to {an expression that keeps the node alive, the equal interned expression}.
  std::unordered_map<const ExprNode*, std::pair<Expr, Expr>> seen_;
};

}  // namespace fluid
