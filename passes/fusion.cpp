#include "passes/fusion.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "ops/node_numbers.h"
#include "ops/scan.h"
#include "ops/source_kind.h"
#include "ops/table.h"
#include "passes/collective_order.h"

namespace fluid {
namespace {

// Costs are in scalar operations.
constexpr double kOpsPerByte = 1.5;   // cost of reading or writing a byte of memory
constexpr double kLaunchCost = 20e3;  // cost of starting a kernel and waiting for its threads
// Slowdown of code after the loops of a kernel (FusionRoot::in_finish_phase), which a single thread
// runs.
constexpr double kSerialSlowdown = 32;
constexpr double kTranscendentalCost = 12;  // cost of exp and similar functions
// A contraction has more than this number of result elements, and of products per result element.
constexpr int64_t kMinContractionTerms = 8;
// Maximum size in bytes of a small value. Horizontal fusion merges only groups with small results.
constexpr double kSmallBytes = 1 << 20;
// Maximum growth of the cost of a kernel that reads its operand through a view.
constexpr double kMaxViewGrowth = 1.1;
constexpr size_t kMaxOps = 256;  // maximum number of ops of a horizontally fused kernel
// Maximum number of ops of a kernel whose ops share loops. Such a kernel inlines an op into each of
// its users, which repeats the code of the op.
constexpr size_t kMaxOpsInLoops = 64;
// Maximum number of results of a horizontally fused kernel. A higher limit would only increase
// compile time.
constexpr size_t kMaxHorizontalOutputs = 64;

double points(const Group& group, const std::vector<int64_t>& vars, int64_t batch) {
  double n = 1;
  for (int64_t v : vars) {
    if (v >= 0) n *= static_cast<double>(group.extents[static_cast<size_t>(v)].at(batch));
  }
  return n;
}

using Nodes = NodeNumbers;

/// Cost of evaluating `body` for one element, in scalar operations. Nodes in `computed` are free.
/// Loop-invariant nodes are free too, because they are computed once. Inserts the other nodes into
/// `computed`.
double operations(const Expr& body, Nodes& computed) {
  double n = 1;
  Nodes varying;
  for_each_node(body, [&](const Expr& e) {
    const bool differs =
        e.op() == ScalarOp::var || e.op() == ScalarOp::let ||
        std::ranges::any_of(e.args(), [&](const Expr& a) { return varying.contains(a.get()); });
    if (!differs) return;
    varying.insert(e.get());
    if (!computed.insert(e.get()).second) return;
    const bool function = e.op() >= ScalarOp::sqrt && e.op() <= ScalarOp::cos;
    const bool loops = e.op() == ScalarOp::mod && is_float(e.dtype());
    if (e.op() == ScalarOp::pow || e.op() == ScalarOp::philox || function || loops) {
      n += kTranscendentalCost;
    }
    if (e.op() > ScalarOp::read && e.op() != ScalarOp::let) n += is_float(e.dtype()) ? 1 : 0.25;
  });
  return n;
}

double bytes(const Value& v, int64_t batch) {
  return static_cast<double>(v.type().bytes_at(batch));
}

bool is_update(const ir::Op& op) { return op.role == ir::Role::optimize; }

/// Estimated cost of a kernel in scalar operations. A subexpression that several results of a loop
/// share counts once in optimizer updates and in the bodies of scans. In other kernels it counts
/// once per result. This limits the size of groups: values of large groups have long live ranges,
/// and the model has no term for memory use.
double kernel_cost(const Group& group, int64_t batch, bool in_scan) {
  const bool shared = in_scan || std::ranges::all_of(group.roots, [](const FusionRoot& s) {
                        return is_update(*s.op);
                      });
  using Loop = std::tuple<std::vector<int64_t>, std::vector<int64_t>, bool>;
  std::map<Loop, Nodes> computed;
  double cost = kLaunchCost;
  for (const FusionRoot& root : group.roots) {
    const double n = points(group, root.out, batch) * points(group, root.reduce, batch);
    Nodes own;
    Nodes& known = shared ? computed[{root.out, root.reduce, root.in_finish_phase}] : own;
    cost += n * operations(root.body, known) * (root.in_finish_phase ? kSerialSlowdown : 1);
  }
  for (const Value& v : group.inputs) cost += bytes(v, batch) * kOpsPerByte;
  for (const Value& v : group.outputs) cost += bytes(v, batch) * kOpsPerByte;
  return cost;
}

/// Whether the group can be merged with other groups. False for a Loops op.
bool is_mergeable(const FusionGroup& group) {
  return group.fusible && is_groupable(*group.ops.front());
}

/// Whether the group is a view of a value. It then runs no kernel, and costs nothing.
bool is_lone_view(const FusionGroup& group) {
  return group.ops.size() == 1 && is_alias(*group.ops.front());
}

}  // namespace

bool is_contraction(const ir::Op& op, int64_t batch) {
  if (!std::holds_alternative<Reduce>(*def_of(op).lower)) return false;
  const Lowered low = lower_op(op);
  if (low.combine != Combine::sum) return false;
  int64_t terms = 1;
  for (const Dim& d : low.reduce) terms *= d.at(batch);
  int64_t elements = 1;
  for (const Dim& d : low.out) elements *= d.at(batch);
  if (terms <= kMinContractionTerms || elements <= kMinContractionTerms) return false;
  int reads = 0;
  bool product = false;
  for_each_node(low.bodies[0], [&](const Expr& e) {
    reads += e.op() == ScalarOp::read ? 1 : 0;
    product = product || (e.op() == ScalarOp::mul && is_float(e.dtype()));
  });
  if (reads < 2 || !product) return false;
  double read = 0;
  for (const Value& v : op.operands) read += static_cast<double>(v.shape().numel_at(batch));
  return read < 0.5 * static_cast<double>(terms) * static_cast<double>(elements);
}

Fusion::Fusion(const ir::Graph& graph, const Options& options)
    : graph_(graph), options_(options), in_scan_(is_scan_body(graph)), uses_(graph.uses()) {
  for (const ir::Output& o : graph.outputs) graph_outputs_.insert(o.value);
  for (const auto& [first, next] : find_order_edges(graph)) {
    order_predecessors_[next].push_back(first);
    order_successors_[first].push_back(next);
  }
  for (const auto& op : graph.ops) {
    positions_[op.get()] = positions_.size();
    auto group = std::make_unique<FusionGroup>();
    group->ops = {op.get()};
    group->fusible = is_groupable(*op) || std::holds_alternative<Loops>(*def_of(*op).lower);
    groups_of_[op.get()] = group.get();
    groups_.push_back(std::move(group));
  }
  place_landmarks();
  for (const auto& group : groups_) {
    if (!group->fusible) continue;
    group->outputs = outputs_of(*group);
    if (!is_mergeable(*group)) continue;
    if (is_contraction(*group->ops.front(), options_.batch))
      group->contraction = group->ops.front();
    if (!is_lone_view(*group)) group->cost = cost_of(*group, false).value_or(0);
  }
}

Values Fusion::outputs_of(const FusionGroup& group) const {
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

/// Returns the estimate for the kernel of the group. Caches estimates by GroupKey, so that repeated
/// layers are analysed once.
const Fusion::KernelEstimate& Fusion::estimate_of(const FusionGroup& group) const {
  GroupKey key = group_key(group.ops, group.outputs, lowered_.kinds);
  for (const ir::Op* op : group.ops) key.push_back(is_update(*op));
  const auto [it, added] = estimates_.try_emplace(std::move(key));
  if (added) {
    const std::optional<Group> analyzed = analyze_group(group.ops, group.outputs, {}, &lowered_);
    if (analyzed)
      it->second = {true, analyzed->parts.size(), kernel_cost(*analyzed, options_.batch, in_scan_)};
  }
  return it->second;
}

std::optional<double> Fusion::cost_of(const FusionGroup& group, bool horizontal) const {
  const KernelEstimate& kernel = estimate_of(group);
  if (!kernel.valid || (kernel.parts > 1 && !horizontal)) return std::nullopt;
  return kernel.cost;
}

/// Whether merging `a` and `b` would fuse a contraction with ops that are not its epilogue.
/// Epilogue ops are constants and elementwise ops on the contraction's result.
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

/// Whether the merged group stays within the limits on ops and results. False if the merge would
/// fuse a contraction with ops that are not its epilogue.
bool Fusion::is_within_limits(const FusionGroup& a, const FusionGroup& b, bool horizontal) const {
  return a.ops.size() + b.ops.size() <= (horizontal ? kMaxOps : kMaxOpsInLoops) &&
         (!horizontal || a.outputs.size() + b.outputs.size() <= kMaxHorizontalOutputs) &&
         !mixes_contractions(a, b);
}

/// Values that the group reads and that other groups produce. Computed on first use.
std::set<Value>& Fusion::inputs_of(FusionGroup& group) const {
  if (group.inputs.empty()) {
    for (const ir::Op* op : group.ops) {
      for (const Value& v : op->operands) {
        if (group_of(v.op()) != &group) group.inputs.insert(v);
      }
    }
  }
  return group.inputs;
}

/// Whether the groups are independent: neither reads a result of the other, and they share no
/// inputs except scalars. Iterates over the values of `small`, not of `large`, to save time.
bool Fusion::are_independent(FusionGroup& large, FusionGroup& small) const {
  const std::set<Value>& read = inputs_of(large);
  return std::ranges::none_of(small.outputs, [&](const Value& v) { return read.contains(v); }) &&
         std::ranges::none_of(inputs_of(small), [&](const Value& v) {
           const bool scalar = v.shape().numel().is(1);
           return group_of(v.op()) == &large || (!scalar && read.contains(v));
         });
}

/// Merges the outputs of `from` into the outputs of `to`, in graph order. The groups must be
/// independent, so that every output is still read outside the merged group.
void Fusion::append_outputs(FusionGroup& to, const FusionGroup& from) const {
  const auto place = [&](const Value& v) { return std::pair(positions_.at(v.op()), v.index()); };
  Values all;
  std::ranges::merge(to.outputs, from.outputs, std::back_inserter(all), {}, place, place);
  to.outputs = std::move(all);
}

/// Whether the groups may not be merged because one updates variables and the other does not, in
/// data-parallel training. The groups of updates then depend on updates alone, and all ranks
/// compute the same bits, also those whose samples need another program.
bool Fusion::separates(const FusionGroup& a, const FusionGroup& b) const {
  return options_.uses_collectives() && is_update(*a.ops.front()) != is_update(*b.ops.front());
}

/// Merges group `b` into `a` if the groups may be merged and the merge lowers the estimated cost.
/// Returns whether the groups were merged. The cycle test comes last, because it is slow when many
/// groups read one value.
bool Fusion::try_merge(FusionGroup* a, FusionGroup* b, bool horizontal, double growth) {
  if (a == b || !is_mergeable(*a) || !is_mergeable(*b) || separates(*a, *b) ||
      !is_within_limits(*a, *b, horizontal)) {
    return false;
  }
  const bool apart = are_independent(*a, *b);
  if (apart && !horizontal) return false;
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
    both.outputs = outputs_of(both);
    cost = cost_of(both, horizontal);
    for (FusionGroup* group : {a, b}) {
      for (const ir::Op* op : group->ops) groups_of_[op] = group;
    }
  }
  if (!cost) return false;
  const double limit = growth * (a->cost + b->cost);
  const bool pays = is_lone_view(*a) || is_lone_view(*b) ? *cost <= limit : *cost < limit;
  if (!pays || makes_cycle(a, b)) return false;
  for (const ir::Op* op : b->ops) groups_of_[op] = a;
  a->ops = std::move(both.ops);
  if (apart) {
    append_outputs(*a, *b);
    a->inputs.merge(b->inputs);
  } else {
    a->outputs = std::move(both.outputs);
    a->inputs.clear();
  }
  a->cost = *cost;
  if (a->contraction == nullptr) a->contraction = b->contraction;
  update_after_merge(a, *b);
  return true;
}

void Fusion::run() {
  merge_with_producers();
  merge_siblings();
  fuse_horizontally([&](const ir::Op& op) { return is_in_parameter_group(op); });
  fuse_horizontally(is_update);
}

void Fusion::merge_with_producers() {
  for (const auto& op : graph_.ops) {
    for (const Value& v : op->operands) {
      if (is_view_between_maps(v, *op)) {
        merge_through_view(v, *op);
      } else {
        try_merge(group_of(v.op()), group_of(op.get()));
      }
    }
  }
}

/// Whether `v` is a view that only `user` reads, of a value that a generated kernel computes and
/// that has no other use.
bool Fusion::is_view_between_maps(const Value& v, const ir::Op& user) const {
  const auto is_read_once = [&](const Value& value) {
    return !graph_outputs_.contains(value) && uses_.at(value).size() == 1;
  };
  if (!is_lone_view(*group_of(v.op()))) return false;
  const Value viewed = v.op()->operands[0];
  return is_read_once(v) && is_read_once(viewed) && is_mergeable(*group_of(&user)) &&
         is_mergeable(*group_of(viewed.op()));
}

/// Merges the view `v` with its user, and both with the kernel that computes the viewed value. A
/// view costs nothing by itself, so that merging it with one of the two rarely lowers the cost.
void Fusion::merge_through_view(const Value& v, const ir::Op& user) {
  const ir::Op* producer = v.op()->operands[0].op();
  if (try_merge(group_of(v.op()), group_of(&user), false, kMaxViewGrowth)) {
    try_merge(group_of(producer), group_of(&user));
  }
}

/// Sibling fusion: merges groups that read the same value. If their loops have equal extents, the
/// merged kernel loads the value once.
void Fusion::merge_siblings() {
  for (const auto& op : graph_.ops) {
    for (size_t i = 0; i < op->results.size(); ++i) {
      const auto uses = uses_.find(op->result(static_cast<int>(i)));
      if (uses == uses_.end()) continue;
      for (const ir::Op* user : uses->second) {
        const auto first = std::ranges::find_if(uses->second, [&](const ir::Op* other) {
          return !separates(*group_of(other), *group_of(user));
        });
        try_merge(group_of(*first), group_of(user));
      }
    }
  }
}

/// Classifies the inputs of a group: `only_sources` if all inputs are sources (feeds and
/// variables), `only_small` if each input has at most kSmallBytes bytes.
Fusion::InputClass Fusion::input_class_of(FusionGroup& group) const {
  InputClass input_class;
  for (const Value& v : inputs_of(group)) {
    input_class.only_sources &= std::holds_alternative<Source>(*def_of(*v.op()).lower);
    input_class.only_small &= bytes(v, options_.batch) <= kSmallBytes;
  }
  return input_class;
}

/// Whether the op is in a group of elementwise ops whose inputs are all parameters. Examples are
/// the casts of parameters for library kernels in mixed precision.
bool Fusion::is_in_parameter_group(const ir::Op& op) const {
  const FusionGroup& group = *group_of(&op);
  const auto good = [&](const Value& v) {
    return group_of(v.op()) == &group || source_kind(*v.op()) == SourceKind::parameter;
  };
  return std::ranges::all_of(group.ops, [&](const ir::Op* o) {
    return !is_update(*o) && !o->operands.empty() &&
           std::holds_alternative<Map>(*def_of(*o).lower) && std::ranges::all_of(o->operands, good);
  });
}

/// Horizontal fusion: merges groups with small results whose ops satisfy `is_candidate`, so that
/// one kernel launch computes them. Merges two groups only if both read only small values, or if
/// one of them reads only sources. Otherwise, a large value might stay alive for longer.
void Fusion::fuse_horizontally(const std::function<bool(const ir::Op&)>& is_candidate) {
  struct Launch {
    FusionGroup* group;
    InputClass input_class;
  };
  std::vector<Launch> launches;
  for (const auto& op : graph_.ops) {
    FusionGroup* group = group_of(op.get());
    if (!is_mergeable(*group) || !is_candidate(*op)) continue;
    if (std::ranges::find(launches, group, &Launch::group) != launches.end()) continue;
    const bool small = std::ranges::all_of(
        group->outputs, [&](const Value& v) { return bytes(v, options_.batch) <= kSmallBytes; });
    if (!small || is_lone_view(*group)) continue;
    const InputClass own = input_class_of(*group);
    const bool merged = std::ranges::any_of(launches, [&](Launch& other) {
      const bool may = own.only_sources || other.input_class.only_sources ||
                       (own.only_small && other.input_class.only_small);
      if (!may || !is_within_limits(*other.group, *group, true) ||
          !try_merge(other.group, group, true)) {
        return false;
      }
      other.input_class.only_sources &= own.only_sources;
      other.input_class.only_small &= own.only_small;
      return true;
    });
    if (!merged) launches.push_back({group, own});
  }
}

std::vector<FusionGroup> Fusion::groups_in_order() const {
  std::vector<FusionGroup> order;
  std::set<const FusionGroup*> done;
  std::function<void(const FusionGroup*)> visit = [&](const FusionGroup* group) {
    if (!done.insert(group).second) return;
    for (const FusionGroup* producer : producers(*group)) visit(producer);
    order.push_back(*group);
  };
  for (const auto& op : graph_.ops) visit(group_of(op.get()));
  return order;
}

}  // namespace fluid
