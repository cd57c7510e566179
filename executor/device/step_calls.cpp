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

BufferRef shifted(BufferRef buffer, int64_t bytes) {
  buffer.offset += bytes;
  return buffer;
}

/// Appends the calls of graphs and of the scans that they hold.
class CallList {
 public:
  explicit CallList(const Options& options) : options_(options) {}

  /// Appends the calls of `op`, whose workspace is `workspace`.
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
  void add_copy(ir::Op& scan, int position, const BufferRef& from, const BufferRef& to,
                int64_t bytes) {
    if (bytes == 0) return;
    calls_.push_back({.op = &scan,
                      .position = position,
                      .refs = {from, to},
                      .workspace = {},
                      .copy_bytes = bytes});
  }

  void add_scan(ir::Op& scan, int position, const BufferOf& outer, int64_t begin) {
    const ScanPlan plan(scan, options_);
    const ScanParts& parts = plan.parts;
    std::map<Value, size_t> outputs;  // root of an output of the body -> its position
    for (size_t i = 0; i < parts.body->outputs.size(); ++i) {
      outputs[root_of(parts.body->outputs[i].value)] = i;
    }
    const auto element_bytes = [&](const Type& sequence) {
      return sequence.bytes_at(options_.batch) / parts.steps;
    };
    const auto result = [&](size_t i) { return outer(scan.result(static_cast<int>(i))); };
    for (int64_t step = 0; step < parts.steps; ++step) {
      const int64_t t = parts.reverse ? parts.steps - 1 - step : step;
      const auto carry = [&](size_t i, int64_t at) {
        return BufferRef{.offset = begin + plan.carries[i][static_cast<size_t>(at % 2)]};
      };
      const auto element = [&](const BufferRef& sequence, const Type& type) {
        return shifted(sequence, t * element_bytes(type));
      };
      const BufferOf buffer_of = [&](Value v) -> BufferRef {
        const Value root = root_of(v);
        if (source_kind(*root.op()) == SourceKind::argument) {
          const auto i = static_cast<size_t>(root.op()->attrs.get<int64_t>("index"));
          const Value operand = scan.operands[i];
          if (i < parts.carries) return step == 0 ? outer(operand) : carry(i, step);
          if (!parts.is_sequence(i)) return outer(operand);
          const auto copy = plan.operand_copies.find(i);
          return copy == plan.operand_copies.end() ? element(outer(operand), operand.type())
                                                   : BufferRef{.offset = begin + copy->second};
        }
        const auto output = outputs.find(root);
        if (output == outputs.end()) {
          return shifted({.offset = begin}, plan.body.values.at(root).offset);
        }
        const size_t i = output->second;
        if (i < parts.carries) return step + 1 == parts.steps ? result(i) : carry(i, step + 1);
        const auto copy = plan.result_copies.find(i);
        return copy == plan.result_copies.end() ? element(result(i), scan.results[i].type)
                                                : BufferRef{.offset = begin + copy->second};
      };
      for (const auto& [i, offset] : plan.operand_copies) {
        const Value operand = scan.operands[i];
        add_copy(scan, position, element(outer(operand), operand.type()),
                 {.offset = begin + offset}, element_bytes(operand.type()));
      }
      for (const auto& op : parts.body->ops) {
        if (!is_call(*op)) continue;
        const auto workspace = plan.body.workspaces.find(op.get());
        Range range = workspace == plan.body.workspaces.end() ? Range() : workspace->second;
        range.offset += begin;
        add(*op, position, buffer_of, range);
      }
      for (const auto& [i, offset] : plan.result_copies) {
        const Type& type = scan.results[i].type;
        add_copy(scan, position, {.offset = begin + offset}, element(result(i), type),
                 element_bytes(type));
      }
    }
  }

  const Options& options_;
  std::vector<StepCall> calls_;
};

}  // namespace

bool StepCall::updates_variables() const {
  const size_t inputs = copy_bytes > 0 ? 1 : op->operands.size();
  return std::any_of(refs.begin() + static_cast<std::ptrdiff_t>(inputs), refs.end(),
                     [](const BufferRef& result) { return result.region == Region::state; });
}

int64_t StepCall::workspace_offset(int64_t bytes) const {
  check(bytes <= workspace.bytes, [&] {
    return "a kernel of '" + op->name + "' needs a workspace of " + std::to_string(bytes) +
           " bytes, but " + std::to_string(workspace.bytes) + " are planned";
  });
  return bytes > 0 ? workspace.offset : 0;
}

std::vector<StepCall> step_calls(const ir::Graph& main, const MemoryPlan& plan,
                                 const Options& options) {
  CallList calls(options);
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
