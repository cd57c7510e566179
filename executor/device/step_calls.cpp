#include "executor/device/step_calls.h"

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include "ops/source_kind.h"
#include "ops/table.h"
#include "passes/scan_plan.h"

namespace fluid {
namespace {

using BufferOf = std::function<BufferRef(Value)>;

bool is_call(const ir::Op& op) {
  const Lower& lower = *def_of(op).lower;
  return !std::holds_alternative<Source>(lower) && !std::holds_alternative<Alias>(lower) &&
         !std::holds_alternative<Store>(lower);
}

/// Maps the values in the body of one scan to buffers, for each step.
class ScanBuffers {
 public:
  /// `outer`: the buffers of the operands and results of `scan`. `workspace`: offset of the scan's
  /// workspace in the transient region.
  ScanBuffers(ir::Op& scan, const ScanPlan& plan, BufferOf outer, int64_t workspace, int64_t batch)
      : scan_(scan), plan_(plan), outer_(std::move(outer)), workspace_(workspace), batch_(batch) {
    const std::vector<ir::Output>& outputs = plan.parts.body->outputs;
    for (size_t i = 0; i < outputs.size(); ++i) outputs_[root_of(outputs[i].value)] = i;
  }

  /// Returns the buffer that holds the body's value `v` in step `step`.
  BufferRef buffer_of(Value v, int64_t step) const {
    const Value root = root_of(v);
    if (source_kind(*root.op()) == SourceKind::argument) {
      return argument(static_cast<size_t>(root.op()->attrs.get<int64_t>("index")), step);
    }
    const auto output = outputs_.find(root);
    if (output != outputs_.end()) return result(output->second, step);
    return in_workspace(plan_.body.values.at(root).offset);
  }

  BufferRef in_workspace(int64_t offset) const { return {.offset = workspace_ + offset}; }

  /// The element that step `step` reads from sequence operand `i` or writes to stacked result `i`.
  BufferRef operand_element(size_t i, int64_t step) const {
    return element(outer_(scan_.operands[i]), scan_.operands[i].type(), step);
  }
  BufferRef result_element(size_t i, int64_t step) const {
    return element(outer_result(i), scan_.results[i].type, step);
  }

  int64_t element_bytes(const Type& sequence) const {
    return sequence.bytes_at(batch_) / plan_.parts.steps;
  }

 private:
  BufferRef argument(size_t i, int64_t step) const {
    const ScanParts& parts = plan_.parts;
    if (i < parts.carries) return step == 0 ? outer_(scan_.operands[i]) : carry(i, step);
    if (!parts.is_sequence(i)) return outer_(scan_.operands[i]);
    const auto copy = plan_.operand_copies.find(i);
    return copy == plan_.operand_copies.end() ? operand_element(i, step)
                                              : in_workspace(copy->second);
  }

  BufferRef result(size_t i, int64_t step) const {
    const ScanParts& parts = plan_.parts;
    if (i < parts.carries) {
      return step + 1 == parts.steps ? outer_result(i) : carry(i, step + 1);
    }
    const auto copy = plan_.result_copies.find(i);
    return copy == plan_.result_copies.end() ? result_element(i, step) : in_workspace(copy->second);
  }

  /// Returns the buffer of carry `i` that step `step - 1` writes and step `step` reads.
  BufferRef carry(size_t i, int64_t step) const {
    return in_workspace(plan_.carries[i][static_cast<size_t>(step % 2)]);
  }

  BufferRef outer_result(size_t i) const { return outer_(scan_.result(static_cast<int>(i))); }

  BufferRef element(BufferRef sequence, const Type& type, int64_t step) const {
    const ScanParts& parts = plan_.parts;
    sequence.offset += (parts.reverse ? parts.steps - 1 - step : step) * element_bytes(type);
    return sequence;
  }

  ir::Op& scan_;
  const ScanPlan& plan_;
  BufferOf outer_;
  int64_t workspace_;
  int64_t batch_;
  std::map<Value, size_t> outputs_;  ///< root_of() of a body output -> index of the output
};

/// Collects the calls of a graph, including the calls in the bodies of its scans.
class CallList {
 public:
  CallList(const Options& options, ScanLowering scans) : options_(options), scans_(scans) {}

  /// Appends the calls of `op`. `workspace`: the workspace planned for `op`.
  void add(ir::Op& op, int position, const BufferOf& buffer_of, const Range& workspace) {
    if (is_scan(op)) return add_scan(op, position, buffer_of, workspace.offset);
    StepCall call{.op = &op, .position = position, .refs = {}, .workspace = workspace};
    for (const Value& v : op.operands) call.refs.push_back(buffer_of(v));
    for (size_t r = 0; r < op.results.size(); ++r) {
      call.refs.push_back(buffer_of(op.result(static_cast<int>(r))));
    }
    calls_.push_back(std::move(call));
  }

  std::vector<StepCall> take() { return std::move(calls_); }

