#include "passes/scan_gradient.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <utility>

#include "ops/arguments.h"
#include "ops/functions.h"
#include "ops/source_kind.h"
#include "ops/table.h"
#include "passes/backward.h"
#include "passes/leading_dim.h"
#include "passes/rewrite.h"
#include "passes/scan_arguments.h"

namespace fluid {
namespace {

Value zeros(ir::Graph& graph, const Type& type) {
  return fill(graph, {.type = without_layout(type), .value = 0.0}, {});
}

/// Whether recomputing `op` is cheap and gives the same bits. Half-precision results are excluded:
/// a kernel does not round a half-precision result that the same kernel reads, so a recomputed
/// value could differ.
bool is_recomputable(const ir::Op& op) {
  const Lower& lower = *def_of(op).lower;
  const bool elementwise =
      std::holds_alternative<Map>(lower) || std::holds_alternative<Alias>(lower);
  return elementwise && std::ranges::none_of(op.results, [](const ir::Result& r) {
           return is_half_precision(r.type.dtype);
         });
}

/// Ops of the scan body that the backward steps do not recompute: arguments and ops that are not
/// recomputable. Also the only user of the result of such an op (not of an argument), if the
/// types of both results are equal. The scan then stacks only the result of the user, such as
/// product + bias instead of the product.
std::set<const ir::Op*> non_recomputed_ops(const ir::Graph& body) {
  const Uses uses = body.uses();
  std::set<const ir::Op*> found;
  for (const auto& op : body.ops) {
    const auto replaces = [&](Value v) {
      const auto users = uses.find(v);
      return found.contains(v.op()) && source_kind(*v.op()) == SourceKind::none &&
             users->second.size() == 1 && op->results.size() == 1 &&
             op->results[0].type == v.type();
    };
    if (!is_recomputable(*op) || std::ranges::any_of(op->operands, replaces))
      found.insert(op.get());
  }
  return found;
}

/// Builds the backward scan of one scan. The body of the backward scan is a copy of the forward
/// body, followed by the gradients. Finally, forward values that are not recomputed are replaced by
/// arguments of the body.
class ScanGradient {
 public:
  ScanGradient(ir::Op& scan, const std::vector<bool>& active, const std::string& reason)
      : scan_(scan),
        forward_(scan_parts(scan)),
        graph_(*scan.graph()),
        body_(copy_of(*forward_.body)),
        copied_(body_.ops.size()),
        non_recomputed_(non_recomputed_ops(body_)),
        forward_arguments_(arguments_of(body_, scan.operands.size())),
        forward_outputs_(output_values(body_)),
        arguments_(body_),
        backward_(body_, forward_outputs_, differentiated(active), ir::Role::backward, reason) {
    body_.outputs.clear();
  }

  Values run(const Values& dout) {
    ir::ScopedRecording as(body_, {ir::Role::backward, scan_.loc, scan_.scope, ""});
    seed(dout);
    backward_.run();
    finish_carries();
    sum_capture_gradients();
    collect_sequence_gradients();
    replace_forward_values();
    return append();
  }

 private:
  static ir::Graph& copy_of(const ir::Graph& body) {
    ir::Program& program = body.program();
    ir::Graph& copy = program.add_graph(program.fresh_graph_name("scan"));
    copy.copy_from(body);
    return copy;
  }

  /// The arguments of the forward body for which gradients are needed.
  Values differentiated(const std::vector<bool>& active) const {
    Values xs;
    for (size_t i = 0; i < forward_arguments_.size(); ++i) {
      const Value x = forward_arguments_[i];
      if (x && is_float(x.dtype()) && (i < forward_.carries || active[i])) xs.push_back(x);
    }
    return xs;
  }

  /// Seeds the gradients of the outputs of the forward body. The gradients of the next carries are
  /// carries of the backward scan. The gradients of the stacked results are sequences of the
  /// backward scan: a step reads one slice.
  void seed(const Values& dout) {
    for (size_t i = 0; i < forward_outputs_.size(); ++i) {
      const Value y = forward_outputs_[i];
      if (!is_float(y.dtype())) continue;
      if (i >= forward_.carries) {
        if (dout[i]) backward_.seed(y, arguments_.add_sequence(dout[i]));
        continue;
      }
      const Value last = dout[i] ? dout[i] : zeros(graph_, y.type());
      backward_.seed(y, arguments_.add_carry(last));
      carries_.push_back(i);
    }
  }

