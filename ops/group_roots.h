#pragma once

#include <map>

#include "ops/group.h"
#include "ops/intern.h"

namespace fluid {

/// Builds the roots of a group. Each root gets its own body and its own loop variables.
class RootBuilder {
 public:
  RootBuilder(std::span<const ir::Op* const> ops, std::span<const Value> outputs,
              std::span<const Value> inputs, LoweringCache& cache);

  /// Fills in `group`. Returns false if the group cannot become a kernel: an op of the group reads
  /// a result of the group at a data-dependent index, or an output is not a result of the group.
  bool build();

  /// A value and the distinct index expressions of its reads. If several roots read the value,
  /// VariableUnifier may unify the loop variables in these indices.
  struct ValueReads {
    Value value;
    std::vector<std::vector<Expr>> reads;
  };

  Group group;
  std::vector<ValueReads> value_reads;  ///< one entry per value, in order of first read

 private:
  /// The loop variables of a root; -1 for a dimension of extent 1.
  struct IterationDomain {
    std::vector<int64_t> out, reduce;
    /// Index expressions of `out`, then of `reduce`. A dimension of extent 1 has index 0.
    std::vector<Expr> index;
  };
  IterationDomain new_iteration_domain(const Lowered& lowered);
  int64_t new_var(const Dim& extent);
  void add_map(const Value& output, int output_index);
  int add_reduction(const ir::Op* op);
  Expr inline_operands(const ir::Op* op, const Expr& body, const std::vector<Expr>& index,
                       const Expr& mask);
  Expr inline_read(const ir::Op* op, const Expr& read, const Expr& mask);
  Expr inline_map(const Value& v, const std::vector<Expr>& index, const Expr& mask);
  Expr read_input(const Expr& read, const Value& v, std::vector<Expr> index, const Expr& mask);
  bool is_member(const ir::Op* op) const;
  int input_index(const Value& v);
  void record_read(const Value& value, const std::vector<Expr>& index);

  std::vector<const ir::Op*> members_;  ///< sorted
  LoweringCache& lowering_cache_;
  std::map<const ir::Op*, int> reductions_;
  std::map<const ir::Op*, IterationDomain> map_domains_;
  /// The key is the op, the index of its result, and the interned mask and index expressions.
  std::map<std::vector<uintptr_t>, Expr> inlined_;
  Interner intern_;
  Expr zero_ = intern_(Expr::index(0));
  bool inlinable_ = true;
};

}  // namespace fluid
