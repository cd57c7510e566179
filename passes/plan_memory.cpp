#include "ops/source_kind.h"
#include "ops/table.h"
#include "passes/bucket.h"
#include "passes/memory_plan.h"
#include "passes/offsets.h"
#include "passes/pass.h"
#include "passes/rewrite.h"
#include "passes/scan_plan.h"

namespace fluid {
namespace {

/// Computes a MemoryPlan: assigns a range of the arena to every root value (see root_of()) and
/// every workspace.
class Planner {
 public:
  Planner(const ir::Graph& graph, const Options& options, const Target& target)
      : graph_(graph),
        options_(options),
        target_(target),
        results_before_error_sync_(results_before_error_sync(graph)) {
    for (size_t i = 0; i < graph.ops.size(); ++i) {
      position_[graph.ops[i].get()] = static_cast<int>(i);
      for (Value v : graph.ops[i]->operands) users_[root_of(v)].push_back(graph.ops[i].get());
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
    check_required_pairs();
    return std::move(plan_);
  }

 private:
  int64_t bytes_of(Value v) const { return v.type().bytes_at(options_.batch); }
  int64_t reserved(int64_t bytes) const {
    return align_up(bytes) + (options_.guard_plan ? kAlign : 0);
  }
  int last_read_of(Value root) const {
    auto it = users_.find(root);
    int last = position_.at(root.op());
    if (it == users_.end()) return last;
    for (const ir::Op* user : it->second) last = std::max(last, position_.at(user));
    return last;
  }

  /// Position of the last op that uses `result`, a result of a collective. A collective whose
  /// result has no user may run until the end of the step.
  int end_of_collective(Value result) const {
    return users_.contains(result) ? last_read_of(result) : static_cast<int>(graph_.ops.size());
  }

  Range append_range(Region region, int64_t bytes) {
    int64_t& end = plan_.bytes(region);
    Range range = make_range(region, end, bytes);
    end += reserved(bytes);
    return range;
  }

  static Range make_range(Region region, int64_t offset, int64_t bytes) {
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
      const bool feed = kind == SourceKind::feed || kind == SourceKind::argument;
      const Value v = op->result();
      if (kind == SourceKind::carried) {
        const bool in_bucket = overwritten_by_bucket_.contains(v);
        plan_.values[v] = carried_range(*op, in_bucket ? bucket_bytes(v.type()) : bytes_of(v));
        buffer_[v] = add_fixed_buffer(plan_.values[v], 0, last_read_of(v));
        if (in_bucket)
          overwritten_by_[buffer_[v]] = graph_.ops[static_cast<size_t>(last_read_of(v))].get();
      } else {
        plan_.values[v] = append_range(feed ? Region::feeds : Region::state, bytes_of(v));
      }
      if (!feed) variables_[op->symbol] = v;
    }
  }

  /// Range of a carried value. Reads the offset of the range from attribute `offset` of `op`, a
  /// `carried` or `carry` op.
  static Range carried_range(const ir::Op& op, int64_t bytes) {
    return make_range(Region::transient, op.attrs.get<int64_t>("offset"), bytes);
  }
  /// Adds a buffer that is live from `first` to `last` and that assign_offsets() must not move.
  /// Returns the index of the buffer.
  size_t add_fixed_buffer(const Range& range, int first, int last) {
    buffers_.push_back({reserved(range.bytes), first, last, range.offset, true});
    return buffers_.size() - 1;
  }

  void place_outputs() {
    for (const ir::Output& o : graph_.outputs) {
      const Value root = root_of(o.value);
      if (plan_.values.contains(root)) continue;
      plan_.values[root] = append_range(Region::outputs, bytes_of(root));
    }
  }

  /// Range of the variable that `store` writes. Reserves a range if no source op reads the
  /// variable, as in the startup program and in the first micro-batch of gradient accumulation.
  const Range& range_of_variable(const ir::Op& store) {
    auto [it, added] = written_.try_emplace(store.symbol);
    if (!added) return it->second;
    const int64_t bytes = bytes_of(store.operands[0]);
    auto read = variables_.find(store.symbol);
    it->second = read != variables_.end() ? plan_.values.at(read->second)
                 : is_carry(store)        ? carried_range(store, bytes)
                                          : append_range(Region::state, bytes);
    return it->second;
  }

