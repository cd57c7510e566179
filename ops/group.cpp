#include "ops/group.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "ops/group_roots.h"
#include "ops/kernel_ir.h"

namespace fluid {
namespace {

using Vars = std::vector<int64_t>;

bool contains(const Vars& vars, int64_t v) { return std::ranges::find(vars, v) != vars.end(); }

Vars intersection(const Vars& a, const Vars& b) {
  Vars both;
  std::ranges::copy_if(a, std::back_inserter(both), [&](int64_t v) { return contains(b, v); });
  return both;
}

Vars difference(const Vars& a, const Vars& b) {
  Vars rest;
  std::ranges::copy_if(a, std::back_inserter(rest), [&](int64_t v) { return !contains(b, v); });
  return rest;
}

bool subset(const Vars& a, const Vars& b) { return intersection(a, b).size() == a.size(); }

/// Returns `vars` without its entries -1, which mark dimensions of extent 1.
Vars non_unit(const Vars& vars) {
  Vars kept;
  std::ranges::copy_if(vars, std::back_inserter(kept), [](int64_t v) { return v >= 0; });
  return kept;
}

Vars all_vars(const FusionRoot& root) {
  Vars all = non_unit(root.out);
  for (int64_t v : non_unit(root.reduce)) all.push_back(v);
  return all;
}

bool reads_data(const Expr& index) {
  bool reads = false;
  for_each_node(index, [&](const Expr& e) { reads |= e.op() == ScalarOp::read; });
  return reads;
}

std::vector<Expr> lets_of(const Expr& body) {
  std::vector<Expr> lets;
  for_each_node(body, [&](const Expr& e) {
    if (e.op() == ScalarOp::let) lets.push_back(e);
  });
  return lets;
}

// Maximum number of columns of a column reduction (see reduces_to_columns()). With more columns, a
// loop over the columns gives enough blocks.
constexpr int64_t kMaxColumns = 1024;
// Minimum number of rows of a column reduction. With fewer rows, partial results per block do not
// pay off.
constexpr int64_t kMinColumnRows = 1024;

/// Returns the innermost dimension in memory whose extent is not 1. Returns the rank if there is
/// none or if the layout is blocked.
size_t innermost_dimension(const Type& type) {
  const size_t rank = type.shape.size();
  if (type.layout && !type.layout->blocks.empty()) return rank;
  for (size_t i = rank; i-- > 0;) {
    const size_t d = type.layout ? static_cast<size_t>(type.layout->order[i]) : i;
    if (!type.shape[d].is(1)) return d;
  }
  return rank;
}

int64_t nominal_points(const Group& group, const Vars& vars) {
  int64_t n = 1;
  for (int64_t v : vars) n *= group.extents[static_cast<size_t>(v)].at(kir::kNominalBatch);
  return n;
}

/// Whether the root is a column reduction: it reduces many rows to few columns that are adjacent in
/// memory, for example the pixels of channels-last images to one value per channel.
bool reduces_to_columns(const Group& group, const FusionRoot& root) {
  const Vars columns = non_unit(root.out), reduced = non_unit(root.reduce);
  if (!root.combine || root.combine == Combine::argmax || columns.empty()) return false;
  if (nominal_points(group, columns) > kMaxColumns) return false;
  if (nominal_points(group, reduced) < kMinColumnRows) return false;
  bool adjacent = false, others = false;
  for_each_node(root.body, [&](const Expr& e) {
    if (e.op() != ScalarOp::read) return;
    const Type& type = group.inputs[static_cast<size_t>(e.node().ivalue)].type();
    const std::span index(e.args().data(), type.shape.size());
    const auto has_index = [&](int64_t v) {
      return std::ranges::any_of(
          index, [&](const Expr& i) { return i.op() == ScalarOp::var && i.node().ivalue == v; });
    };
    if (std::ranges::none_of(reduced, has_index)) return;  // invariant under the reduction
    const size_t last = innermost_dimension(type);
    const bool along = last < index.size() && index[last].op() == ScalarOp::var &&
                       contains(columns, index[last].node().ivalue);
    (along && std::ranges::all_of(columns, has_index) ? adjacent : others) = true;
  });
  return adjacent && !others;
}

class UnionFind {
 public:
  explicit UnionFind(size_t n) : parent_(n) { std::iota(parent_.begin(), parent_.end(), 0); }
  size_t find(size_t i) const {
    while (parent_[i] != i) i = parent_[i];
    return i;
  }
  void merge(size_t a, size_t b) {
    a = find(a);
    b = find(b);
    parent_[std::max(a, b)] = std::min(a, b);
  }

