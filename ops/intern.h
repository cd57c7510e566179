#pragma once

#include <unordered_set>

#include "ops/node_numbers.h"

namespace fluid {

/// Hash-consing of expressions: structurally equal expressions become the same node, and can be
/// compared by pointer.
class Interner {
 public:
  Expr operator()(const Expr& e);

 private:
  /// Compares nodes whose arguments are interned.
  struct NodeHash {
    size_t operator()(const Expr& e) const;
  };
  struct NodeEqual {
    bool operator()(const Expr& a, const Expr& b) const;
  };
  struct Interned {
    Expr source;  ///< keeps the node alive, so that no other node gets its address
    Expr result;
  };

  std::unordered_set<Expr, NodeHash, NodeEqual> nodes_;
  NodeMap<Interned> done_;
};

}  // namespace fluid
