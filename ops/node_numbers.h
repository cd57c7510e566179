#pragma once

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "ops/expr.h"

namespace fluid {

/// Numbers the nodes of expressions 0, 1, 2... in the order of their insertion. A hash table with
/// linear probing, which allocates no memory for up to 48 nodes. No argument may be null.
class NodeNumbers {
 public:
  /// Returns the number of the node, and whether the node was inserted now.
  std::pair<int, bool> insert(const ExprNode* node) {
    if (4 * (size_ + 1) > 3 * capacity()) grow();
    Slot& slot = *find_slot(node);
    if (slot.node == node) return {slot.number, false};
    slot = {node, static_cast<int>(size_++)};
    return {slot.number, true};
  }
  /// Returns the number of the node, or -1 if the node was not inserted.
  int find(const ExprNode* node) const {
    const Slot& slot = *const_cast<NodeNumbers*>(this)->find_slot(node);
    return slot.node == node ? slot.number : -1;
  }
  bool contains(const ExprNode* node) const { return find(node) >= 0; }

 private:
  struct Slot {
    const ExprNode* node = nullptr;
    int number = 0;
  };
  static constexpr size_t kFew = 64;

  size_t capacity() const { return many_.empty() ? kFew : many_.size(); }

  /// Returns the slot of the node, or the empty slot where the node belongs.
  Slot* find_slot(const ExprNode* node) {
    Slot* slots = many_.empty() ? few_.data() : many_.data();
    const size_t mask = capacity() - 1;
    // Fibonacci hashing (Knuth, TAOCP 6.4) spreads addresses, whose low bits are equal.
    size_t i = (reinterpret_cast<uintptr_t>(node) * 0x9e3779b97f4a7c15) >> 40 & mask;
    while (slots[i].node != nullptr && slots[i].node != node) i = (i + 1) & mask;
    return slots + i;
  }

  void grow() {
    std::vector<Slot> old = std::move(many_);
    if (old.empty()) old.assign(few_.begin(), few_.end());
    many_.assign(2 * old.size(), Slot());
    for (const Slot& slot : old) {
      if (slot.node != nullptr) *find_slot(slot.node) = slot;
    }
  }

  std::array<Slot, kFew> few_{};
  std::vector<Slot> many_;  ///< used instead of few_ unless empty
  size_t size_ = 0;
};

/// A map from nodes to values, in the order of insertion.
template <class T>
class NodeMap {
 public:
  /// Returns null if the map has no value of the node.
  const T* find(const ExprNode* node) const {
    const int number = numbers_.find(node);
    return number < 0 ? nullptr : &values_[static_cast<size_t>(number)];
  }
  /// Stores the value of a node that has none.
  void add(const ExprNode* node, T value) {
    if (!numbers_.insert(node).second) return;
    if (values_.empty()) values_.reserve(16);
    values_.push_back(std::move(value));
  }

 private:
  NodeNumbers numbers_;
  std::vector<T> values_;
};

}  // namespace fluid
