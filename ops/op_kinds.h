#pragma once

#include <cstddef>
#include <span>
#include <unordered_map>
#include <vector>

#include "ir/graph.h"

namespace fluid {

/// Assigns ids to kinds of ops. Ops with equal names, attributes, operand types and result types
/// have the same kind, and lower to the same expressions. Repeated layers share kinds. The ops must
/// outlive the OpKinds object and stay unchanged.
class OpKinds {
 public:
  int kind_id(const ir::Op& op);

 private:
  struct KindHash {
    size_t operator()(const ir::Op* op) const;
  };
  struct KindEqual {
    bool operator()(const ir::Op* a, const ir::Op* b) const;
  };
  std::unordered_map<const ir::Op*, int> known_;
  /// Maps the first op of each kind to the id of the kind.
  std::unordered_map<const ir::Op*, int, KindHash, KindEqual> kinds_;
};

/// Encodes the structure of a group of ops: kinds of the ops, data flow between them, and outputs.
/// Groups with equal keys compile to the same kernel.
using GroupKey = std::vector<int>;
GroupKey group_key(std::span<const ir::Op* const> ops, std::span<const Value> outputs,
                   OpKinds& kinds);

struct GroupKeyHash {
  size_t operator()(const GroupKey& key) const;
};

}  // namespace fluid
