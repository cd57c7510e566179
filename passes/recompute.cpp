#include <algorithm>
#include <map>
#include <set>

#include "ops/source_kind.h"
#include "passes/groups.h"
#include "passes/memory_plan.h"
#include "passes/pass.h"
#include "passes/rewrite.h"

namespace fluid {
namespace {

constexpr int64_t kMinRecomputedBytes = 64 << 10;  // minimum bytes of a recomputed value
// A value is much smaller than another value if its size is at most 1/16 of the other's size.
constexpr int64_t kMuchSmallerFactor = 16;

/// Whether the scalar operator takes about one instruction. Recomputing its result is then cheaper
/// than loading the result from memory.
bool is_cheap(ScalarOp op) {
  switch (op) {
    case ScalarOp::constant:
    case ScalarOp::var:
    case ScalarOp::batch:
    case ScalarOp::read:
    case ScalarOp::add:
    case ScalarOp::sub:
    case ScalarOp::mul:
    case ScalarOp::min:
    case ScalarOp::max:
    case ScalarOp::neg:
    case ScalarOp::abs:
    case ScalarOp::select:
    case ScalarOp::cast:
      return true;
    default:
      return op >= ScalarOp::eq && op <= ScalarOp::isfinite;
  }
}

/// Whether the read is elementwise: element (i0, i1, ...) of the result reads element (i0, i1, ...)
/// of the operand.
bool reads_in_order(const Expr& read) {
  for (size_t d = 0; d < read.args().size(); ++d) {
    if (!structurally_equal(read.args()[d], Expr::var(static_cast<int64_t>(d)))) return false;
  }
  return true;
}

/// The ops that recompute a value, and the values from which they recompute it.
struct RecomputedChain {
  std::vector<const ir::Op*> ops;  ///< the recomputing ops, in execution order
  std::set<Value> sources;         ///< values that the ops load from memory
};

/// Rematerialization: recomputes values in the kernels that read them instead of storing the
/// values, if this increases neither memory use nor memory traffic. For example, backward of
/// batch_norm subtracts the mean again from the half-precision result of the convolution, so that
/// no f32 result stays in memory. As another example, backward of relu recomputes the mask from the
/// result of the relu.
///
/// Only cheap ops are recomputed, such as differences, products, comparisons, selections and casts.
/// A kernel rounds a half-precision value when it stores the value, not when the next op of the
/// same kernel reads the value. Therefore ops with half-precision results are not recomputed, and
/// from a stored half-precision value, only comparisons with a constant are recomputed. The result
/// of such a comparison can change if rounding moves the value onto the constant. All other
/// recomputed values are bitwise equal to the original values.
class Recompute {
 public:
  Recompute(ir::Graph& graph, std::vector<FusionGroup>& groups, int64_t batch)
      : graph_(graph), groups_(groups), batch_(batch), uses_(graph.uses()) {
    for (const ir::Output& o : graph.outputs) graph_outputs_.insert(o.value);
    for (int i = 0; i < size(); ++i) {
      for (const ir::Op* op : group(i).ops) position_[op] = i;
    }
    lives_ = live_ranges_of(graph, groups);
  }

  /// Tries to recompute each result of each kernel. Returns whether a kernel changed.
  bool run() {
    bool changed = false;
    for (int i = 0; i < size(); ++i) {
      if (!is_generated(group(i))) continue;
      for (const Value& v : Values(group(i).outputs)) {
        if (bytes(v) >= kMinRecomputedBytes) changed |= try_recompute(v, i);
      }
    }
    return changed;
  }

 private:
  int size() const { return static_cast<int>(groups_.size()); }
  FusionGroup& group(int i) { return groups_[static_cast<size_t>(i)]; }
  const FusionGroup& group(int i) const { return groups_[static_cast<size_t>(i)]; }
  int64_t bytes(Value v) const { return v.type().bytes_at(batch_); }
  bool much_smaller(Value v, Value than) const {
    return bytes(v) * kMuchSmallerFactor <= bytes(than);
  }

  static Value result(const ir::Op& op, size_t r) {
    return {const_cast<ir::Op*>(&op), static_cast<int>(r)};
  }

