#pragma once

#include <cstddef>
#include <span>
#include <unordered_map>
#include <vector>

#include "ir/graph.h"

namespace fluid {

/// Numbers ops by what they compute of their operands, whatever these are: ops of one kind have one
/// name and equal attributes, operand types and result types, so they lower to the same
/// expressions. Layers that repeat have few kinds. The ops must live, unchanged, as long as this
/// does.
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
  std::unordered_map<const ir::Op*, int, Hash, Equal> kinds_;  ///< by the first op of each
};

/// Says how a group of ops reads and what it yields. Groups of equal keys become equal kernels of
/// different values.
using GroupKey = std::vector<int>;
GroupKey key_of_group(std::span<const ir::Op* const> ops, std::span<const Value> outputs,
                      OpKinds& kinds);

struct GroupKeyHash {
  size_t operator()(const GroupKey& key) const;
};

}  // namespace fluid
