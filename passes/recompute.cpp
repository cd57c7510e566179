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

constexpr int64_t kWorthRecomputing = 64 << 10;  // bytes; smaller values are stored
constexpr int64_t kMuchSmaller = 16;             // values smaller by this factor are stored

bool is_alias(const ir::Op& op) { return std::holds_alternative<Alias>(*def_of(op).lower); }

/// Whether the operator is about one instruction, cheaper than the traffic that recomputing saves.
bool is_cheap(Scalar op) {
  switch (op) {
    case Scalar::constant:
    case Scalar::var:
    case Scalar::batch:
    case Scalar::read:
    case Scalar::add:
    case Scalar::sub:
    case Scalar::mul:
    case Scalar::min:
    case Scalar::max:
    case Scalar::neg:
    case Scalar::abs:
    case Scalar::select:
    case Scalar::cast:
      return true;
    default:
      return op >= Scalar::eq && op <= Scalar::isfinite;
  }
}

/// Whether element (i0, i1, ...) of the result reads element (i0, i1, ...) of the operand.
bool reads_in_order(const Expr& read) {
  for (size_t d = 0; d < read.args().size(); ++d) {
    if (!same(read.args()[d], Expr::var(static_cast<int64_t>(d)))) return false;
  }
  return true;
}

/// Ops that recompute a value from stored values.
struct Chain {
  std::vector<const ir::Op*> ops;  ///< in execution order
  std::set<Value> sources;         ///< the stored values
};

/// Recomputes values in the kernels that read them instead of storing them, if this increases
/// neither memory nor traffic. Example: backward of batch norm centres its operand again, from the
/// half-precision result of the convolution, so that no f32 result is kept. The mask of a relu is
/// recomputed from its result, which the next layer keeps anyway.
///
/// Recomputed values have the same bits. Only cheap ops are repeated: differences, products,
/// comparisons, selections, casts. Ops that round to half precision are not repeated, because
/// kernels round only when they store. A comparison with a half-precision value of the first kernel
/// uses the stored, rounded value.
class Recompute {
 public:
  Recompute(ir::Graph& graph, std::vector<FusionGroup>& groups, int64_t batch)
      : graph_(graph), groups_(groups), batch_(batch), uses_(graph.uses()) {
    for (const ir::Output& o : graph.outputs) leaving_.insert(o.value);
    for (int i = 0; i < size(); ++i) {
      for (const ir::Op* op : group(i).ops) position_[op] = i;
    }
    lives_ = live_ranges_of(graph, groups);
  }

  /// Returns whether a kernel changed.
  bool run() {
    bool changed = false;
    for (int i = 0; i < size(); ++i) {
      if (!is_generated(group(i))) continue;
      for (const Value& v : Values(group(i).outputs)) {
        if (bytes(v) >= kWorthRecomputing) changed |= consider(v, i);
      }
    }
    return changed;
  }

 private:
  int size() const { return static_cast<int>(groups_.size()); }
  FusionGroup& group(int i) { return groups_[static_cast<size_t>(i)]; }
  const FusionGroup& group(int i) const { return groups_[static_cast<size_t>(i)]; }
  int64_t bytes(Value v) const { return v.type().bytes_at(batch_); }
  bool much_smaller(Value v, Value than) const { return bytes(v) * kMuchSmaller <= bytes(than); }

  static Value result(const ir::Op& op, size_t r) {
    return {const_cast<ir::Op*>(&op), static_cast<int>(r)};
  }

  // ---- Which ops recompute a value

  /// Whether the op may run again in another kernel. Its operands must be much smaller than its
  /// result, or be read in order.
  bool repeats(const ir::Op& op) const {
    if (is_alias(op)) return true;
    const OpDef& def = def_of(op);
    if (!std::holds_alternative<Map>(*def.lower) || !std::holds_alternative<Pure>(*def.effects) ||
        op.results.size() != 1) {
      return false;
    }
    if (is_half(op.results[0].type.dtype) && !op.operands.empty()) return false;
    bool good = true;
    for_each_node(lower_op(op).bodies.at(0), [&](const Expr& e) {
      good = good && is_cheap(e.op());
      if (!good || e.op() != Scalar::read) return;
      const Value from = op.operands.at(static_cast<size_t>(e.node().ivalue));
      const bool in_order = from.shape() == op.results[0].type.shape &&
                            from.type().layout == op.results[0].type.layout && reads_in_order(e);
      good =
          !e.node().guarded && !e.node().checked && (in_order || much_smaller(from, result(op, 0)));
    });
    return good;
  }

  /// Whether `op` compares with a constant. Of two computed half-precision operands, one could be
  /// rounded and the other not.
  static bool compares_with_constant(const ir::Op& op) {
    return op.results[0].type.dtype == DType::boolean &&
           std::ranges::count_if(op.operands,
                                 [](const Value& v) { return !v.op()->operands.empty(); }) == 1;
  }

  /// Whether `reader`, repeated in another kernel, may read `v` as it is stored. Collectives
  /// overwrite their operands in place, and variables change at the end of the step.
  bool may_be_source(Value v, const ir::Op& reader, const std::set<const ir::Op*>& inside) const {
    if (is_variable(*root_of(v).op())) return false;
    if (inside.contains(v.op())) return !is_half(v.dtype()) || compares_with_constant(reader);
    return stays_intact(v, uses_);
  }