 private:
  std::vector<size_t> parent_;
};

/// Unifies loop variables of different roots that iterate over the same dimension.
class VariableUnifier {
 public:
  explicit VariableUnifier(Group& group) : group_(group), classes_(group.extents.size()) {}

  /// Unifies the output variables of each reduction with the index variables of the roots that read
  /// the reduction. Returns false when an index is not a plain loop variable, or when the unified
  /// variables are inconsistent (see consistent()).
  bool unify_reduction_reads() {
    for (const FusionRoot& root : group_.roots) {
      for (const Expr& let : lets_of(root.body)) {
        const FusionRoot& source = group_.roots[static_cast<size_t>(reduction_of(let).root)];
        if (!unify(source.out, let.args())) return false;
      }
    }
    return consistent(classes_);
  }

  /// Unifies variables that index the same dimension of the same value, unless the result would be
  /// inconsistent.
  void unify_reads(const std::vector<RootBuilder::ValueReads>& value_reads) {
    for (const RootBuilder::ValueReads& value : value_reads) {
      for (const std::vector<Expr>& read : value.reads)
        unify_read_indices(value.reads.front(), read);
    }
  }

  void apply() {
    if (!unifies()) return;
    auto representative = [&](int64_t v) {
      return v < 0 ? v : static_cast<int64_t>(classes_.find(static_cast<size_t>(v)));
    };
    Interner intern;
    for (FusionRoot& root : group_.roots) {
      for (int64_t& v : root.out) v = representative(v);
      for (int64_t& v : root.reduce) v = representative(v);
      root.body = intern(rewrite(root.body, [&](const Expr& e) {
        const bool replaced =
            e.op() == ScalarOp::var && representative(e.node().ivalue) != e.node().ivalue;
        return replaced ? Expr::var(representative(e.node().ivalue)) : Expr();
      }));
    }
  }

 private:
  bool unifies() const {
    for (size_t v = 0; v < group_.extents.size(); ++v) {
      if (classes_.find(v) != v) return true;
    }
    return false;
  }

  bool unify(const Vars& vars, const std::vector<Expr>& index) {
    for (size_t d = 0; d < vars.size(); ++d) {
      if (vars[d] < 0) continue;  // a dimension of extent 1, whose index is 0
      if (index[d].op() != ScalarOp::var) return false;
      classes_.merge(static_cast<size_t>(vars[d]), static_cast<size_t>(index[d].node().ivalue));
    }
    return true;
  }

  void unify_read_indices(const std::vector<Expr>& a, const std::vector<Expr>& b) {
    std::optional<UnionFind> trial;
    for (size_t d = 0; d < std::min(a.size(), b.size()); ++d) {
      if (a[d].op() != ScalarOp::var || b[d].op() != ScalarOp::var) continue;
      const auto of_a = static_cast<size_t>(a[d].node().ivalue);
      const auto of_b = static_cast<size_t>(b[d].node().ivalue);
      if (classes_.find(of_a) == classes_.find(of_b)) continue;
      if (!trial) trial = classes_;
      trial->merge(of_a, of_b);
    }
    if (trial && consistent(*trial)) classes_ = *std::move(trial);
  }

  /// Whether all variables of an equivalence class have the same extent, and no root has two
  /// variables of one class.
  bool consistent(const UnionFind& classes) const {
    for (size_t v = 0; v < group_.extents.size(); ++v) {
      if (group_.extents[v] != group_.extents[classes.find(v)]) return false;
    }
    for (const FusionRoot& root : group_.roots) {
      Vars representatives;
      for (int64_t v : all_vars(root)) {
        const auto representative = static_cast<int64_t>(classes.find(static_cast<size_t>(v)));
        if (contains(representatives, representative)) return false;
        representatives.push_back(representative);
      }
    }
    return true;
  }

