#include "passes/batch_partition.h"

#include <algorithm>
#include <set>
#include <unordered_map>

#include "ops/arguments.h"
#include "ops/scan.h"
#include "ops/source_kind.h"
#include "ops/table.h"

namespace fluid {
namespace {

constexpr BatchPartition kOther{BatchPartition::other, 0};

bool is_batched(const std::vector<Dim>& shape) {
  return std::ranges::any_of(shape, [](const Dim& d) { return d.batch; });
}

/// Index of the batch dimension; shape.size() if there is none.
size_t batch_dim(const std::vector<Dim>& shape) {
  return static_cast<size_t>(std::ranges::find_if(shape, &Dim::batch) - shape.begin());
}

/// Whether each element of a value with partition `p` is the same in a part of the batch and in the
/// whole batch. A nonlinear function of other values has kind `other`.
bool is_invariant(const BatchPartition& p) {
  return p.power == 0 && (p.kind == BatchPartition::same || p.kind == BatchPartition::per_sample);
}

BatchPartition sum_of(const BatchPartition& a, const BatchPartition& b) {
  if (a.kind == BatchPartition::other || b.kind == BatchPartition::other) return kOther;
  if (a == b) return a;
  if (a.kind == BatchPartition::per_sample || b.kind == BatchPartition::per_sample) {
    const bool alike = a.power == b.power && std::max(a.kind, b.kind) == BatchPartition::per_sample;
    return alike ? BatchPartition{BatchPartition::per_sample, a.power} : kOther;
  }
  const bool summed = a.kind != BatchPartition::terms && b.kind != BatchPartition::terms;
  if (!summed || a.scale_power() != b.scale_power()) return {BatchPartition::terms, 0};
  return a.kind == BatchPartition::total ? a : b;
}

BatchPartition product_of(const BatchPartition& a, const BatchPartition& b) {
  if (a.kind > b.kind) return product_of(b, a);
  if (b.kind == BatchPartition::other) return kOther;
  const int power = a.power + b.power;
  if (a.kind == BatchPartition::per_sample && b.kind == BatchPartition::per_sample)
    return {BatchPartition::per_sample, power};
  if (a.kind != BatchPartition::same) return kOther;
  if (b.kind == BatchPartition::terms && a.power != 0) return kOther;
  return {b.kind, power};
}

/// Whether a cast is linear up to rounding. A cast from float to integer is not linear.
bool is_linear_cast(DType from, DType to) {
  return is_float(to) || (is_integer(to) && !is_float(from));
}

BatchPartition inverse_of(const BatchPartition& p) {
  const bool has_one = p.kind == BatchPartition::same || p.kind == BatchPartition::per_sample;
  return has_one ? BatchPartition{p.kind, -p.power} : kOther;
}

/// Computes the BatchPartition of an op's results from its lowered scalar expressions and the
/// BatchPartitions of its operands.
class Body {
 public:
  Body(const ir::Op& op, const Lowered& lowered, std::vector<BatchPartition> operands)
      : op_(op), lowered_(lowered), operands_(std::move(operands)) {
    extents_ = lowered.out;
    extents_.insert(extents_.end(), lowered.reduce.begin(), lowered.reduce.end());
    batch_ = static_cast<int64_t>(batch_dim(extents_));
  }

  BatchPartition result(size_t i) {
    const BatchPartition body = of(lowered_.bodies[lowered_.combine ? 0 : i]);
    if (!lowered_.combine) return body;
    if (lowered_.combine != Combine::sum) {
      return is_invariant(body) && !(is_reduced() && body.kind == BatchPartition::per_sample)
                 ? body
                 : kOther;
    }
    if (!is_reduced()) return body;
    if (is_batched(lowered_.out) || body.kind > BatchPartition::total) return kOther;
    return {body.kind == BatchPartition::per_sample ? BatchPartition::total : body.kind,
            body.power + (body.kind == BatchPartition::per_sample ? 0 : 1)};
  }

  /// Sets terms[i] if operand `i` is a term of the sum `e`, alone or times factors. Returns false
  /// if `e` is not a sum of such terms, or if an operand is both a term and a factor.
  bool collect_terms(const Expr& e, std::vector<bool>& terms) {
    std::set<size_t> factors;
    if (!collect(e, terms, factors)) return false;
    return std::ranges::none_of(factors, [&](size_t i) { return terms[i]; });
  }

