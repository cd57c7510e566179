// If, Loop and Scan, whose attributes are graphs.

#include <span>

#include "frontend/onnx/context.h"
#include "frontend/scan.h"
#include "ops/operators.h"
#include "ops/scan.h"

namespace fluid::onnx {
namespace {

/// Returns the step of a scan from the outputs of the body: the next states, then the values to
/// collect.
ScanStep step_of(const Context& c, const Values& states, std::span<const Operand> outputs) {
  if (outputs.size() < states.size()) {
    c.fail_unsupported("its graph computes " + std::to_string(outputs.size()) + " of " +
                       std::to_string(states.size()) + " states");
  }
  ScanStep step;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Value v = c.value_of(outputs[i]);
    const bool is_state = i < states.size();
    if (is_state && v.type() != states[i].type()) {
      c.fail_unsupported("state " + std::to_string(i) + " is " + states[i].type().str() +
                         ", but its graph computes " + v.type().str());
    }
    (is_state ? step.carries : step.collected).push_back(v);
  }
  return step;
}

Operands outputs_of(const ScanResult& result) {
  Operands outputs(result.carries.begin(), result.carries.end());
  outputs.insert(outputs.end(), result.collected.begin(), result.collected.end());
  return outputs;
}

/// Returns an attribute that holds one integer per sequence, 0 by default.
std::vector<int64_t> per_sequence(const Context& c, const char* name, size_t count) {
  std::vector<int64_t> all = c.ints_attr(name, std::vector<int64_t>(count, 0));
  if (all.size() != count) {
    c.fail_unsupported(std::string(name) + " holds " + std::to_string(all.size()) +
                       " integers, not " + std::to_string(count));
  }
  return all;
}

/// Reverses the steps, dimension 0, of `x`.
Value reverse_if(bool reverse, Value x) { return reverse ? flip(x, {.axes = 0}) : x; }

/// Returns input i with the steps, dimension `axis`, in dimension 0.
Value steps_first(const Context& c, size_t i, int64_t axis) {
  const Value x = c.input(i), y = move_axis(x, dimension(c, x, axis), 0);
  const Dim steps = y.shape()[0];
  if (steps.batch || steps.is(0)) {
    c.fail_unsupported("axis " + std::to_string(axis) + " of input " + std::to_string(i) + ", " +
                       x.type().str() + ", has no fixed, positive number of steps");
  }
  return y;
}

/// Returns the inputs from `first` on as sequences [T, ...] for a scan in direction `direction`.
Values sequences_of(const Context& c, size_t first, const std::vector<int64_t>& directions,
                    int64_t direction) {
  const std::vector<int64_t> axes = per_sequence(c, "scan_input_axes", directions.size());
  Values all;
  for (size_t i = 0; i < directions.size(); ++i) {
    const Value x = steps_first(c, first + i, axes[i]);
    all.push_back(reverse_if(directions[i] != direction, x));
    const Dim steps = x.shape()[0], expected = all[0].shape()[0];
    if (steps != expected) {
      c.fail_unsupported("input " + std::to_string(first + i) + " has " + steps.str() +
                         " steps, not " + expected.str());
    }
  }
  return all;
}

/// Returns the scan outputs of the node from the results `all` of a scan in direction `direction`.
Values scan_outputs(const Context& c, const Values& all, int64_t direction) {
  const std::vector<int64_t> axes = per_sequence(c, "scan_output_axes", all.size()),
                             directions = per_sequence(c, "scan_output_directions", all.size());
  Values outputs;
  for (size_t i = 0; i < all.size(); ++i) {
    const Value y = reverse_if(directions[i] != direction, all[i]);
    outputs.push_back(move_axis(y, 0, dimension(c, y, axes[i])));
  }
  return outputs;
}

/// The scan has the direction of the first sequence. Sequences and outputs of the other direction
/// are reversed outside.
Operands scan_of(const Context& c) {
  if (c.opset() == 8) c.fail_unsupported("operator set 8, which scans batches of sequences");
  const Graph& body = c.graph_attr("body");
  const int64_t count = c.int_attr("num_scan_inputs", 0);
  if (count < 1 || count > static_cast<int64_t>(c.num_inputs())) {
    c.fail_unsupported("num_scan_inputs is " + std::to_string(count) + " of " +
                       std::to_string(c.num_inputs()) + " inputs");
  }
  const auto sequences = static_cast<size_t>(count), states = c.num_inputs() - sequences;
  const std::vector<int64_t> directions = per_sequence(c, "scan_input_directions", sequences);
  const int64_t direction = directions[0];
  Values initial;
  for (size_t i = 0; i < states; ++i) initial.push_back(c.input(i));
  const auto record_step = [&](const Values& carries, const Values& elements) {
    Operands inputs(carries.begin(), carries.end());
    inputs.insert(inputs.end(), elements.begin(), elements.end());
    return step_of(c, carries, c.record_body(body, inputs));
  };
  ScanResult result = scan(initial, sequences_of(c, states, directions, direction), record_step,
                           {.reverse = direction == 1}, c.loc());
  result.collected = scan_outputs(c, result.collected, direction);
  return outputs_of(result);
}

/// The condition must be known: only the branch that it selects is recorded.
Operands if_of(const Context& c) {
  const Tensor* condition = c.find_constant(0);
  if (condition == nullptr)
    c.fail_unsupported("its condition is not a constant: fold constants before the import");
  return c.record_body(c.graph_attr(condition->item() != 0 ? "then_branch" : "else_branch"), {});
}

/// A loop is a scan over the numbers of its iterations if their count is known and no iteration
/// ends the loop.
Operands loop(const Context& c) {
  const Graph& body = c.graph_attr("body");
  const int64_t iterations = c.constant(0).integer(0);
  if (iterations < 1 || iterations > kMaxScanSteps) {
    c.fail_unsupported(std::to_string(iterations) + " iterations, not 1 to " +
                       std::to_string(kMaxScanSteps));
  }
  const auto require_true = [&](const Tensor* condition) {
    if (condition == nullptr || condition->item() == 0) {
      c.fail_unsupported(condition == nullptr ? "its condition is not known to be always true"
                                              : "its condition is false at first or after a step");
    }
  };
  if (c.has_input(1)) require_true(c.find_constant(1));
  Tensor always(boolean, {});
  always.as<bool>()[0] = true;
  Values initial;
  for (size_t i = 2; i < c.num_inputs(); ++i) initial.push_back(c.input(i));
  const auto record_step = [&](const Values& carries, const Values& elements) {
    Operands inputs = {elements[0], Operand(always)};
    inputs.insert(inputs.end(), carries.begin(), carries.end());
    const Operands outputs = c.record_body(body, inputs);
    require_true(outputs.empty() || !outputs[0].constant ? nullptr : &*outputs[0].constant);
    return step_of(c, carries, std::span(outputs).subspan(1));
  };
  const Value numbers = arange(c.graph(), {.type = Type{i64, {iterations}, {}}});
  return outputs_of(scan(initial, {numbers}, record_step, {}, c.loc()));
}

}  // namespace

void add_control(Mappings& all) {
  all["If"] = if_of;
  all["Loop"] = loop;
  all["Scan"] = scan_of;
}

}  // namespace fluid::onnx
