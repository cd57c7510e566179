#include "ops/source_kind.h"
#include "ops/table.h"
#include "passes/bucket.h"
#include "passes/memory_plan.h"
#include "passes/offsets.h"
#include "passes/pass.h"
#include "passes/rewrite.h"

namespace fluid {
namespace {

/// Assigns a range to every root value. Fills the regions in the order state, feeds, outputs,
/// transient.
class Planner {
 public:
  Planner(const ir::Graph& graph, const Options& options, const Target& target)
      : graph_(graph), options_(options), target_(target), unchecked_(unchecked_results(graph)) {
    for (size_t i = 0; i < graph.ops.size(); ++i) {
      position_[graph.ops[i].get()] = static_cast<int>(i);
      for (Value v : graph.ops[i]->operands) readers_[root_of(v)].push_back(graph.ops[i].get());
    }
    for (const auto& op : graph.ops) {
      if (is_collective(*op)) add_bucket(*op);
    }
  }

  MemoryPlan run() {
    place_sources();
    place_outputs();
    place_stored();
    place_transient();
    place_aliases();
    return std::move(plan_);
  }

 private:
  int64_t bytes_of(Value v) const { return v.type().bytes_at(options_.batch); }
  int64_t reserved(int64_t bytes) const {
    return aligned(bytes) + (options_.guard_plan ? kAlign : 0);
  }
  int death_of(Value root) const {
    auto it = readers_.find(root);
    int last = position_.at(root.op());
    if (it == readers_.end()) return last;
    for (const ir::Op* reader : it->second) last = std::max(last, position_.at(reader));
    return last;
  }

  /// A collective whose sum has no reader may run until the end of the step.
  int end_of_collective(Value sum) const {
    return readers_.contains(sum) ? death_of(sum) : static_cast<int>(graph_.ops.size());
  }

  Range permanent(Region region, int64_t bytes) {
    int64_t& end = plan_.bytes(region);
    Range range = place(region, end, bytes);
    end += reserved(bytes);
    return range;
  }

  static Range place(Region region, int64_t offset, int64_t bytes) {
    Range range;
    range.region = region;
    range.offset = offset;
    range.bytes = bytes;
    return range;
  }

  void place_sources() {
    for (const auto& op : graph_.ops) {
      const SourceKind kind = source_kind(*op);
      if (kind == SourceKind::none) continue;
      const bool feed = kind == SourceKind::feed;
      const Value v = op->result();
      if (kind == SourceKind::carried) {
        const bool in_bucket = bucket_over_.contains(v);
        plan_.values[v] = carried(*op, in_bucket ? bucket_bytes(v.type()) : bytes_of(v));
        buffer_[v] = fixed(plan_.values[v], 0, death_of(v));
        if (in_bucket)
          overwritten_by_[buffer_[v]] = graph_.ops[static_cast<size_t>(death_of(v))].get();
      } else {
        plan_.values[v] = permanent(feed ? Region::feeds : Region::state, bytes_of(v));
      }
      if (!feed) variables_[op->symbol] = v;
    }
  }

  /// The range at attribute `offset` of a `carried` or `carry` op.
  static Range carried(const ir::Op& op, int64_t bytes) {
    return place(Region::transient, op.attrs.get<int64_t>("offset"), bytes);
  }
  /// Adds a buffer at a fixed range, live from `first` to `last`. Returns its index.
  size_t fixed(const Range& range, int first, int last) {
    buffers_.push_back({reserved(range.bytes), first, last, range.offset, true});
    return buffers_.size() - 1;
  }

  void place_outputs() {
    for (const ir::Output& o : graph_.outputs) {
      const Value root = root_of(o.value);
      if (plan_.values.contains(root)) continue;
      plan_.values[root] = permanent(Region::outputs, bytes_of(root));
    }
  }

  /// The range of the variable that `store` writes. A graph may write a variable without a source
  /// op that reads it: a startup graph, or the first micro-batch of a gradient accumulation.
  const Range& variable(const ir::Op& store) {
    auto [it, added] = written_.try_emplace(store.symbol);
    if (!added) return it->second;
    const int64_t bytes = bytes_of(store.operands[0]);
    auto read = variables_.find(store.symbol);
    it->second = read != variables_.end() ? plan_.values.at(read->second)
                 : is_carry(store)        ? carried(store, bytes)
                                          : permanent(Region::state, bytes);
    return it->second;
  }