 private:
  bool collect(const Expr& e, std::vector<bool>& terms, std::set<size_t>& factors) {
    const auto collect_arg = [&](size_t i) { return collect(e.args()[i], terms, factors); };
    const auto is_factor = [&](size_t i) {
      if (of(e.args()[i]) != BatchPartition{}) return false;
      for_each_node(e.args()[i], [&](const Expr& part) {
        if (part.op() == ScalarOp::read) factors.insert(static_cast<size_t>(part.node().ivalue));
      });
      return true;
    };
    switch (e.op()) {
      case ScalarOp::add:
      case ScalarOp::sub:
        return collect_arg(0) && collect_arg(1);
      case ScalarOp::neg:
      case ScalarOp::cast:
        return collect_arg(0);
      case ScalarOp::mul:
        return is_factor(0) ? collect_arg(1) : is_factor(1) && collect_arg(0);
      case ScalarOp::div:
        return is_factor(1) && collect_arg(0);
      case ScalarOp::select:
        return is_factor(0) && collect_arg(1) && collect_arg(2);
      case ScalarOp::read:
        terms[static_cast<size_t>(e.node().ivalue)] = true;
        return true;
      default:
        return false;
    }
  }

  /// Whether the op reduces over the batch dimension.
  bool is_reduced() const { return is_batched(lowered_.reduce); }

  BatchPartition of(const Expr& e) {
    const auto known = known_.find(e.get());
    if (known != known_.end()) return known->second;
    const BatchPartition found = find(e);
    known_[e.get()] = found;
    return found;
  }

  BatchPartition find(const Expr& e) {
    const auto arg = [&](size_t i) { return of(e.args()[i]); };
    switch (e.op()) {
      case ScalarOp::constant:
        return {};
      case ScalarOp::var:  // the batch index of a sample differs between a part and the whole batch
        return e.node().ivalue == batch_ ? kOther : BatchPartition{};
      case ScalarOp::batch:
        return {BatchPartition::same, 1};
      case ScalarOp::read:
        return read(e);
      case ScalarOp::philox:  // the Philox counter uses the sample's index in the whole batch
        return {is_batched(extents_) ? BatchPartition::per_sample : BatchPartition::same, 0};
      case ScalarOp::add:
      case ScalarOp::sub:
        return sum_of(arg(0), arg(1));
      case ScalarOp::mul:
        return product_of(arg(0), arg(1));
      case ScalarOp::div:
        return product_of(arg(0), inverse_of(arg(1)));
      case ScalarOp::neg:
        return arg(0);
      case ScalarOp::cast:
        return is_linear_cast(e.args()[0].dtype(), e.dtype()) ? arg(0) : function(e);
      case ScalarOp::select:
        return selection(arg(0), sum_of(arg(1), arg(2)));
      default:
        return function(e);
    }
  }

  BatchPartition read(const Expr& e) {
    const auto i = static_cast<size_t>(e.node().ivalue);
    const Shape& shape = op_.operands[i].shape();
    // A read at an index that depends on a sample yields a value of this sample, as in an embedding
    // lookup.
    const bool selected = std::ranges::any_of(
        e.args(), [&](const Expr& at) { return of(at).kind == BatchPartition::per_sample; });
    if (selected && operands_[i].kind == BatchPartition::same) {
      return {BatchPartition::per_sample, operands_[i].power};
    }
    const size_t dim = batch_dim(shape);
    if (operands_[i].kind != BatchPartition::per_sample || dim == shape.size()) return operands_[i];
    const Expr& at = e.args()[dim];
    const bool own = at.op() == ScalarOp::var && at.node().ivalue == batch_ &&
                     extents_[static_cast<size_t>(batch_)] == shape[dim];
    return own ? operands_[i] : kOther;
  }

  static BatchPartition selection(const BatchPartition& condition, const BatchPartition& chosen) {
    if (condition == BatchPartition{}) return chosen;
    return is_invariant(condition) && chosen.kind <= BatchPartition::per_sample
               ? BatchPartition{BatchPartition::per_sample, chosen.power}
               : kOther;
  }

  /// BatchPartition of `e`, whose operator may be nonlinear.
  BatchPartition function(const Expr& e) {
    BatchPartition result;
    for (const Expr& a : e.args()) {
      const BatchPartition p = of(a);
      if (!is_invariant(p)) return kOther;
      result.kind = std::max(result.kind, p.kind);
    }
    return result;
  }

