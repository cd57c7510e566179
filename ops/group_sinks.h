#pragma once

#include <map>
#include <set>

#include "ops/group.h"
#include "ops/intern.h"

namespace fluid {

/// Builds the sinks of a group. Each sink gets a body and loop variables of its own.
class SinkBuilder {
 public:
  SinkBuilder(std::span<const ir::Op* const> ops, std::span<const Value> outputs,
              std::span<const Value> inputs, LoweredOps& lowered);

  /// Returns false when a read inside the group cannot be inlined because its index comes from
  /// data.
  bool build();

  /// A value and the indices of each read of it. Reads of one value suggest which variables of
  /// different sinks to unify.
  struct Anchor {
    Value place;
    std::vector<std::vector<Expr>> reads;
  };

  Group group;
  std::vector<Anchor> anchors;  ///< in order of first read

 private:
  struct Domain {
    std::vector<int64_t> out, reduce;
    std::vector<Expr> index;  ///< `out`, then `reduce`
  };
  Domain new_domain(const Lowered& lowered);
  int64_t new_var(const Dim& extent);
  void add_map(const Value& output, int slot);
  int reduction(const ir::Op* op);
  Expr expand(const ir::Op* op, const Expr& body, const std::vector<Expr>& index, const Expr& mask);
  Expr read(const ir::Op* op, const Expr& e, const Expr& mask);
  Expr inline_map(const Value& v, const std::vector<Expr>& index, const Expr& mask);
  Expr in_range(const Expr& index, const Dim& extent) const;
  Expr input_read(const Expr& read, const Value& v, std::vector<Expr> index, const Expr& mask);
  int input(const Value& v);
  void note_read(const Value& place, const std::vector<Expr>& index);

  std::set<const ir::Op*> members_;
  LoweredOps& lowered_;
  std::map<const ir::Op*, int> reductions_;
  std::map<const ir::Op*, Domain> map_domains_;
  std::map<std::vector<const void*>, Expr> inlined_;
  Interner intern_;
  bool possible_ = true;
};

}  // namespace fluid