  Group& group_;
  UnionFind classes_;
};

/// For each root, the indices of the roots whose reductions it reads.
using ReductionReads = std::vector<std::vector<int>>;

ReductionReads reduction_reads(const Group& group) {
  ReductionReads reads;
  for (const FusionRoot& root : group.roots) {
    std::vector<int>& sources = reads.emplace_back();
    for (const Expr& let : lets_of(root.body)) sources.push_back(reduction_of(let).root);
  }
  return reads;
}

/// Partitions the roots of the group into parts. Two roots are in one part if they share a loop
/// variable, if they are results of one op, or if one reads the other.
void make_parts(Group& group, const ReductionReads& reads) {
  const size_t n = group.roots.size();
  std::vector<Vars> vars;
  for (const FusionRoot& root : group.roots) vars.push_back(all_vars(root));
  UnionFind parts(n);
  for (size_t i = 0; i < n; ++i) {
    for (const int source : reads[i]) parts.merge(i, static_cast<size_t>(source));
    for (size_t j = 0; j < i; ++j) {
      const bool together =
          group.roots[i].op == group.roots[j].op || !intersection(vars[i], vars[j]).empty();
      if (together) parts.merge(i, j);
    }
  }
  for (size_t representative = 0; representative < n; ++representative) {
    if (parts.find(representative) != representative) continue;
    GroupPart part;
    for (size_t i = representative; i < n; ++i) {
      if (parts.find(i) == representative) part.roots.push_back(static_cast<int>(i));
    }
    group.parts.push_back(std::move(part));
  }
}

/// Chooses the row variables of one part, which are the variables of its outer loop. Also chooses
/// the roots of the finish phase, which run after the loop over rows.
class RowSelection {
 public:
  RowSelection(Group& group, GroupPart& part, const ReductionReads& reads)
      : group_(group), part_(part), reads_(reads) {
    for (int i : part.roots) {
      if (reduces_to_columns(group, root(i))) columns_.insert(i);
    }
  }

  bool run() {
    for (int attempt = 0; attempt < 4; ++attempt) {
      if (!choose()) return false;
      const bool stable = !assign_phases();
      if (stable) return is_legal();
    }
    return false;
  }

 private:
  FusionRoot& root(int i) { return group_.roots[static_cast<size_t>(i)]; }
  const std::vector<int>& reads(int i) const { return reads_[static_cast<size_t>(i)]; }

  /// Chooses the row variables (the variables of the outer loop) among the loop variables that all
  /// roots in this loop share. Prefers variables that index the output of every root, but excludes
  /// them if a root is a column reduction. Returns false if no variable remains.
  bool choose() {
    std::optional<Vars> rows;
    std::optional<Vars> shared_outs;
    bool columns = false;
    for (int i : part_.roots) {
      FusionRoot& s = root(i);
      s.in_finish_phase = s.in_finish_phase || reads_after_sweep(i);
      if (s.in_finish_phase) continue;
      const Vars outs = non_unit(s.out);
      const Vars common = rows ? intersection(*rows, outs) : outs;
      const bool to_columns = columns_.contains(i);
      columns = columns || to_columns;
      const bool is_sweep_reduction =
          s.combine && (!s.read_by_root || common.empty() || to_columns);
      const Vars vars = is_sweep_reduction ? all_vars(s) : outs;
      s.reduces_rows = is_sweep_reduction;
      rows = rows ? intersection(*rows, vars) : vars;
      shared_outs = shared_outs ? intersection(*shared_outs, outs) : outs;
      if (rows->empty() && !vars.empty()) return false;
    }
    if (!rows) return false;
    part_.rows = shared_outs->empty() ? *rows : intersection(*rows, *shared_outs);
    part_.has_column_reductions = columns;
    if (columns) part_.rows = difference(*rows, *shared_outs);
    return !columns || !part_.rows.empty();
  }

  /// Sets the fields `reduces_rows`, `finish` and `stage` of each root for the chosen row
  /// variables. Returns true when a root was moved to the finish phase.
  bool assign_phases() {
    bool moved = false;
    for (int i : part_.roots) {
      FusionRoot& s = root(i);
      s.stage = 0;
      s.reduces_rows = !s.in_finish_phase && !intersection(part_.rows, s.reduce).empty();
      for (const int source : reads(i)) s.stage = std::max(s.stage, root(source).stage + 1);
      const bool late = s.in_finish_phase || reads_after_sweep(i);
      moved = moved || (late && !s.in_finish_phase);
      s.in_finish_phase = late;
      s.reduces_rows = s.reduces_rows && !late;
    }
    return moved;
  }

  /// Whether the result of the root is available only after the loop over rows.
  bool is_complete_after_sweep(int i) { return root(i).in_finish_phase || root(i).reduces_rows; }