  const ir::Op& op_;
  const Lowered& lowered_;
  std::vector<BatchPartition> operands_;
  std::vector<Dim> extents_;
  int64_t batch_ = 0;  ///< index of the loop variable that runs over the batch dimension
  std::unordered_map<const ExprNode*, BatchPartition> known_;
};

/// Whether a reshape from `a` to `b` keeps every element in its sample. This requires that the
/// dimensions before the batch dimension have the same number of elements in both shapes.
bool keeps_samples(const Shape& a, const Shape& b) {
  const auto before = [](const Shape& s) {
    return Shape(s.begin(), s.begin() + static_cast<ptrdiff_t>(batch_dim(s))).numel();
  };
  return before(a) == before(b);
}

/// Partitions of the results of a Loops op, which processes each sample independently. If an
/// operand is not invariant (see is_invariant()), all results have kind `other`. If an operand has
/// kind `per_sample`, results with a batch dimension have kind `per_sample`, and the other results
/// have kind `other`. If all operands have kind `same`, results without a batch dimension have kind
/// `same`, and the other results have kind `other`.
std::vector<BatchPartition> partitions_of_loops(const ir::Op& op,
                                                const std::vector<BatchPartition>& operands) {
  const bool invariant = std::ranges::all_of(operands, is_invariant);
  const bool batched = std::ranges::any_of(
      operands, [](const BatchPartition& p) { return p.kind == BatchPartition::per_sample; });
  std::vector<BatchPartition> results;
  for (const ir::Result& r : op.results) {
    const bool has_batch = r.type.shape.has_batch();
    const auto kind = has_batch ? BatchPartition::per_sample : BatchPartition::same;
    results.push_back(invariant && has_batch == batched ? BatchPartition{kind, 0} : kOther);
  }
  return results;
}

BatchPartition of_source(const ir::Op& op) {
  const bool sampled = source_kind(op) == SourceKind::feed && is_batched(op.results[0].type.shape);
  return {sampled ? BatchPartition::per_sample : BatchPartition::same, 0};
}

}  // namespace

BatchPartition BatchPartitionAnalysis::partition_of(Value v) {
  std::vector<const ir::Op*> todo = {v.op()};
  while (!todo.empty()) {
    const ir::Op& op = *todo.back();
    const size_t before = todo.size();
    if (!known_.contains(Value(const_cast<ir::Op*>(&op), 0))) {
      for (const Value& operand : op.operands) {
        if (!known_.contains(operand)) todo.push_back(operand.op());
      }
      if (todo.size() > before) continue;
      analyse(op);
    }
    todo.pop_back();
  }
  return known_.at(v);
}

void BatchPartitionAnalysis::analyse(const ir::Op& op) {
  const std::vector<BatchPartition> results = result_partitions(op);
  for (size_t i = 0; i < results.size(); ++i) {
    const Value v(const_cast<ir::Op*>(&op), static_cast<int>(i));
    known_[v] = results[i];
    if (results[i].kind != BatchPartition::other) continue;
    const auto bad = std::ranges::find_if(op.operands, [&](Value operand) {
      return known_.at(operand).kind == BatchPartition::other;
    });
    unsupported_ops_[v] = bad == op.operands.end() ? &op : unsupported_ops_.at(*bad);
  }
}

/// BatchPartition of each result of `op`. If the op has an inference form (batch_norm, dropout),
/// its results with a batch dimension count as `per_sample`.
std::vector<BatchPartition> BatchPartitionAnalysis::result_partitions(const ir::Op& op) {
  std::vector<BatchPartition> results = partitions_by_lowering(op);
  const auto is_invariant_value = [&](Value v) { return is_invariant(known_.at(v)); };
  if (def_of(op).inference == nullptr || !std::ranges::all_of(op.operands, is_invariant_value)) {
    return results;
  }
  for (size_t i = 0; i < results.size(); ++i) {
    if (op.results[i].type.shape.has_batch()) results[i] = {BatchPartition::per_sample, 0};
  }
  return results;
}

bool BatchPartitionAnalysis::computes_batch_statistics(const ir::Op& op) {
  if (def_of(op).inference == nullptr) return false;
  const bool all_known = std::ranges::none_of(
      op.operands, [&](const Value& v) { return partition_of(v).kind == BatchPartition::other; });
  return all_known && partitions_by_lowering(op)[0].kind == BatchPartition::other;
}

std::vector<BatchPartition> BatchPartitionAnalysis::partitions_by_lowering(const ir::Op& op) {
  const Lower& lower = *def_of(op).lower;
  std::vector<BatchPartition> results(op.results.size(), kOther);
  std::vector<BatchPartition> operands;
  for (const Value& v : op.operands) operands.push_back(known_.at(v));
  if (std::holds_alternative<Expand>(lower)) {
    results = partitions_by_expansion(op);
  } else if (std::holds_alternative<Alias>(lower)) {
    const bool mixes = operands[0].kind == BatchPartition::per_sample &&
                       !keeps_samples(op.operands[0].shape(), op.results[0].type.shape);
    if (!mixes) results[0] = operands[0];
  } else if (std::holds_alternative<Map>(lower) || std::holds_alternative<Reduce>(lower)) {
    const Lowered lowered = lower_op(op);
    Body body(op, lowered, operands);
    for (size_t i = 0; i < results.size(); ++i) results[i] = body.result(i);
    if (results[0].kind == BatchPartition::terms && terms_of(op).empty()) results[0] = kOther;
  } else if (std::holds_alternative<Loops>(lower)) {
    results = partitions_of_loops(op, operands);
  } else if (std::holds_alternative<Scan>(lower)) {
    results = partitions_of_scan(op, operands);
  } else if (std::holds_alternative<Source>(lower)) {
    results[0] = of_source(op);
  } else if (std::holds_alternative<CollectiveOp>(lower)) {
    results.assign(results.size(), BatchPartition{});
  }
  return results;
}

/// Partitions of the outputs of a scan's body. Iterates to a fixed point, because a carry that
/// starts as zeros (`same`) may become `per_sample` after a step.
std::vector<BatchPartition> BatchPartitionAnalysis::partitions_of_scan(
    const ir::Op& op, std::vector<BatchPartition> arguments) {
  const ScanParts parts = scan_parts(op);
  const Values values = arguments_of(*parts.body, arguments.size());
  while (true) {
    BatchPartitionAnalysis within;
    for (size_t i = 0; i < values.size(); ++i) {
      if (!values[i]) continue;
      within.known_[values[i]] = arguments[i];
      if (arguments[i].kind == BatchPartition::other) within.unsupported_ops_[values[i]] = &op;
    }
    std::vector<BatchPartition> outputs;
    for (const ir::Output& o : parts.body->outputs) {
      outputs.push_back(within.partition_of(o.value));
      if (outputs.back().kind == BatchPartition::terms) outputs.back() = kOther;
    }
    bool stable = true;
    for (size_t i = 0; i < parts.carries; ++i) {
      outputs[i] = sum_of(arguments[i], outputs[i]);
      if (outputs[i].kind == BatchPartition::terms) outputs[i] = kOther;
      stable = stable && outputs[i] == arguments[i];
      arguments[i] = outputs[i];
    }
    if (stable) return outputs;
  }
}

std::vector<BatchPartition> BatchPartitionAnalysis::partitions_by_expansion(const ir::Op& op) {
  ir::Program scratch("expansion");
  ir::Graph& graph = scratch.main();
  BatchPartitionAnalysis within;
  Values operands;
  for (const Value& v : op.operands) {
    operands.push_back(graph.append("arg", {}, {{"index", int64_t{0}}}, {v.type()})->result());
    BatchPartition& given = within.known_[operands.back()] = known_.at(v);
    if (given.kind == BatchPartition::terms) given = kOther;
    if (given.kind == BatchPartition::other) within.unsupported_ops_[operands.back()] = &op;
  }
  ir::Op* copy = graph.append(op.name, operands, op.attrs, result_types(op), op.loc);
  const auto* expand = std::get_if<Expand>(&*def_of(op).lower);
  std::vector<BatchPartition> results;
  for (const Value& v : expand->ops(ExpandCtx(*copy))) {
    results.push_back(within.partition_of(v));
    if (results.back().kind == BatchPartition::terms) results.back() = kOther;
  }
  return results;
}

std::vector<bool> BatchPartitionAnalysis::terms_of(const ir::Op& op) {
  std::vector<bool> terms(op.operands.size());
  const Lower& lower = *def_of(op).lower;
  if (std::holds_alternative<Alias>(lower)) return {true};
  if (!std::holds_alternative<Map>(lower) && !std::holds_alternative<Reduce>(lower)) return {};
  const Lowered lowered = lower_op(op);
  std::vector<BatchPartition> operands;
  for (const Value& v : op.operands) operands.push_back(known_.at(v));
  if (!Body(op, lowered, operands).collect_terms(lowered.bodies[0], terms)) return {};
  return terms;
}

}  // namespace fluid