  void finish_carries() {
    for (const size_t i : carries_) {
      const Value x = forward_arguments_[i];
      const Value gradient = x ? backward_.gradient(x) : Value();
      next_carries_.push_back(gradient ? gradient : zeros(body_, forward_outputs_[i].type()));
    }
  }

  /// The gradient of a capture is a sum over the steps. If the gradient in one step is a sum over
  /// rows, one op computes the total after the loop. Otherwise, the loop carries the sum.
  void sum_capture_gradients() {
    for (size_t i = forward_.captures_begin(); i < forward_arguments_.size(); ++i) {
      const Value x = forward_arguments_[i];
      const Value gradient = x ? backward_.gradient(x) : Value();
      if (!gradient) continue;
      if (reduces_rows(*gradient.op())) {
        sums_[i] = gradient;
        continue;
      }
      const Value sum = arguments_.add_carry(zeros(graph_, x.type()));
      carried_sums_[i] = next_carries_.size();
      next_carries_.push_back(add(sum, gradient, scan_.loc));
    }
  }

  void collect_sequence_gradients() {
    for (size_t i = forward_.carries; i < forward_.captures_begin(); ++i) {
      const Value x = forward_arguments_[i];
      if (const Value gradient = x ? backward_.gradient(x) : Value()) {
        collected_gradients_[i] = collect(gradient);
      }
    }
    for (const auto& [i, gradient] : sums_) {
      for (const Value& v : gradient.op()->operands) collect(v);
    }
  }

  /// Makes the backward scan stack the values of `v` from all steps. Returns the index of `v` among
  /// the stacked values.
  size_t collect(Value v) { return collected_.try_emplace(v, collected_.size()).first->second; }

  /// Replaces the forward values that the gradients read by arguments of the body. Does not replace
  /// values that the body recomputes.
  void replace_forward_values() {
    std::map<Value, Value> forward;  // value of the copied body -> value of the forward body
    for (size_t i = 0; i < copied_; ++i) {
      ir::Op &copy = *body_.ops[i], &original = *forward_.body->ops[i];
      // The copy of an inner scan shares its body with the original. Differentiating the copy may
      // have appended outputs to the body and results to the copy. Therefore the original gets the
      // results of the copy.
      if (is_scan(copy)) original.results = copy.results;
      for (int r = 0; r < static_cast<int>(copy.results.size()); ++r) {
        forward[copy.result(r)] = original.result(r);
      }
    }
    std::map<Value, Value> replaced;
    std::set<const ir::Op*> seen;
    std::vector<ir::Op*> todo;
    const auto visit = [&](Value& v) {
      if (const auto known = replaced.find(v); known != replaced.end()) {
        v = known->second;
        return;
      }
      if (!non_recomputed_.contains(v.op())) {
        if (seen.insert(v.op()).second) todo.push_back(v.op());
        return;
      }
      v = replaced[v] = argument_for(v, forward.at(v));
    };
    for (Value& v : next_carries_) visit(v);
    std::map<Value, size_t> collected;
    for (const auto& [value, position] : std::exchange(collected_, {})) {
      Value v = value;
      visit(v);
      collected_[v] = position;
    }
    while (!todo.empty()) {
      ir::Op* op = todo.back();
      todo.pop_back();
      for (Value& v : op->operands) visit(v);
    }
    for (auto& [i, gradient] : sums_) {
      for (Value& v : gradient.op()->operands) visit(v);
    }
  }

  /// The argument that replaces `copy`, the copy of forward value `original` in the backward body.
  Value argument_for(Value copy, Value original) {
    if (source_kind(*copy.op()) != SourceKind::argument) {
      return arguments_.add_sequence(collected_by_forward(original));
    }
    const auto operand = static_cast<size_t>(copy.op()->attrs.get<int64_t>("index"));
    if (operand < forward_.carries) return arguments_.add_sequence(collected_by_forward(original));
    const Value given = scan_.operands[operand];
    return forward_.is_sequence(operand) ? arguments_.add_sequence(given)
                                         : arguments_.add_capture(given);
  }

