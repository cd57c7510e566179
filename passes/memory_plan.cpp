#include "passes/memory_plan.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <numeric>
#include <set>
#include <tuple>

#include "ops/group.h"
#include "ops/loops.h"
#include "ops/scan.h"
#include "ops/source_kind.h"
#include "ops/table.h"
#include "passes/collective_order.h"
#include "passes/half_weights.h"
#include "passes/precompute_weights.h"
#include "passes/rewrite.h"

namespace fluid {
namespace {

constexpr std::array<std::string_view, 4> kRegions = {"state", "feeds", "outputs", "transient"};

Range parse_range(std::string_view text) {
  Range range;
  const size_t space = text.find(' '), colon = text.find(':');
  check(space != text.npos && colon != text.npos, "malformed range '" + std::string(text) + "'");
  const auto region = std::ranges::find(kRegions, text.substr(0, space));
  check(region != kRegions.end(), "unknown region in '" + std::string(text) + "'");
  range.region = static_cast<Region>(region - kRegions.begin());
  std::from_chars(text.data() + space + 1, text.data() + colon, range.offset);
  std::from_chars(text.data() + colon + 1, text.data() + text.size(), range.bytes);
  return range;
}

/// Live ranges of root values (see root_of()): positions of the ops that first and last use each
/// value. Uses of an alias count as uses of its root. A collective whose results have no user may
/// run until the end of the step.
class Lifetimes {
 public:
  explicit Lifetimes(const ir::Graph& graph) : end_(static_cast<int>(graph.ops.size()) - 1) {
    for (int i = 0; i <= end_; ++i) {
      ir::Op& op = *graph.ops[static_cast<size_t>(i)];
      for (Value v : op.operands) last_[root_of(v)] = is_store(op) ? end_ : i;
      for (size_t r = 0; r < op.results.size(); ++r) {
        const Value root = root_of(op.result(static_cast<int>(r)));
        first_.try_emplace(root, source_kind(op) == SourceKind::carried ? -1 : i);
        last_[root] = is_collective(op) ? end_ : i;
      }
    }
  }
  int end() const { return end_; }
  void set(Range& range, Value v) const {
    const bool permanent = range.region != Region::transient;
    range.first = permanent ? 0 : first_.at(root_of(v));
    range.last = permanent ? end_ : last_.at(root_of(v));
  }

 private:
  int end_;
  std::map<Value, int> first_, last_;
};

/// Reads the ranges of the plan from attributes of the ops. Computes the categories and names of
/// the ranges, the region sizes, and the peak memory.
class PlanReader {
 public:
  PlanReader(const ir::Graph& graph, const Options& options)
      : graph_(graph), guard_(options.guard_plan ? kAlign : 0), lifetimes_(graph) {
    for (const auto& op : graph.ops) {
      if (op->name == "param") parameters_.insert(op->symbol);
      if (is_store(*op) && op->role == ir::Role::optimize) optimizer_states_.insert(op->symbol);
    }
  }

  MemoryPlan run() {
    read_ranges();
    set_permanent_names();
    find_peak();
    return std::move(plan_);
  }

 private:
  void read_ranges() {
    for (size_t i = 0; i < graph_.ops.size(); ++i) {
      ir::Op& op = *graph_.ops[i];
      for (size_t r = 0; r < op.results.size(); ++r) {
        const auto& texts = op.attrs.get<std::vector<std::string>>("arena");
        Range range = parse_range(texts.at(r));
        const Value v = op.result(static_cast<int>(r));
        lifetimes_.set(range, v);
        range.category = is_gradient(op) ? RangeCategory::gradient : RangeCategory::activation;
        range.name = source_kind(op) == SourceKind::carried ? op.symbol
                     : op.results[r].name.empty()           ? op.name
                                                            : op.results[r].name;
        grow_region(range);
        plan_.values[v] = std::move(range);
      }
      if (!op.attrs.has("workspace")) continue;
      Range range = parse_range(op.attrs.get<std::string>("workspace"));
      range.category = RangeCategory::workspace;
      range.name = op.name;
      range.first = static_cast<int>(i);
      range.last = is_store(op) ? lifetimes_.end() : range.first;
      grow_region(range);
      plan_.workspaces[&op] = std::move(range);
    }
  }

  void grow_region(const Range& range) {
    int64_t& size = plan_.bytes(range.region);
    if (range.bytes > 0) {
      size = std::max(size, range.offset + align_up(range.bytes) + guard_);
    }
  }

  static bool is_gradient(const ir::Op& op) {
    return op.role == ir::Role::comm || (op.role == ir::Role::backward && !op.param.empty());
  }