  /// Whether all reductions that the root reads are available after the loop over rows. Reductions
  /// within one row are not.
  bool reads_only_complete(int i) {
    return std::ranges::all_of(reads(i), [&](int r) { return is_complete_after_sweep(r); });
  }

  /// Whether the root reads a reduction that is complete only after the loop over rows.
  bool reads_after_sweep(int i) {
    return std::ranges::any_of(reads(i), [&](int r) { return is_complete_after_sweep(r); });
  }

  bool is_legal() {
    for (int i : part_.roots) {
      const FusionRoot& s = root(i);
      if (s.in_finish_phase) {
        if (!reads_only_complete(i)) return false;
        continue;
      }
      const Vars outs = non_unit(s.out);
      if (!subset(part_.rows, s.reduces_rows ? s.reduce : outs)) return false;
      if (s.reduces_rows && s.combine == Combine::argmax && !outs.empty()) return false;
      const bool row_local = s.combine && !s.reduces_rows;
      if (row_local && s.read_by_root && !subset(outs, part_.rows)) return false;
    }
    return true;
  }

  Group& group_;
  GroupPart& part_;
  const ReductionReads& reads_;
  std::set<int> columns_;  ///< roots for which reduces_to_columns() holds
};

}  // namespace

ReductionRead reduction_of(const Expr& let) {
  return {static_cast<int>(let.node().ivalue / 2), static_cast<int>(let.node().ivalue % 2)};
}

Expr extent_expr(const Dim& dim) {
  const Expr size = Expr::index(dim.size);
  return dim.batch ? Expr::make(ScalarOp::batch, i64, {}) * size : size;
}

namespace {

std::map<int64_t, size_t> loops_checked_operands(const ir::Op& op, const Loops& loops) {
  std::vector<Type> in, out;
  for (const Value& v : op.operands) in.push_back(v.type());
  for (const ir::Result& r : op.results) out.push_back(r.type);
  return loops.checked(LowerCtx(in, out, op.attrs));
}

}  // namespace

std::map<int64_t, size_t> checked_operands(const ir::Op& op) {
  std::map<int64_t, size_t> operands;
  const Lower& lower = *def_of(op).lower;
  if (const auto* loops = std::get_if<Loops>(&lower)) {
    return loops->checked ? loops_checked_operands(op, *loops) : operands;
  }
  if (!std::holds_alternative<Map>(lower) && !std::holds_alternative<Reduce>(lower))
    return operands;
  for (const Expr& body : lower_op(op).bodies) {
    for_each_node(body, [&](const Expr& e) {
      if (e.op() != ScalarOp::read || !e.node().checked) return;
      const auto from_data = std::ranges::find_if(e.args(), reads_data);
      const bool several = std::ranges::count_if(e.args(), reads_data) > 1;
      operands[e.node().ivalue] =
          several ? e.args().size() : static_cast<size_t>(from_data - e.args().begin());
    });
  }
  return operands;
}

std::optional<Group> analyze_group(std::span<const ir::Op* const> ops,
                                   std::span<const Value> outputs, std::span<const Value> inputs,
                                   LoweringCache* cache) {
  LoweringCache own;
  RootBuilder builder(ops, outputs, inputs, cache != nullptr ? *cache : own);
  if (!builder.build()) return std::nullopt;
  Group group = std::move(builder.group);
  VariableUnifier unifier(group);
  if (!unifier.unify_reduction_reads()) return std::nullopt;
  unifier.unify_reads(builder.value_reads);
  unifier.apply();
  const ReductionReads reads = reduction_reads(group);
  make_parts(group, reads);
  for (GroupPart& part : group.parts) {
    if (!RowSelection(group, part, reads).run()) return std::nullopt;
  }
  return group;
}

Group analyze_fused_body(const ir::Graph& body) {
  std::vector<const ir::Op*> ops;
  Values inputs;
  for (const auto& op : body.ops) {
    if (op->name != "arg") {
      ops.push_back(op.get());
      continue;
    }
    const auto index = static_cast<size_t>(op->attrs.get<int64_t>("index"));
    if (inputs.size() <= index) inputs.resize(index + 1);
    inputs[index] = op->result();
  }
  Values outputs;
  for (const ir::Output& o : body.outputs) outputs.push_back(o.value);
  std::optional<Group> group = analyze_group(ops, outputs, inputs);
  check(group.has_value(), "the body of fused group '" + body.name + "' does not fit one kernel");
  return *std::move(group);
}

}  // namespace fluid