  // ---- Choice of the ops that recompute a value

  /// Whether the op may be recomputed in another kernel. The op must be cheap. Each operand must be
  /// read elementwise, or be much smaller than the result.
  bool is_recomputable(const ir::Op& op) const {
    if (is_alias(op)) return true;
    const OpDef& def = def_of(op);
    if (!std::holds_alternative<Map>(*def.lower) || !std::holds_alternative<Pure>(*def.effects) ||
        op.results.size() != 1) {
      return false;
    }
    if (is_half_precision(op.results[0].type.dtype) && !op.operands.empty()) return false;
    bool good = true;
    for_each_node(lower_op(op).bodies.at(0), [&](const Expr& e) {
      good = good && is_cheap(e.op());
      if (!good || e.op() != ScalarOp::read) return;
      const Value from = op.operands.at(static_cast<size_t>(e.node().ivalue));
      const bool in_order = from.shape() == op.results[0].type.shape &&
                            from.type().layout == op.results[0].type.layout && reads_in_order(e);
      good =
          !e.node().guarded && !e.node().checked && (in_order || much_smaller(from, result(op, 0)));
    });
    return good;
  }

  /// Whether `op` compares a value with a constant. A comparison of two computed half-precision
  /// values is excluded, because rounding of the values could change its result.
  static bool compares_with_constant(const ir::Op& op) {
    return op.results[0].type.dtype == DType::boolean &&
           std::ranges::count_if(op.operands,
                                 [](const Value& v) { return !v.op()->operands.empty(); }) == 1;
  }

  /// Whether a copy of `user` in another kernel may load `v` from memory. False if `v` may be
  /// overwritten before the copy runs: a collective overwrites its operands in place, and the
  /// update overwrites variables. False if `v` is a half-precision result of `inside`, the ops of
  /// the original kernel, unless `user` compares `v` with a constant.
  bool may_be_source(Value v, const ir::Op& user, const std::set<const ir::Op*>& inside) const {
    if (is_variable(*root_of(v).op())) return false;
    if (inside.contains(v.op()))
      return !is_half_precision(v.dtype()) || compares_with_constant(user);
    return is_never_overwritten(v, uses_);
  }

  std::optional<RecomputedChain> chain_of(Value wanted, const FusionGroup& group) const {
    const std::set<const ir::Op*> inside(group.ops.begin(), group.ops.end());
    std::set<const ir::Op*> repeated;
    RecomputedChain chain;
    const auto visit = [&](const auto& self, Value v) -> bool {
      if (!is_recomputable(*v.op())) return false;
      if (!repeated.insert(v.op()).second) return true;
      for (const Value& from : v.op()->operands) {
        const bool small = !from.op()->operands.empty() && much_smaller(from, wanted);
        const bool stored = small || !inside.contains(from.op()) ||
                            std::ranges::find(group.outputs, from) != group.outputs.end();
        if (!stored && !self(self, from)) return false;
        if (!stored) continue;
        if (!may_be_source(from, *v.op(), inside)) return false;
        chain.sources.insert(from);
      }
      return true;
    };
    if (!visit(visit, wanted)) return std::nullopt;
    std::ranges::copy_if(group.ops, std::back_inserter(chain.ops),
                         [&](const ir::Op* op) { return repeated.contains(op); });
    return chain;
  }

  // ---- Cost of recomputing