  void place_stored() {
    for (const auto& op : graph_.ops) {
      if (!is_store(*op)) continue;
      const Range& range = range_of_variable(*op);
      const Value root = root_of(op->operands[0]);
      const bool checked = is_carry(*op) || (!results_before_error_sync_.contains(root) &&
                                             may_write_variables(*root.op()));
      const bool in_place =
          checked && !plan_.values.contains(root) && may_overwrite(root, op->symbol);
      if (in_place) plan_.values[root] = range;
      if (!is_carry(*op)) continue;
      const int end = static_cast<int>(graph_.ops.size());
      if (in_place) {
        buffer_[root] = add_fixed_buffer(range, position_.at(root.op()), end);
        if (const auto before = variables_.find(op->symbol); before != variables_.end()) {
          overwritten_by_carry_.insert(buffer_.at(before->second));
        }
      } else {
        add_fixed_buffer(range, position_.at(op.get()), end);
        plan_.workspaces[op.get()] = range;
      }
    }
  }

  bool may_write_variables(const ir::Op& op) const {
    if (is_scan(op)) {
      return std::ranges::all_of(scan_parts(op).body->ops,
                                 [&](const auto& inner) { return may_write_variables(*inner); });
    }
    return !op.attrs.has("kernel") || target_.libraries_may_write_variables();
  }

  /// Whether `root` may be written directly to the memory of variable `symbol`. All users of the
  /// old value must run before the op that computes `root`. The op itself may read the old value if
  /// it can run in place.
  bool may_overwrite(Value root, const std::string& symbol) const {
    auto variable = variables_.find(symbol);
    if (variable == variables_.end()) return true;
    if (bytes_of(root) != bytes_of(variable->second)) return false;
    auto it = users_.find(variable->second);
    if (it == users_.end()) return true;
    const int definition = position_.at(root.op());
    return std::ranges::all_of(it->second, [&](const ir::Op* user) {
      return position_.at(user) < definition ||
             (user == root.op() && may_share(*user, root.index(), variable->second));
    });
  }