  void place_stored() {
    for (const auto& op : graph_.ops) {
      if (!is_store(*op)) continue;
      const Range& range = variable(*op);
      const Value root = root_of(op->operands[0]);
      const bool checked = is_carry(*op) || (!unchecked_.contains(root) && may_update(*root.op()));
      const bool in_place =
          checked && !plan_.values.contains(root) && may_overwrite(root, op->symbol);
      if (in_place) plan_.values[root] = range;
      if (!is_carry(*op)) continue;
      const int end = static_cast<int>(graph_.ops.size());
      if (in_place) {
        buffer_[root] = fixed(range, position_.at(root.op()), end);
        if (const auto before = variables_.find(op->symbol); before != variables_.end()) {
          carried_on_.insert(buffer_.at(before->second));
        }
      } else {
        fixed(range, position_.at(op.get()), end);
        plan_.workspaces[op.get()] = range;
      }
    }
  }

  bool may_update(const ir::Op& op) const {
    return !op.attrs.has("kernel") || target_.libraries_may_update();
  }

  /// Whether every reader of the variable has run before `root` is written.
  bool may_overwrite(Value root, const std::string& symbol) const {
    auto variable = variables_.find(symbol);
    if (variable == variables_.end()) return true;
    if (bytes_of(root) != bytes_of(variable->second)) return false;
    auto it = readers_.find(variable->second);
    if (it == readers_.end()) return true;
    const int birth = position_.at(root.op());
    return std::ranges::all_of(it->second, [&](const ir::Op* reader) {
      return position_.at(reader) < birth ||
             (reader == root.op() && may_share(*reader, root.index(), variable->second));
    });
  }

  /// Whether result `out` may alias all operands of `op` that share the bytes of `root`.
  bool may_share(const ir::Op& op, int out, Value root) const {
    const std::vector<InPlace>& pairs = pairs_.of(op);
    for (size_t i = 0; i < op.operands.size(); ++i) {
      if (root_of(op.operands[i]) != root) continue;
      if (std::ranges::none_of(pairs, [&](const InPlace& p) {
            return p.out == out && p.in == static_cast<int>(i);
          })) {
        return false;
      }
    }
    return true;
  }

  /// Reserves a contiguous bucket for a collective. Its operands and results alias, because it runs
  /// in place. The padding after a tensor belongs to its range. If possible, the bucket overwrites
  /// the gradient sums that earlier micro-batches carried.
  void add_bucket(ir::Op& exchange) {
    Buffer bucket{0, static_cast<int>(graph_.ops.size()), position_.at(&exchange)};
    if (const Values sums = sums_before(exchange); !sums.empty()) {
      bucket.fixed = true;
      bucket.offset = sums.front().op()->attrs.get<int64_t>("offset");
      bucket_over_.insert(sums.begin(), sums.end());
    }
    for (size_t i = 0; i < exchange.operands.size(); ++i) {
      const Value root = root_of(exchange.operands[i]), sum = exchange.result(static_cast<int>(i));
      bucket.first = std::min(bucket.first, position_.at(root.op()));
      bucket.last = std::max(bucket.last, end_of_collective(sum));
      for (const Value v : {root, sum}) {
        buffer_[v] = buffers_.size();
        const bool once = in_bucket_.emplace(v, bucket.bytes).second;
        check(once, "a value is the operand of two collectives");
      }
      bucket.bytes += bucket_bytes(root.type());
    }
    bucket.bytes = reserved(bucket.bytes);
    buffers_.push_back(bucket);
  }

  /// The carried values that the operands of a collective may overwrite in place. Empty unless the
  /// values are laid out like the bucket.
  Values sums_before(const ir::Op& exchange) const {
    Values sums;
    int64_t offset = 0;
    for (const Value v : exchange.operands) {
      const Value root = root_of(v);
      const auto& read = root.op()->operands;
      const auto sum = std::ranges::find_if(read, [&](Value o) {
        return source_kind(*o.op()) == SourceKind::carried && bytes_of(o) == bytes_of(root) &&
               death_of(o) == position_.at(root.op()) && may_share(*root.op(), root.index(), o);
      });
      if (sum == read.end()) return {};
      const int64_t at = sum->op()->attrs.get<int64_t>("offset");
      if (sums.empty()) offset = at;
      if (at != offset) return {};
      sums.push_back(*sum);
      offset += bucket_bytes(root.type());
    }
    return sums;
  }

  void place_transient() {
    for (const auto& op : graph_.ops) {
      const int at = position_.at(op.get());
      if (!std::holds_alternative<Alias>(*def_of(*op).lower)) {
        for (size_t r = 0; r < op->results.size(); ++r) add_value(*op, static_cast<int>(r), at);
      }
      if (const int64_t bytes = workspace_of(*op); bytes > 0) {
        plan_.workspaces[op.get()] = place(Region::transient, 0, bytes);
        buffers_.push_back({reserved(bytes), at, at});
        workspace_buffer_[op.get()] = buffers_.size() - 1;
      }
    }
    assign_offsets(buffers_);
    for (auto& [v, range] : plan_.values) {
      const auto buffer = buffer_.find(v);
      if (buffer == buffer_.end()) continue;
      const auto inside = in_bucket_.find(v);
      range.offset =
          buffers_[buffer->second].offset + (inside == in_bucket_.end() ? 0 : inside->second);
    }
    for (const auto& [op, buffer] : workspace_buffer_) {
      plan_.workspaces.at(op).offset = buffers_[buffer].offset;
    }
  }