  /// Indices of the kernels other than `from` that read `v`. Empty if `v` must stay stored: if `v`
  /// is a graph output, or if a user cannot recompute each element of `v` exactly once. Examples
  /// of such users are contractions, Loops ops and ops outside of generated kernels.
  std::set<int> users(Value v, int from) const {
    std::set<int> users;
    const auto uses = uses_.find(v);
    if (uses == uses_.end() || graph_outputs_.contains(v)) return {};
    for (const ir::Op* op : uses->second) {
      const auto found = position_.find(op);
      if (found == position_.end() || found->second == from) continue;
      const int at = found->second;
      if (!is_generated(group(at)) || !is_groupable(*group(at).ops.front()) ||
          has_contraction(group(at)) || is_alias(*op) ||
          iteration_count(*op) != v.shape().numel_at(batch_)) {
        return {};
      }
      users.insert(at);
    }
    return users;
  }
  bool has_contraction(const FusionGroup& kernel) const {
    return std::ranges::any_of(kernel.ops,
                               [&](const ir::Op* op) { return is_contraction(*op, batch_); });
  }
  int64_t iteration_count(const ir::Op& op) const {
    const Lowered lowered = lower_op(op);
    int64_t points = 1;
    for (const Dim& d : lowered.out) points *= d.at(batch_);
    for (const Dim& d : lowered.reduce) points *= d.at(batch_);
    return points;
  }

  bool reads(const FusionGroup& group, Value v) const {
    return std::ranges::any_of(group.ops, [&](const ir::Op* op) {
      return std::ranges::find(op->operands, v) != op->operands.end();
    });
  }

  /// Change of the memory traffic of kernels, in bytes, if `v` is recomputed.
  int64_t traffic_change(Value v, const RecomputedChain& chain, int from,
                         const std::set<int>& users) const {
    int64_t more = -bytes(v) * static_cast<int64_t>(1 + users.size());
    for (const Value& source : chain.sources) {
      if (is_new_output(source, from)) more += bytes(source);
      for (const int user : users) more += reads(group(user), source) ? 0 : bytes(source);
    }
    return more;
  }
  bool is_new_output(Value source, int from) const {
    const auto at = position_.find(source.op());
    return at != position_.end() && at->second == from &&
           std::ranges::find(group(from).outputs, source) == group(from).outputs.end();
  }

  /// Live ranges if `v` is recomputed and not stored. nullopt if `v` has no live range. Also
  /// nullopt if the values whose live ranges grow are larger than `v` in total and the peak memory
  /// rises.
  std::optional<LiveRanges> lives_without(Value v, const RecomputedChain& chain, int from,
                                          int last) const {
    if (!lives_.contains(v)) return std::nullopt;
    LiveRanges after = lives_;
    after.erase(v);
    int64_t longer = 0;
    for (const Value& source : chain.sources) {
      if (is_new_output(source, from)) after[source] = {from, from};
      const auto life = after.find(root_of(source));
      if (life == after.end() || life->second.last >= last) continue;
      life->second.last = last;
      longer += bytes(life->first);
    }
    if (longer > bytes(v) && peak_bytes(after, batch_) > peak_bytes(lives_, batch_))
      return std::nullopt;
    return after;
  }

  bool try_recompute(Value v, int from) {
    const std::set<int> by = users(v, from);
    if (by.empty()) return false;
    const std::optional<RecomputedChain> chain = chain_of(v, group(from));
    if (!chain || traffic_change(v, *chain, from, by) > 0) return false;
    std::optional<LiveRanges> after = lives_without(v, *chain, from, *by.rbegin());
    if (!after) return false;
    std::vector<RecomputedCopy> repeated;
    for (const int user : by) repeated.push_back(insert_copy(v, *chain, user));
    const bool fit = std::ranges::all_of(by, [&](int user) {
      return analyze_group(group(user).ops, group(user).outputs).has_value();
    });
    if (fit && remove_result(v, *chain, from)) {
      lives_ = std::move(*after);
      return true;
    }
    for (const RecomputedCopy& r : repeated) undo_recompute(v, r);
    return false;
  }

  // ---- Rewrite of the kernels

  /// Returns a copy of kernel `from` without result `v` and without the ops that are needed only
  /// for `v`. The copy also returns those sources of `chain` that it computes.
  FusionGroup without(Value v, const RecomputedChain& chain, int from) const {
    FusionGroup rest = group(from);
    std::erase(rest.outputs, v);
    for (const Value& source : chain.sources) {
      if (is_new_output(source, from)) rest.outputs.push_back(source);
    }
    std::set<const ir::Op*> needed;
    for (const Value& o : rest.outputs) needed.insert(o.op());
    for (const ir::Op* op : std::vector(rest.ops.rbegin(), rest.ops.rend())) {
      if (!needed.contains(op)) continue;
      for (const Value& operand : op->operands) needed.insert(operand.op());
    }
    std::erase_if(rest.ops, [&](const ir::Op* op) { return !needed.contains(op); });
    return rest;
  }