 private:
  void add_scan(ir::Op& scan, int position, const BufferOf& outer, int64_t workspace) {
    const ScanPlan plan(scan, options_);
    const ScanBuffers buffers(scan, plan, outer, workspace, options_.batch);
    const int64_t steps = plan.parts.steps;
    if (scans_ == ScanLowering::loops && steps >= CallLoop::kMinSteps &&
        std::ranges::none_of(plan.parts.body->ops, [](const auto& op) { return is_scan(*op); })) {
      return add_loop(scan, position, plan, buffers, workspace);
    }
    for (int64_t step = 0; step < steps; ++step) {
      add_scan_step(scan, position, plan, buffers, workspace, step);
    }
  }

  /// Adds the calls of one step of `scan`.
  void add_scan_step(ir::Op& scan, int position, const ScanPlan& plan, const ScanBuffers& buffers,
                     int64_t workspace, int64_t step) {
    for (const auto& [i, offset] : plan.operand_copies) {
      add_copy(scan, position, buffers.operand_element(i, step), buffers.in_workspace(offset),
               buffers.element_bytes(scan.operands[i].type()));
    }
    for (const auto& op : plan.parts.body->ops) {
      if (!is_call(*op)) continue;
      const auto planned = plan.body.workspaces.find(op.get());
      Range range = planned == plan.body.workspaces.end() ? Range() : planned->second;
      range.offset += workspace;
      add(
          *op, position, [&](Value v) { return buffers.buffer_of(v, step); }, range);
    }
    for (const auto& [i, offset] : plan.result_copies) {
      add_copy(scan, position, buffers.in_workspace(offset), buffers.result_element(i, step),
               buffers.element_bytes(scan.results[i].type));
    }
  }

  /// Adds the calls of `scan` as a loop. Derives the strides from the first two odd steps.
  void add_loop(ir::Op& scan, int position, const ScanPlan& plan, const ScanBuffers& buffers,
                int64_t workspace) {
    const int64_t steps = plan.parts.steps;
    const auto calls_of = [&](int64_t step) {
      CallList list(options_, scans_);
      list.add_scan_step(scan, position, plan, buffers, workspace, step);
      return list.take();
    };
    // With kMinSteps steps, each phase is a single step, and the strides are unused.
    const bool strided = steps > CallLoop::kMinSteps;
    std::vector<StepCall> first = calls_of(0), odd = calls_of(1), even = calls_of(2),
                          next_odd = calls_of(strided ? 3 : 1), last = calls_of(steps - 1);
    ++num_loops_;
    for (size_t i = 0; i < first.size(); ++i) {
      CallLoop loop{.id = num_loops_, .steps = steps};
      for (size_t b = 0; b < first[i].refs.size(); ++b) {
        loop.strides.push_back((next_odd[i].refs[b].offset - odd[i].refs[b].offset) / 2);
      }
      loop.refs = {std::move(odd[i].refs), std::move(even[i].refs), std::move(last[i].refs)};
      first[i].loop = std::move(loop);
      calls_.push_back(std::move(first[i]));
    }
  }

  void add_copy(ir::Op& scan, int position, const BufferRef& from, const BufferRef& to,
                int64_t bytes) {
    if (bytes == 0) return;
    StepCall& copy = calls_.emplace_back();
    copy.op = &scan;
    copy.position = position;
    copy.refs = {from, to};
    copy.copy_bytes = bytes;
  }

  const Options& options_;
  ScanLowering scans_;
  int64_t num_loops_ = 0;
  std::vector<StepCall> calls_;
};

}  // namespace

bool StepCall::updates_variables() const {
  const size_t inputs = copy_bytes > 0 ? 1 : op->operands.size();
  const auto writes_state = [&](const std::vector<BufferRef>& buffers) {
    return std::any_of(buffers.begin() + static_cast<std::ptrdiff_t>(inputs), buffers.end(),
                       [](const BufferRef& result) { return result.region == Region::state; });
  };
  return writes_state(refs) || (loop && std::ranges::any_of(loop->refs, writes_state));
}

int64_t StepCall::workspace_offset(int64_t bytes) const {
  check(bytes <= workspace.bytes, [&] {
    return "a kernel of '" + op->name + "' needs a workspace of " + std::to_string(bytes) +
           " bytes, but " + std::to_string(workspace.bytes) + " are planned";
  });
  return bytes > 0 ? workspace.offset : 0;
}

std::vector<StepCall> step_calls(const ir::Graph& main, const MemoryPlan& plan,
                                 const Options& options, ScanLowering scans) {
  CallList calls(options, scans);
  const BufferOf buffer = [&](Value v) { return buffer_of(plan, v); };
  for (size_t i = 0; i < main.ops.size(); ++i) {
    ir::Op& op = *main.ops[i];
    if (!is_call(op)) continue;
    const auto workspace = plan.workspaces.find(&op);
    calls.add(op, static_cast<int>(i), buffer,
              workspace == plan.workspaces.end() ? Range() : workspace->second);
  }
  return calls.take();
}

}  // namespace fluid