  void add_value(ir::Op& op, int result, int at) {
    const Value v = op.result(result);
    if (plan_.values.contains(v)) return;
    const int64_t bytes = bytes_of(v);
    if (in_bucket_.contains(v)) {
      plan_.values[v] = place(Region::transient, 0, bucket_bytes(v.type()));
      return;
    }
    if (const auto shared = operand_buffer(op, result, bytes, at)) {
      buffer_[v] = *shared;
      buffers_[*shared].last = death_of(v);
      overwritten_by_[*shared] = &op;
    } else {
      buffers_.push_back({reserved(bytes), at, death_of(v)});
      buffer_[v] = buffers_.size() - 1;
    }
    plan_.values[v] = place(Region::transient, 0, bytes);
  }

  /// The buffer of an operand whose last reader is `op` and that `result` may overwrite.
  std::optional<size_t> operand_buffer(const ir::Op& op, int result, int64_t bytes, int at) const {
    for (const InPlace& pair : pairs_.of(op)) {
      if (pair.out != result) continue;
      const Value root = root_of(op.operands.at(static_cast<size_t>(pair.in)));
      auto it = buffer_.find(root);
      if (in_bucket_.contains(root)) continue;
      if (it != buffer_.end() && carried_on_.contains(it->second)) continue;
      if (it == buffer_.end() || buffers_[it->second].last != at) continue;
      if (buffers_[it->second].bytes != reserved(bytes)) continue;
      auto taken = overwritten_by_.find(it->second);
      if (taken != overwritten_by_.end() && taken->second == &op) continue;
      if (may_share(op, result, root)) return it->second;
    }
    return std::nullopt;
  }

  int64_t workspace_of(const ir::Op& op) const {
    if (op.attrs.has("workspace_bytes")) return op.attrs.get<int64_t>("workspace_bytes");
    if (!std::holds_alternative<Composite>(*def_of(op).lower)) return 0;
    return target_.scratch(op, options_.batch);
  }

  void place_aliases() {
    for (const auto& op : graph_.ops) {
      if (!std::holds_alternative<Alias>(*def_of(*op).lower)) continue;
      plan_.values[op->result()] = plan_.values.at(root_of(op->result()));
    }
  }

  const ir::Graph& graph_;
  const Options& options_;
  const Target& target_;
  MemoryPlan plan_;
  std::map<const ir::Op*, int> position_;
  std::map<Value, std::vector<const ir::Op*>> readers_;
  std::set<Value> unchecked_;  ///< see unchecked_results()
  std::map<std::string, Value> variables_;
  std::map<std::string, Range> written_;
  std::vector<Buffer> buffers_;
  std::map<Value, size_t> buffer_;
  std::map<Value, int64_t> in_bucket_;  ///< offset in its bucket of an operand or result
  std::set<size_t> carried_on_;  ///< buffers of carried values that a later `carry` overwrites
  std::set<Value> bucket_over_;  ///< carried values that a bucket overwrites
  std::map<const ir::Op*, size_t> workspace_buffer_;
  std::map<size_t, const ir::Op*> overwritten_by_;
  mutable InPlacePairs pairs_;
};

std::string text_of(const Range& r) {
  return std::string(name_of(r.region)) + " " + std::to_string(r.offset) + ":" +
         std::to_string(r.bytes);
}

bool run_plan_memory(ir::Program& program, const Options& options, const Target& target) {
  ir::Graph& graph = program.main();
  const MemoryPlan plan = Planner(graph, options, target).run();
  for (const auto& op : graph.ops) {
    std::vector<std::string> ranges;
    for (size_t r = 0; r < op->results.size(); ++r) {
      ranges.push_back(text_of(plan.values.at(op->result(static_cast<int>(r)))));
    }
    if (!ranges.empty()) op->attrs.set("arena", ranges);
    if (auto it = plan.workspaces.find(op.get()); it != plan.workspaces.end()) {
      op->attrs.set("workspace", text_of(it->second));
    }
  }
#ifndef NDEBUG
  verify_plan(memory_plan(program, options), program, options);
#endif
  return true;
}

}  // namespace

Pass plan_memory_pass() {
  return {.name = "plan_memory",
          .doc = "Assigns every value its offset in the arena.",
          .needs = {"scheduled"},
          .gives = {"planned"},
          .run = run_plan_memory};
}

}  // namespace fluid