  struct RecomputedCopy {
    int user = 0;
    Value copy;
    std::set<const ir::Op*> ops;
  };

  /// Inserts copies of the chain's ops into kernel `user`, whose ops then read the copy of `v`
  /// instead of `v`.
  RecomputedCopy insert_copy(Value v, const RecomputedChain& chain, int user) {
    FusionGroup& into = group(user);
    std::map<Value, Value> copies;
    const std::vector<const ir::Op*> ops =
        append_copies(graph_, chain.ops, into.ops.front()->role, copies);
    for (const ir::Op* copy : ops) {
      for (const Value& operand : copy->operands) {
        uses_[operand].push_back(const_cast<ir::Op*>(copy));
      }
      position_[copy] = user;
    }
    for (const ir::Op* op : into.ops) {
      std::ranges::replace(const_cast<ir::Op*>(op)->operands, v, copies.at(v));
    }
    into.ops.insert(into.ops.begin(), ops.begin(), ops.end());
    return {user, copies.at(v), {ops.begin(), ops.end()}};
  }

  void undo_recompute(Value v, const RecomputedCopy& repeated) {
    std::vector<const ir::Op*>& ops = group(repeated.user).ops;
    std::erase_if(ops, [&](const ir::Op* op) { return repeated.ops.contains(op); });
    for (const ir::Op* op : ops) {
      std::ranges::replace(const_cast<ir::Op*>(op)->operands, repeated.copy, v);
    }
    for (const ir::Op* copy : repeated.ops) {
      position_.erase(copy);
      for (const Value& operand : copy->operands) {
        std::erase(uses_.at(operand), const_cast<ir::Op*>(copy));
      }
    }
  }

  /// Whether a comparison in `chain` remains in kernel `rest` and reads a half-precision value that
  /// `rest` computes. The kernel reads the value before rounding, but the copies of the comparison
  /// read the rounded value, so their results could differ.
  static bool sees_another_rounding(const RecomputedChain& chain, const FusionGroup& rest) {
    const std::set<const ir::Op*> inside(rest.ops.begin(), rest.ops.end());
    return std::ranges::any_of(chain.ops, [&](const ir::Op* op) {
      return inside.contains(op) && std::ranges::any_of(op->operands, [&](const Value& v) {
               return is_half_precision(v.dtype()) && inside.contains(v.op()) &&
                      !v.op()->operands.empty();
             });
    });
  }

  /// Removes result `v`, and the ops that are needed only for `v`, from kernel `from`. Returns
  /// false, and changes nothing, if no kernel can be generated for the remaining ops.
  bool remove_result(Value v, const RecomputedChain& chain, int from) {
    FusionGroup rest = without(v, chain, from);
    if (sees_another_rounding(chain, rest)) return false;
    if (!rest.ops.empty() && !analyze_group(rest.ops, rest.outputs)) return false;
    for (const ir::Op* op : group(from).ops) position_.erase(op);
    for (const ir::Op* op : rest.ops) position_[op] = from;
    group(from) = std::move(rest);
    return true;
  }

  ir::Graph& graph_;
  std::vector<FusionGroup>& groups_;
  int64_t batch_;
  Uses uses_;
  std::set<Value> graph_outputs_;
  std::map<const ir::Op*, int> position_;
  LiveRanges lives_;
};

bool run_recompute(ir::Program& program, const Options& options, const Target&) {
  std::vector<FusionGroup> groups = extract_groups(program.main());
  const bool changed = Recompute(program.main(), groups, options.batch).run();
  mark_groups(program.main(), groups);
  return changed;
}

}  // namespace

Pass recompute_pass() {
  return {.name = "recompute",
          .doc = "Recomputes cheap values in the kernels that read them instead of storing them.",
          .needs = {"grouped"},
          .provides = {},
          .run = run_recompute};
}

}  // namespace fluid