  static bool is_derived_weight(std::string_view variable) {
    return parameter_of_half_weight(variable) || is_precomputed_weight(variable);
  }

  RangeCategory other_state(const std::string& symbol) const {
    return optimizer_states_.contains(symbol) ? RangeCategory::optimizer : RangeCategory::buffer;
  }

  /// Category of the variable that `store` writes.
  RangeCategory category_of_stored(const ir::Op& store) const {
    const bool of_parameter = parameters_.contains(store.symbol);
    if (of_parameter || is_derived_weight(store.symbol)) return RangeCategory::parameter;
    return is_gradient(*store.operands[0].op()) ? RangeCategory::gradient
                                                : other_state(store.symbol);
  }

  void set_permanent_names() {
    for (const ir::Output& o : graph_.outputs)
      name(o.value, Region::outputs, RangeCategory::output, o.name);
    for (const auto& op : graph_.ops) {
      const SourceKind kind = source_kind(*op);
      if (is_carry(*op) || kind == SourceKind::carried) continue;
      if (is_store(*op)) {
        name(op->operands[0], Region::state, category_of_stored(*op), op->symbol);
      } else if (kind == SourceKind::feed || kind == SourceKind::argument) {
        name(op->result(), Region::feeds, RangeCategory::feed, op->symbol);
      } else if (kind != SourceKind::none) {
        const bool of_parameter = kind == SourceKind::parameter || is_derived_weight(op->symbol);
        const RangeCategory category = of_parameter       ? RangeCategory::parameter
                                       : is_gradient(*op) ? RangeCategory::gradient
                                                          : other_state(op->symbol);
        name(op->result(), Region::state, category, op->symbol);
      }
    }
  }

  void name(Value v, Region region, RangeCategory category, const std::string& text) {
    for (Value place : {v, root_of(v)}) {
      Range& range = plan_.values.at(place);
      if (range.region != region) continue;
      range.category = category;
      range.name = text;
    }
  }

  /// Finds the op at which most memory is in use. Bytes that an op overwrites in place count once.
  /// Such an op ends one live range and begins another with the same offset.
  void find_peak() {
    std::vector<Range> ranges;
    for (const auto& op : graph_.ops) {
      for (size_t r = 0; r < op->results.size(); ++r) {
        ranges.push_back(plan_.values.at(op->result(static_cast<int>(r))));
      }
      const auto workspace = plan_.workspaces.find(op.get());
      if (workspace != plan_.workspaces.end()) ranges.push_back(workspace->second);
    }
    // A value precedes its aliases in the graph, so that its category counts.
    std::ranges::stable_sort(ranges, {}, [](const Range& r) {
      return std::tuple(r.region, r.offset, r.first, -r.last);
    });
    std::vector<Range> counted;
    for (Range& r : ranges) {
      if (!counted.empty() && counted.back().region == r.region &&
          counted.back().offset == r.offset) {
        r.first = std::max(r.first, counted.back().last + 1);
      }
      if (r.bytes > 0 && r.first <= r.last) counted.push_back(r);
    }
    std::vector<int64_t> used(graph_.ops.size() + 1);
    for (const Range& r : counted) {
      used[static_cast<size_t>(std::max(r.first, 0))] += r.bytes;
      used[static_cast<size_t>(r.last) + 1] -= r.bytes;
    }
    std::partial_sum(used.begin(), used.end(), used.begin());
    const int peak = static_cast<int>(std::ranges::max_element(used) - used.begin());
    if (peak < static_cast<int>(graph_.ops.size())) {
      const ir::Op& op = *graph_.ops[static_cast<size_t>(peak)];
      plan_.peak = op.name + (op.loc.is_known() ? " @ " + op.loc.str() : "");
    }
    for (const Range& r : counted) {
      if (r.first > peak || r.last < peak) continue;
      plan_.at_peak[r.category] += r.bytes;
    }
  }

