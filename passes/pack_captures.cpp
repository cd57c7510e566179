#include <map>

#include "passes/copy_seconds.h"
#include "passes/packing.h"
#include "passes/pass.h"
#include "passes/rewrite.h"
#include "passes/scan_arguments.h"

namespace fluid {
namespace {

/// Gives captures of a scan the layouts in which library kernels of its body read them. A kernel
/// that reads a matrix in another layout rearranges it, in each of the steps.
class CapturePacker {
 public:
  CapturePacker(ir::Op& scan, const Options& options, const Target& target)
      : scan_(scan), parts_(scan_parts(scan)), options_(options), target_(target) {
    const Values arguments = arguments_of(*parts_.body, scan.operands.size());
    for (size_t i = parts_.captures_begin(); i < arguments.size(); ++i) {
      if (arguments[i]) outside_[arguments[i]] = scan.operands[i];
    }
  }

  /// `copies`: copies of values of the outer graph.
  bool run(PackedCopies& copies) {
    ScanArguments arguments(scan_);
    std::map<Value, Value> packed;  // copy in the outer graph -> argument
    bool changed = false;
    const std::vector<ir::Op*> ops = ops_of_body();
    for (ir::Op* op : ops) {
      const auto kernel = kernel_of(*op);
      if (!kernel) continue;
      for (size_t i = 0; i < op->operands.size(); ++i) {
        Value& v = op->operands[i];
        if (kernel->operands[i] == v.type().layout) continue;
        const Value copy = copies.get(outside_.at(v), kernel->operands[i]);
        const auto [argument, added] = packed.try_emplace(copy);
        if (added) argument->second = arguments.add_capture(copy);
        v = argument->second;
        changed = true;
      }
    }
    if (changed) set_operands(scan_, arguments);
    return changed;
  }

 private:
  std::vector<ir::Op*> ops_of_body() const {
    std::vector<ir::Op*> ops;
    for (const auto& op : parts_.body->ops) ops.push_back(op.get());
    return ops;
  }

  /// Returns the kernel for which copies of captures pay off over all steps.
  std::optional<KernelCandidate> kernel_of(const ir::Op& op) const {
    auto packing =
        packing_kernel(op, options_.batch, target_, [&](Value v) { return outside_.contains(v); });
    if (!packing) return std::nullopt;
    double copies = 0;
    for (size_t i = 0; i < op.operands.size(); ++i) {
      if (packing->kernel.operands[i] != op.operands[i].type().layout)
        copies += copy_seconds(outside_.at(op.operands[i]), options_.batch, target_);
    }
    const auto steps = static_cast<double>(step_count(scan_).size);
    if (packing->saved_seconds() * steps <= copies) return std::nullopt;
    return std::move(packing->kernel);
  }

  ir::Op& scan_;
  ScanParts parts_;
  const Options& options_;
  const Target& target_;
  std::map<Value, Value> outside_;  ///< argument of a capture -> value of the outer graph
};

bool run_pack_captures(ir::Program& program, const Options& options, const Target& target) {
  PackedCopies copies;
  bool changed = false;
  rewrite_ops(program.main(), [&](ir::Op& op) {
    if (is_scan(op)) changed |= CapturePacker(op, options, target).run(copies);
    return Values();
  });
  return changed;
}

}  // namespace

Pass pack_captures_pass() {
  return {.name = "pack_captures",
          .doc = "Copies captures of scans into the layouts in which library kernels read them.",
          .needs = {"typed"},
          .provides = {},
          .run = run_pack_captures};
}

}  // namespace fluid