  std::optional<Chain> chain_of(Value wanted, const FusionGroup& group) const {
    const std::set<const ir::Op*> inside(group.ops.begin(), group.ops.end());
    std::set<const ir::Op*> repeated;
    Chain chain;
    const auto visit = [&](const auto& self, Value v) -> bool {
      if (!repeats(*v.op())) return false;
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

  // ---- Whether recomputing pays

  /// The kernels that read `v`. Empty when another op reads it, or when a kernel would compute
  /// elements more than once.
  std::set<int> readers(Value v, int from) const {
    std::set<int> readers;
    const auto uses = uses_.find(v);
    if (uses == uses_.end() || leaving_.contains(v)) return {};
    for (const ir::Op* op : uses->second) {
      const auto found = position_.find(op);
      if (found == position_.end() || found->second == from) continue;
      const int at = found->second;
      if (!is_generated(group(at)) || has_contraction(group(at)) || is_alias(*op) ||
          sweeps(*op) != v.shape().numel_at(batch_)) {
        return {};
      }
      readers.insert(at);
    }
    return readers;
  }
  bool has_contraction(const FusionGroup& kernel) const {
    return std::ranges::any_of(kernel.ops,
                               [&](const ir::Op* op) { return is_contraction(*op, batch_); });
  }
  int64_t sweeps(const ir::Op& op) const {
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

  /// Change of the bytes that kernels read and write.
  int64_t traffic(Value v, const Chain& chain, int from, const std::set<int>& readers) const {
    int64_t more = -bytes(v) * static_cast<int64_t>(1 + readers.size());
    for (const Value& source : chain.sources) {
      if (is_new_output(source, from)) more += bytes(source);
      for (const int reader : readers) more += reads(group(reader), source) ? 0 : bytes(source);
    }
    return more;
  }
  bool is_new_output(Value source, int from) const {
    const auto at = position_.find(source.op());
    return at != position_.end() && at->second == from &&
           std::ranges::find(group(from).outputs, source) == group(from).outputs.end();
  }

  /// Lifetimes without `v`; nullopt if memory use would grow. Sources of the chain may live longer
  /// if they are not larger than `v`, or if the peak does not rise.
  std::optional<LiveRanges> lives_without(Value v, const Chain& chain, int from, int last) const {
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
    if (longer > bytes(v) && peak_of(after, batch_) > peak_of(lives_, batch_)) return std::nullopt;
    return after;
  }

  bool consider(Value v, int from) {
    const std::set<int> by = readers(v, from);
    if (by.empty()) return false;
    const std::optional<Chain> chain = chain_of(v, group(from));
    if (!chain || traffic(v, *chain, from, by) > 0) return false;
    std::optional<LiveRanges> after = lives_without(v, *chain, from, *by.rbegin());
    if (!after) return false;
    std::vector<Repeated> repeated;
    for (const int reader : by) repeated.push_back(repeat(v, *chain, reader));
    const bool fit = std::ranges::all_of(by, [&](int reader) {
      return analyze_group(group(reader).ops, group(reader).outputs).has_value();
    });
    if (fit && store_less(v, *chain, from)) {
      lives_ = std::move(*after);
      return true;
    }
    for (const Repeated& r : repeated) undo_recompute(v, r);
    return false;
  }

  // ---- The rewrite

  /// The kernel without result `v` and without the ops that only `v` needed.
  FusionGroup without(Value v, const Chain& chain, int from) const {
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

  struct Repeated {
    int reader = 0;
    Value copy;
    std::set<const ir::Op*> ops;
  };

  /// Inserts a copy of the chain into the reader's kernel, whose ops then read the copy in place of
  /// `v`.
  Repeated repeat(Value v, const Chain& chain, int reader) {
    FusionGroup& into = group(reader);
    std::map<Value, Value> copies;
    const std::vector<const ir::Op*> ops =
        append_copies(graph_, chain.ops, into.ops.front()->role, copies);
    for (const ir::Op* copy : ops) {
      for (const Value& operand : copy->operands) {
        uses_[operand].push_back(const_cast<ir::Op*>(copy));
      }
      position_[copy] = reader;
    }
    for (const ir::Op* op : into.ops) {
      std::ranges::replace(const_cast<ir::Op*>(op)->operands, v, copies.at(v));
    }
    into.ops.insert(into.ops.begin(), ops.begin(), ops.end());
    return {reader, copies.at(v), {ops.begin(), ops.end()}};
  }

  void undo_recompute(Value v, const Repeated& repeated) {
    std::vector<const ir::Op*>& ops = group(repeated.reader).ops;
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

  /// Whether `rest` still compares a half-precision value of its own before rounding, while other
  /// kernels compare the rounded value. A mask must be equal in all kernels.
  static bool sees_another_rounding(const Chain& chain, const FusionGroup& rest) {
    const std::set<const ir::Op*> inside(rest.ops.begin(), rest.ops.end());
    return std::ranges::any_of(chain.ops, [&](const ir::Op* op) {
      return inside.contains(op) && std::ranges::any_of(op->operands, [&](const Value& v) {
               return is_half(v.dtype()) && inside.contains(v.op()) && !v.op()->operands.empty();
             });
    });
  }

  /// Removes result `v` from kernel `from`. Returns false, without a change, if the remaining ops
  /// do not form a kernel.
  bool store_less(Value v, const Chain& chain, int from) {
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
  std::set<Value> leaving_;
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
          .gives = {},
          .run = run_recompute};
}

}  // namespace fluid