  const ir::Graph& graph_;
  std::set<std::string_view> parameters_, optimizer_states_;
  int64_t guard_;
  Lifetimes lifetimes_;
  MemoryPlan plan_;
};

}  // namespace

std::string_view name_of(Region region) { return kRegions[static_cast<size_t>(region)]; }

int64_t& MemoryPlan::bytes(Region region) {
  return *std::array{&state, &feeds, &outputs, &transient}[static_cast<size_t>(region)];
}

MemoryPlan memory_plan(const ir::Program& final_program, const Options& options) {
  return memory_plan(final_program.main(), options);
}

MemoryPlan memory_plan(const ir::Graph& final_graph, const Options& options) {
  return PlanReader(final_graph, options).run();
}

namespace {

/// Body graph of `op` if it is a fused op for which code is generated. Null for library kernels and
/// for ops that are not fused.
const ir::Graph* generated_body(const ir::Op& op) {
  const Attr* body = op.attrs.find("body");
  if (body == nullptr || op.attrs.has("kernel") || is_scan(op)) return nullptr;
  return op.graph()->program().find(std::get<GraphRef>(*body).name);
}

bool reads_checked(const Expr& body) {
  bool found = false;
  for_each_node(body,
                [&](const Expr& e) { found |= e.op() == ScalarOp::read && e.node().checked; });
  return found;
}

}  // namespace

const std::vector<InPlace>& InPlacePairs::pairs_of(const ir::Op& op) {
  if (!std::holds_alternative<FusedOp>(*def_of(op).lower) && !is_collective(op)) {
    return *def_of(op).in_place;
  }
  const auto [known, added] = pairs_by_op_.try_emplace(&op);
  if (!added) return *known->second;
  const ir::Graph* body = op.attrs.has("in_place") ? nullptr : generated_body(op);
  if (body != nullptr) return *(known->second = pairs_of_body(*body));
  std::vector<InPlace>& own = other_pairs_[&op];
  if (op.attrs.has("in_place")) {
    own = {{.out = 0, .in = static_cast<int>(op.attrs.get<int64_t>("in_place"))}};
  } else if (is_collective(op)) {
    for (int i = 0; i < static_cast<int>(op.results.size()); ++i) own.push_back({i, i});
  }
  return *(known->second = &own);
}

const std::vector<InPlace>* InPlacePairs::pairs_of_body(const ir::Graph& body) {
  std::vector<const ir::Op*> ops;
  for (const auto& op : body.ops) ops.push_back(op.get());
  Values outputs;
  for (const ir::Output& o : body.outputs) outputs.push_back(o.value);
  const auto [it, added] = pairs_by_body_.try_emplace(group_key(ops, outputs, kinds_));
  if (added) it->second = in_place_pairs(body);
  return &it->second;
}

bool may_reject_data(const ir::Op& op) {
  if (is_scan(op)) {
    return std::ranges::any_of(scan_parts(op).body->ops,
                               [](const auto& inner) { return may_reject_data(*inner); });
  }
  const ir::Graph* body = generated_body(op);
  return body != nullptr && std::ranges::any_of(body->ops, [](const auto& inner) {
           return !checked_operands(*inner).empty();
         });
}

std::set<Value> results_before_error_sync(const ir::Graph& final_graph) {
  std::set<Value> results;
  const auto& ops = final_graph.ops;
  const std::optional<size_t> before_sync = collectives_before_error_sync(final_graph);
  const ir::Op* before = before_sync && *before_sync > 0
                             ? collectives_in_order(final_graph)[*before_sync - 1]
                             : nullptr;
  const auto last = std::find_if(ops.rbegin(), ops.rend(), [&](const auto& op) {
    return may_reject_data(*op) || op.get() == before;
  });
  if (last == ops.rend()) return results;
  const auto end = last.base() - (before_sync ? 0 : 1);
  for (auto op = ops.begin(); op != end; ++op) {
    if (source_kind(**op) != SourceKind::none) continue;
    for (size_t r = 0; r < (*op)->results.size(); ++r) {
      const Value result = (*op)->result(static_cast<int>(r));
      if (root_of(result) == result) results.insert(result);
    }
  }
  if (before_sync) return results;
  const ir::Graph* checking = generated_body(**last);
  // A scan or Loops op writes results before it has checked all indices.
  if (checking == nullptr || loops_op(*checking) != nullptr) {
    for (size_t r = 0; r < (*last)->results.size(); ++r) {
      results.insert((*last)->result(static_cast<int>(r)));
    }
    return results;
  }
  const Group group = analyze_fused_body(*checking);
  const bool finish_checks = std::ranges::any_of(
      group.roots, [](const FusionRoot& s) { return s.in_finish_phase && reads_checked(s.body); });
  for (const FusionRoot& root : group.roots) {
    for (const int r : root.outputs) {
      const bool stored = r >= 0;  // -1: the kernel does not store the result of this reduction
      if (stored && (finish_checks || !root.in_finish_phase)) results.insert((*last)->result(r));
    }
  }
  return results;
}

std::string_view name_of(RangeCategory category) {
  static constexpr std::array<std::string_view, 8> kNames = {
      "parameters", "optimizer", "buffers",     "feeds",
      "outputs",    "gradients", "activations", "workspace"};
  return kNames[static_cast<size_t>(category)];
}

Value root_of(Value v) {
  while (is_alias(*v.op())) v = v.op()->operands.at(0);
  return v;
}

}  // namespace fluid
