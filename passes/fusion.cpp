#include "passes/fusion.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "ops/source_kind.h"
#include "passes/collective_order.h"

namespace fluid {
namespace {

constexpr double kOpsPerByte = 1.5;         // cost of moving a byte to or from cache or memory
constexpr double kLaunchCost = 20e3;        // cost of launching and joining a kernel
constexpr double kSerial = 32;              // slowdown of the finish: one thread, few lanes
constexpr double kTranscendentalCost = 12;  // cost of exp and similar functions
constexpr int64_t kTiny = 8;                // no contraction below this many terms or elements
constexpr double kSmall = 1 << 20;          // bytes; only smaller results share a launch
constexpr size_t kMaxOps = 256;             // limit per kernel
constexpr size_t kMaxOpsInLoops = 64;       // limit if loops are shared: inlining repeats ops
constexpr size_t kMaxSideBySide =
    64;  // limit of results side by side in one kernel; more only cost compile time

double points(const Group& group, const std::vector<int64_t>& vars, int64_t batch) {
  double n = 1;
  for (int64_t v : vars) {
    if (v >= 0) n *= static_cast<double>(group.extents[static_cast<size_t>(v)].at(batch));
  }
  return n;
}

using Nodes = std::set<const ExprNode*>;

/// Scalar operations per element of `body`. Nodes in `computed` are free; adds the other nodes to
/// `computed`. Loop-invariant nodes are free too: they are computed once.
double operations(const Expr& body, Nodes& computed) {
  double n = 1;
  Nodes varying;
  for_each_node(body, [&](const Expr& e) {
    const bool differs =
        e.op() == Scalar::var || e.op() == Scalar::let ||
        std::ranges::any_of(e.args(), [&](const Expr& a) { return varying.contains(a.get()); });
    if (!differs) return;
    varying.insert(e.get());
    if (!computed.insert(e.get()).second) return;
    const bool function = e.op() >= Scalar::sqrt && e.op() <= Scalar::cos;
    if (e.op() == Scalar::pow || e.op() == Scalar::philox || function) n += kTranscendentalCost;
    if (e.op() > Scalar::read && e.op() != Scalar::let) n += is_float(e.dtype()) ? 1 : 0.25;
  });
  return n;
}

double bytes(const Value& v, int64_t batch) {
  return static_cast<double>(v.type().bytes_at(batch));
}

bool is_update(const ir::Op& op) { return op.role == ir::Role::optimize; }

/// Estimated cost of a kernel in scalar operations. Only for optimizer updates does the model let
/// results of one loop share subexpressions: their results go into variables. Other groups would
/// grow and keep values alive for long, which the model does not count.
double kernel_cost(const Group& group, int64_t batch) {
  const bool shared =
      std::ranges::all_of(group.sinks, [](const GroupSink& s) { return is_update(*s.op); });
  using Loop = std::tuple<std::vector<int64_t>, std::vector<int64_t>, bool>;
  std::map<Loop, Nodes> computed;
  double cost = kLaunchCost;
  for (const GroupSink& sink : group.sinks) {
    const double n = points(group, sink.out, batch) * points(group, sink.reduce, batch);
    Nodes own;
    Nodes& known = shared ? computed[{sink.out, sink.reduce, sink.finish}] : own;
    cost += n * operations(sink.body, known) * (sink.finish ? kSerial : 1);
  }
  for (const Value& v : group.inputs) cost += bytes(v, batch) * kOpsPerByte;
  for (const Value& v : group.outputs) cost += bytes(v, batch) * kOpsPerByte;
  return cost;
}

bool is_alias(const ir::Op& op) { return std::holds_alternative<Alias>(*def_of(op).lower); }

}  // namespace

bool is_contraction(const ir::Op& op, int64_t batch) {
  if (!std::holds_alternative<Reduce>(*def_of(op).lower)) return false;
  const Lowered low = lower_op(op);
  if (low.combine != Combine::sum) return false;
  int64_t terms = 1;
  for (const Dim& d : low.reduce) terms *= d.at(batch);
  int64_t elements = 1;
  for (const Dim& d : low.out) elements *= d.at(batch);
  if (terms <= kTiny || elements <= kTiny) return false;
  int reads = 0;
  bool product = false;
  for_each_node(low.bodies[0], [&](const Expr& e) {
    reads += e.op() == Scalar::read ? 1 : 0;
    product = product || (e.op() == Scalar::mul && is_float(e.dtype()));
  });
  if (reads < 2 || !product) return false;
  double read = 0;
  for (const Value& v : op.operands) read += static_cast<double>(v.shape().numel_at(batch));
  return read < 0.5 * static_cast<double>(terms) * static_cast<double>(elements);
}

Fusion::Fusion(const ir::Graph& graph, const Options& options)
    : graph_(graph), options_(options), uses_(graph.uses()) {
  for (const ir::Output& o : graph.outputs) graph_outputs_.insert(o.value);
  for (const auto& [first, next] : order_edges(graph)) {
    awaited_[next].push_back(first);
    waiting_[first].push_back(next);
  }
  for (const auto& op : graph.ops) {
    positions_[op.get()] = positions_.size();
    auto group = std::make_unique<FusionGroup>();
    group->ops = {op.get()};
    group->fusible = is_groupable(*op);
    groups_of_[op.get()] = group.get();
    groups_.push_back(std::move(group));
  }
  place_landmarks();
  for (const auto& group : groups_) {
    if (!group->fusible) continue;
    group->outputs = outputs(*group);
    if (is_contraction(*group->ops.front(), options_.batch))
      group->contraction = group->ops.front();
    group->cost = cost_of(*group, false).value_or(0);
  }
}

Values Fusion::outputs(const FusionGroup& group) const {
  Values outputs;
  for (const ir::Op* op : group.ops) {
    for (size_t i = 0; i < op->results.size(); ++i) {
      const Value v(const_cast<ir::Op*>(op), static_cast<int>(i));
      bool outside = graph_outputs_.contains(v);
      if (auto it = uses_.find(v); it != uses_.end()) {
        outside = outside || std::ranges::any_of(it->second, [&](const ir::Op* user) {
                    return groups_of_.at(user) != groups_of_.at(op);
                  });
      }
      if (outside) outputs.push_back(v);
    }
  }
  return outputs;
}

/// Caches the analysis by GroupKey, so that repeated layers are analysed once.
const Fusion::Kernel& Fusion::kernel_of(const FusionGroup& group) const {
  GroupKey key = key_of_group(group.ops, group.outputs, lowered_.kinds);
  for (const ir::Op* op : group.ops) key.push_back(is_update(*op));
  const auto [it, added] = kernels_.try_emplace(std::move(key));
  if (added) {
    const std::optional<Group> analyzed = analyze_group(group.ops, group.outputs, {}, &lowered_);
    if (analyzed)
      it->second = {true, analyzed->parts.size(), kernel_cost(*analyzed, options_.batch)};
  }
  return it->second;
}

std::optional<double> Fusion::cost_of(const FusionGroup& group, bool side_by_side) const {
  const Kernel& kernel = kernel_of(group);
  if (!kernel.possible || (kernel.parts > 1 && !side_by_side)) return std::nullopt;
  return kernel.cost;
}

/// Whether a merge would fuse a contraction with anything but an epilogue: elementwise ops on its
/// result and constants.
bool Fusion::mixes_contractions(const FusionGroup& a, const FusionGroup& b) const {
  if (a.contraction == nullptr && b.contraction == nullptr) return false;
  if (a.contraction != nullptr && b.contraction != nullptr) return true;
  const FusionGroup& with = a.contraction != nullptr ? a : b;
  const FusionGroup& other = &with == &a ? b : a;
  const Shape& shape = with.contraction->results[0].type.shape;
  return std::ranges::any_of(other.ops, [&](const ir::Op* op) {
    if (op->operands.empty()) return false;
    const bool follows = std::ranges::any_of(
        op->operands, [&](const Value& v) { return group_of(v.op()) == &with; });
    return std::holds_alternative<Reduce>(*def_of(*op).lower) || !follows ||
           op->results[0].type.shape != shape;
  });
}

/// Whether the merged kernel stays within the size limits and does not mix contractions with other
/// work.
bool Fusion::fits(const FusionGroup& a, const FusionGroup& b, bool side_by_side) const {
  return a.ops.size() + b.ops.size() <= (side_by_side ? kMaxOps : kMaxOpsInLoops) &&
         (!side_by_side || a.outputs.size() + b.outputs.size() <= kMaxSideBySide) &&
         !mixes_contractions(a, b);
}

/// The values that the group reads from outside. Computed on demand.
std::set<Value>& Fusion::reads_of(FusionGroup& group) const {
  if (group.reads.empty()) {
    for (const ir::Op* op : group.ops) {
      for (const Value& v : op->operands) {
        if (group_of(v.op()) != &group) group.reads.insert(v);
      }
    }
  }
  return group.reads;
}

/// Whether the groups share nothing but scalars: neither reads a result of the other, and they have
/// no common input. Iterates over `small` only, which may be much smaller.
bool Fusion::are_independent(FusionGroup& large, FusionGroup& small) const {
  const std::set<Value>& read = reads_of(large);
  return std::ranges::none_of(small.outputs, [&](const Value& v) { return read.contains(v); }) &&
         std::ranges::none_of(reads_of(small), [&](const Value& v) {
           const bool scalar = v.shape().numel().is(1);
           return group_of(v.op()) == &large || (!scalar && read.contains(v));
         });
}

/// Merges the outputs of independent groups. All remain outputs, because their readers are outside.
void Fusion::append_outputs(FusionGroup& to, const FusionGroup& from) const {
  const auto place = [&](const Value& v) { return std::pair(positions_.at(v.op()), v.index()); };
  Values all;
  std::ranges::merge(to.outputs, from.outputs, std::back_inserter(all), {}, place, place);
  to.outputs = std::move(all);
}

/// Tests for a cycle last, because the test is slow when many groups read one value.
bool Fusion::merge(FusionGroup* a, FusionGroup* b, bool side_by_side) {
  if (a == b || !a->fusible || !b->fusible || !fits(*a, *b, side_by_side)) return false;
  const bool apart = are_independent(*a, *b);
  if (apart && !side_by_side) return false;
  FusionGroup both;
  std::ranges::merge(
      a->ops, b->ops, std::back_inserter(both.ops), {},
      [&](const ir::Op* op) { return positions_.at(op); },
      [&](const ir::Op* op) { return positions_.at(op); });
  std::optional<double> cost;
  if (apart) {
    cost = a->cost + b->cost - kLaunchCost;
  } else {
    for (const ir::Op* op : both.ops) groups_of_[op] = &both;
    both.outputs = outputs(both);
    cost = cost_of(both, side_by_side);
    for (FusionGroup* group : {a, b}) {
      for (const ir::Op* op : group->ops) groups_of_[op] = group;
    }
  }
  if (!cost || *cost >= a->cost + b->cost || makes_cycle(a, b)) return false;
  for (const ir::Op* op : b->ops) groups_of_[op] = a;
  a->ops = std::move(both.ops);
  if (apart) {
    append_outputs(*a, *b);
    a->reads.merge(b->reads);
  } else {
    a->outputs = std::move(both.outputs);
    a->reads.clear();
  }
  a->cost = *cost;
  if (a->contraction == nullptr) a->contraction = b->contraction;
  take_place_of(a, *b);
  return true;
}

void Fusion::run() {
  merge_with_producers();
  merge_siblings();
  gather([&](const ir::Op& op) { return is_parameter_map(op); });
  gather(is_update);
}

void Fusion::merge_with_producers() {
  for (const auto& op : graph_.ops) {
    for (const Value& v : op->operands) {
      FusionGroup* own = group_of(op.get());
      if (own->fusible) merge(group_of(v.op()), own);
    }
  }
}

/// Merges groups that read the same value. They share its loads if their loops agree.
void Fusion::merge_siblings() {
  for (const auto& op : graph_.ops) {
    for (size_t i = 0; i < op->results.size(); ++i) {
      const auto uses = uses_.find(op->result(static_cast<int>(i)));
      if (uses == uses_.end()) continue;
      for (size_t r = 1; r < uses->second.size(); ++r) {
        merge(group_of(uses->second[0]), group_of(uses->second[r]));
      }
    }
  }
}

/// The operands that a group waits for: `for_nothing` if it reads only sources, `for_small` if all
/// values that it reads are at most kSmall bytes.
Fusion::Waiting Fusion::waiting_of(FusionGroup& group) const {
  Waiting waiting;
  for (const Value& v : reads_of(group)) {
    waiting.for_nothing &= std::holds_alternative<Source>(*def_of(*v.op()).lower);
    waiting.for_small &= bytes(v, options_.batch) <= kSmall;
  }
  return waiting;
}

/// Whether the op is in a group of maps of parameters. In mixed precision these are the casts that
/// library kernels read.
bool Fusion::is_parameter_map(const ir::Op& op) const {
  const FusionGroup& group = *group_of(&op);
  const auto good = [&](const Value& v) {
    return group_of(v.op()) == &group || source_kind(*v.op()) == SourceKind::parameter;
  };
  return std::ranges::all_of(group.ops, [&](const ir::Op* o) {
    return !is_update(*o) && !o->operands.empty() &&
           std::holds_alternative<Map>(*def_of(*o).lower) && std::ranges::all_of(o->operands, good);
  });
}

/// Merges groups of one kind side by side into one launch, if their results are small. The merge
/// must not keep a large value alive longer: both groups read only small values, or one of them
/// reads only sources.
void Fusion::gather(const std::function<bool(const ir::Op&)>& is_kind) {
  struct Launch {
    FusionGroup* group;
    Waiting waiting;
  };
  std::vector<Launch> launches;
  for (const auto& op : graph_.ops) {
    FusionGroup* group = group_of(op.get());
    if (!group->fusible || !is_kind(*op)) continue;
    if (std::ranges::find(launches, group, &Launch::group) != launches.end()) continue;
    const bool small = std::ranges::all_of(
        group->outputs, [&](const Value& v) { return bytes(v, options_.batch) <= kSmall; });
    if (!small || (is_alias(*op) && group->ops.size() == 1)) continue;
    const Waiting mine = waiting_of(*group);
    const bool merged = std::ranges::any_of(launches, [&](Launch& other) {
      const bool may = mine.for_nothing || other.waiting.for_nothing ||
                       (mine.for_small && other.waiting.for_small);
      if (!may || !fits(*other.group, *group, true) || !merge(other.group, group, true)) {
        return false;
      }
      other.waiting.for_nothing &= mine.for_nothing;
      other.waiting.for_small &= mine.for_small;
      return true;
    });
    if (!merged) launches.push_back({group, mine});
  }
}

std::vector<FusionGroup> Fusion::ordered() const {
  std::vector<FusionGroup> order;
  std::set<const FusionGroup*> done;
  std::function<void(const FusionGroup*)> visit = [&](const FusionGroup* group) {
    if (!done.insert(group).second) return;
    for (const FusionGroup* source : sources(*group)) visit(source);
    order.push_back(*group);
  };
  for (const auto& op : graph_.ops) visit(group_of(op.get()));
  return order;
}

}  // namespace fluid