  /// Whether result `out` of `op` may overwrite `root` in place. Every operand that shares the
  /// memory of `root` must form an in-place pair with the result.
  bool may_share(const ir::Op& op, int out, Value root) const {
    const std::vector<InPlace>& pairs = pairs_.pairs_of(op);
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

  /// Reserves contiguous memory, a bucket, for the operands of a collective. The results use the
  /// same memory, because a collective runs in place. The range of a tensor includes the padding
  /// after the tensor. If possible, the bucket reuses the memory of the gradients accumulated over
  /// the earlier micro-batches.
  void add_bucket(ir::Op& collective) {
    Buffer bucket{0, static_cast<int>(graph_.ops.size()), position_.at(&collective)};
    if (const Values sums = carried_sums_of(collective); !sums.empty()) {
      bucket.fixed = true;
      bucket.offset = sums.front().op()->attrs.get<int64_t>("offset");
      overwritten_by_bucket_.insert(sums.begin(), sums.end());
    }
    for (size_t i = 0; i < collective.operands.size(); ++i) {
      const Value root = root_of(collective.operands[i]),
                  sum = collective.result(static_cast<int>(i));
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

  /// The carried values that the operands of `collective` may overwrite in place, one per operand.
  /// Empty unless each operand has such a value, and the values are contiguous in bucket order.
  Values carried_sums_of(const ir::Op& collective) const {
    Values sums;
    int64_t offset = 0;
    for (const Value v : collective.operands) {
      const Value root = root_of(v);
      const auto& read = root.op()->operands;
      const auto sum = std::ranges::find_if(read, [&](Value o) {
        return source_kind(*o.op()) == SourceKind::carried && bytes_of(o) == bytes_of(root) &&
               last_read_of(o) == position_.at(root.op()) && may_share(*root.op(), root.index(), o);
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
      if (!is_alias(*op)) {
        for (size_t r = 0; r < op->results.size(); ++r) add_value(*op, static_cast<int>(r), at);
      }
      if (const int64_t bytes = workspace_of(*op); bytes > 0) {
        plan_.workspaces[op.get()] = make_range(Region::transient, 0, bytes);
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
      plan_.values[v] = make_range(Region::transient, 0, bucket_bytes(v.type()));
      return;
    }
    if (const auto shared = operand_buffer(op, result, bytes, at)) {
      buffer_[v] = *shared;
      buffers_[*shared].last = last_read_of(v);
      overwritten_by_[*shared] = &op;
    } else {
      buffers_.push_back({reserved(bytes), at, last_read_of(v)});
      buffer_[v] = buffers_.size() - 1;
    }
    plan_.values[v] = make_range(Region::transient, 0, bytes);
  }

  /// Index of the buffer that result `result` of `op` may overwrite in place: the buffer of an
  /// operand whose last user is `op`. nullopt if there is no such operand.
  std::optional<size_t> operand_buffer(const ir::Op& op, int result, int64_t bytes, int at) const {
    for (const InPlace& pair : pairs_.pairs_of(op)) {
      if (pair.out != result) continue;
      const Value root = root_of(op.operands.at(static_cast<size_t>(pair.in)));
      auto it = buffer_.find(root);
      if (in_bucket_.contains(root)) continue;
      if (it != buffer_.end() && overwritten_by_carry_.contains(it->second)) continue;
      if (it == buffer_.end() || buffers_[it->second].last != at) continue;
      if (buffers_[it->second].bytes != reserved(bytes)) continue;
      auto taken = overwritten_by_.find(it->second);
      if (taken != overwritten_by_.end() && taken->second == &op) continue;
      if (may_share(op, result, root)) return it->second;
    }
    return std::nullopt;
  }

  int64_t workspace_of(const ir::Op& op) const {
    if (is_scan(op)) return ScanPlan(op, options_).bytes;
    if (op.attrs.has("workspace_bytes")) return op.attrs.get<int64_t>("workspace_bytes");
    if (!std::holds_alternative<FusedOp>(*def_of(op).lower)) return 0;
    return target_.scratch_bytes(op, options_.batch);
  }

  void place_aliases() {
    for (const auto& op : graph_.ops) {
      if (!is_alias(*op)) continue;
      plan_.values[op->result()] = plan_.values.at(root_of(op->result()));
    }
  }

  /// Checks every required in-place pair: result and operand must have the same region and offset.
  void check_required_pairs() const {
    for (const auto& op : graph_.ops) {
      for (const InPlace& pair : pairs_.pairs_of(*op)) {
        if (!pair.required) continue;
        const Range& result = plan_.values.at(op->result(pair.out));
        const Range& operand = plan_.values.at(op->operands[static_cast<size_t>(pair.in)]);
        check(result.region == operand.region && result.offset == operand.offset,
              "plan: a result is not in the memory of the operand that it must overwrite");
      }
    }
  }

  const ir::Graph& graph_;
  const Options& options_;
  const Target& target_;
  MemoryPlan plan_;
  std::map<const ir::Op*, int> position_;
  std::map<Value, std::vector<const ir::Op*>> users_;
  /// Results that must not alias a variable, see results_before_error_sync().
  std::set<Value> results_before_error_sync_;
  std::map<std::string, Value> variables_;
  std::map<std::string, Range> written_;
  std::vector<Buffer> buffers_;
  std::map<Value, size_t> buffer_;
  /// Operand or result of a collective -> offset in its bucket in bytes.
  std::map<Value, int64_t> in_bucket_;
  /// Buffers of carried values that a later `carry` op overwrites, as indices into buffers_.
  std::set<size_t> overwritten_by_carry_;
  /// Carried values whose memory is reused for operands of a collective.
  std::set<Value> overwritten_by_bucket_;
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
          .provides = {"planned"},
          .run = run_plan_memory};
}

}  // namespace fluid