  /// The result of the forward scan that stacks the values of `value` from all steps. Appends this
  /// result if it is missing.
  Value collected_by_forward(Value value) {
    std::vector<ir::Output>& outputs = forward_.body->outputs;
    for (size_t i = forward_.carries; i < outputs.size(); ++i) {
      if (outputs[i].value == value) return scan_.result(static_cast<int>(i));
    }
    outputs.push_back({std::to_string(outputs.size()), value});
    scan_.results.push_back({sequence_type(value.type(), forward_.steps), ""});
    return scan_.result(static_cast<int>(outputs.size()) - 1);
  }

  Values append() {
    Values outputs = next_carries_;
    // The body need not output a value that is an element of a sequence operand: stacking it gives
    // the sequence operand.
    std::vector<Value> collected(collected_.size());
    for (const auto& [v, position] : collected_) collected[position] = v;
    std::vector<int> results(collected.size(), -1);
    for (size_t i = 0; i < collected.size(); ++i) {
      if (arguments_.sequence_of(collected[i])) continue;
      results[i] = static_cast<int>(outputs.size());
      outputs.push_back(collected[i]);
    }
    for (const Value& v : outputs) {
      body_.outputs.push_back({std::to_string(body_.outputs.size()), v});
    }
    const std::set<const ir::Op*> live = ancestors(outputs);
    ScanParts parts{.body = &body_, .steps = forward_.steps, .reverse = !forward_.reverse};
    const Values operands = arguments_.assign_indices(parts, live);
    ir::Op* backward = append_scan(graph_, operands, parts, scan_.loc);
    const auto sequence_of_collected = [&](size_t position) {
      const int result = results[position];
      return result >= 0 ? backward->result(result) : arguments_.sequence_of(collected[position]);
    };
    Values din = gradients(*backward, sequence_of_collected);
    erase_all_except(body_, live);
    return din;
  }

  Values gradients(ir::Op& backward, const std::function<Value(size_t)>& sequence) {
    Values din(scan_.operands.size());
    for (size_t k = 0; k < carries_.size(); ++k) {
      din[carries_[k]] = backward.result(static_cast<int>(k));
    }
    for (const auto& [i, position] : collected_gradients_) din[i] = sequence(position);
    for (const auto& [i, k] : carried_sums_) din[i] = backward.result(static_cast<int>(k));
    for (const auto& [i, gradient] : sums_) {
      Values rows;
      for (const Value& v : gradient.op()->operands) {
        rows.push_back(concatenated_rows(sequence(collected_.at(v)), scan_.loc));
      }
      din[i] = record_like(graph_, *gradient.op(), rows);
      check(static_cast<bool>(din[i]),
            [&] { return gradient.op()->name + " does not sum the rows of all steps"; });
    }
    return din;
  }

  ir::Op& scan_;
  ScanParts forward_;
  ir::Graph& graph_;
  ir::Graph& body_;  ///< body of the backward scan
  size_t copied_;    ///< number of ops that `body_` copies from the forward body
  /// Ops of the forward copy that the backward steps do not recompute.
  std::set<const ir::Op*> non_recomputed_;
  Values forward_arguments_, forward_outputs_;  ///< arguments and outputs of the forward copy
  ScanArguments arguments_;
  Backward backward_;
  /// Carry k of the backward scan is the gradient of carry carries_[k] of the forward scan.
  std::vector<size_t> carries_;
  Values next_carries_;
  std::map<size_t, size_t> carried_sums_;  ///< capture -> carry that sums its gradient
  std::map<size_t, Value> sums_;           ///< capture -> its gradient in one step
  /// Sequence operand -> index of its gradient in collected_.
  std::map<size_t, size_t> collected_gradients_;
  std::map<Value, size_t> collected_;  ///< value to stack -> index of the stacked value
};

}  // namespace

Values append_scan_gradient(ir::Op& scan, const Values& dout, const std::vector<bool>& active,
                            const std::string& reason) {
  return ScanGradient(scan, active, reason).run(dout);
}

}  // namespace fluid
