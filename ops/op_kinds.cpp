#include "ops/op_kinds.h"

#include <algorithm>
#include <functional>
#include <map>
#include <string>

namespace fluid {
namespace {

/// Hash accumulator; combines hashes by the formula of boost::hash_combine.
class Hasher {
 public:
  template <class T>
  void add(const T& value) {
    hash_ ^= std::hash<T>()(value) + 0x9e3779b97f4a7c15 + (hash_ << 6) + (hash_ >> 2);
  }
  void add(const Type& type) {
    add(static_cast<int>(type.dtype));
    for (const Dim& d : type.shape) add(d.batch ? ~d.size : d.size);
  }
  void add(const GraphRef& graph) { add(graph.name); }
  template <class T>
  void add(const std::vector<T>& list) {
    for (const T& value : list) add(value);
  }
  void add(const Attrs& attrs) {
    for (const auto& [name, attr] : attrs) {
      std::visit([&](const auto& value) { add(value); }, attr);
    }
  }
  size_t hash() const { return hash_; }

 private:
  size_t hash_ = 0;
};

const Type& type_of_result(const ir::Result& result) { return result.type; }
const Type& type_of_value(const Value& value) { return value.type(); }

}  // namespace

size_t OpKinds::KindHash::operator()(const ir::Op* op) const {
  Hasher hasher;
  hasher.add(op->name);
  hasher.add(op->attrs);
  for (const ir::Result& result : op->results) hasher.add(result.type);
  return hasher.hash();
}

bool OpKinds::KindEqual::operator()(const ir::Op* a, const ir::Op* b) const {
  return a->name == b->name && a->attrs == b->attrs &&
         std::ranges::equal(a->results, b->results, {}, type_of_result, type_of_result) &&
         std::ranges::equal(a->operands, b->operands, {}, type_of_value, type_of_value);
}

int OpKinds::kind_id(const ir::Op& op) {
  const auto [known, added] = known_.try_emplace(&op, 0);
  if (added) known->second = kinds_.try_emplace(&op, static_cast<int>(kinds_.size())).first->second;
  return known->second;
}

GroupKey group_key(std::span<const ir::Op* const> ops, std::span<const Value> outputs,
                   OpKinds& kinds) {
  std::unordered_map<const ir::Op*, int> members;
  std::map<Value, int> inputs;  // input of the group -> its index, in order of first use
  GroupKey key = {static_cast<int>(ops.size())};
  const auto add_member = [&](const Value& v) {
    key.push_back(members.at(v.op()));
    key.push_back(v.index());
  };
  for (const ir::Op* op : ops) {
    key.push_back(kinds.kind_id(*op));
    for (const Value& v : op->operands) {
      if (members.contains(v.op())) {
        add_member(v);
      } else {
        key.push_back(-1);
        key.push_back(inputs.try_emplace(v, static_cast<int>(inputs.size())).first->second);
      }
    }
    members.emplace(op, static_cast<int>(members.size()));
  }
  for (const Value& v : outputs) add_member(v);
  return key;
}

size_t GroupKeyHash::operator()(const GroupKey& key) const {
  Hasher hasher;
  hasher.add(key);
  return hasher.hash();
}

}  // namespace fluid
