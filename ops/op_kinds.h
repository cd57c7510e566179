#pragma once

#include <cstddef>
#include <span>
#include <unordered_map>
#include <vector>

#include "ir/graph.h"

namespace fluid {

/// Numbers ops by kind. Ops of one kind have equal names, attributes, operand types and result
/// types, so they lower to the same expressions. Repeated layers have few kinds. The ops must
/// outlive the OpKinds object, unchanged.
class OpKinds {
 public:
  int of(const ir::Op& op);

 private:
  struct Hash {
    size_t operator()(const ir::Op* op) const;
  };
  struct Equal {
    bool operator()(const ir::Op* a, const ir::Op* b) const;
  };
  std::unordered_map<const ir::Op*, int> known_;
  std::unordered_map<const ir::Op*, int, Hash, Equal> kinds_;  ///< key: first op of a kind
};

/// Structure of a group: kinds of the ops, their data flow, and the outputs. Groups with equal keys
/// compile to the same kernel.
using GroupKey = std::vector<int>;
GroupKey key_of_group(std::span<const ir::Op* const> ops, std::span<const Value> outputs,
                      OpKinds& kinds);

struct GroupKeyHash {
  size_t operator()(const GroupKey& key) const;
};

}  // namespace fluid
