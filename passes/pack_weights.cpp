#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "ops/arguments.h"
#include "ops/internal_functions.h"
#include "ops/table.h"
#include "passes/pass.h"
#include "passes/rewrite.h"
#include "passes/weight_ops.h"

namespace fluid {
namespace {

/// Gives weights the layouts in which library kernels read them, so that a kernel does not reorder
/// its weight in each step. precompute_weights then moves the copies out of the step.
class Packer {
 public:
  Packer(ir::Graph& graph, const Options& options, const Target& target)
      : graph_(graph), options_(options), target_(target), weights_(weight_ops(graph)) {}

  bool run() {
    return rewrite_ops(graph_, [&](ir::Op& op) {
      const std::optional<KernelCandidate> kernel = packing_kernel(op);
      if (!kernel) return Values();
      Values operands = op.operands;
      for (size_t i = 0; i < operands.size(); ++i) {
        if (kernel->operands[i] != operands[i].type().layout)
          operands[i] = packed(operands[i], kernel->operands[i]);
      }
      ir::Op* on_packed = graph_.append(op.name, operands, op.attrs, result_types(op), op.loc);
      return Values{on_packed->result()};
    });
  }

 private:
  bool is_weight(Value v) const {
    const auto known = weights_.find(v.op());
    return known != weights_.end() && known->second;
  }

  /// Returns the fastest library kernel whose layouts differ from those of `op` at most in the
  /// weights. Returns nullopt if this kernel accepts the current layouts of the weights, or is not
  /// faster than generated code.
  std::optional<KernelCandidate> packing_kernel(const ir::Op& op) const {
    if (def_of(op).kernels->empty() || op.results.size() != 1) return std::nullopt;
    if (std::ranges::none_of(op.operands, [&](Value v) { return is_weight(v); })) return {};
    const auto alone = concrete_copy({&op}, options_.batch);
    const ir::Op& copy = *alone->main().ops.back();
    for (KernelCandidate& candidate : target_.candidates(copy, {})) {
      if (candidate.mixes_samples || !accepts(candidate, op)) continue;
      const bool packs = !candidate.accepts_layouts(copy, copy);
      const bool is_faster = candidate.seconds < target_.generated_seconds(copy);
      return packs && is_faster ? std::optional(std::move(candidate)) : std::nullopt;
    }
    return std::nullopt;
  }

  /// Whether the kernel requires the current layouts of `op`, except for weights. A weight must
  /// have the same size in the layout that the kernel requires, that is, no padding.
  bool accepts(const KernelCandidate& kernel, const ir::Op& op) const {
    if (kernel.results.at(0) != op.results[0].type.layout) return false;
    for (size_t i = 0; i < kernel.operands.size(); ++i) {
      Type type = op.operands[i].type();
      if (kernel.operands[i] == type.layout) continue;
      if (!is_weight(op.operands[i])) return false;
      const int64_t bytes = type.bytes_at(1);
      type.layout = kernel.operands[i];
      if (type.bytes_at(1) != bytes) return false;
    }
    return true;
  }

  /// A copy of `weight` in `layout`. Ops that read the same weight in the same layout share the
  /// copy.
  Value packed(Value weight, const std::optional<Layout>& layout) {
    Value& copy = packed_[{weight, layout ? layout->str() : ""}];
    if (!copy) {
      copy = internal::copy(weight, weight.op()->loc);
      copy.op()->results[0].type.layout = layout;
    }
    return copy;
  }

  ir::Graph& graph_;
  const Options& options_;
  const Target& target_;
  std::map<const ir::Op*, bool> weights_;
  std::map<std::pair<Value, std::string>, Value> packed_;
};

bool run_pack_weights(ir::Program& program, const Options& options, const Target& target) {
  return Packer(program.main(), options, target).run();
}

}  // namespace

Pass pack_weights_pass() {
  return {.name = "pack_weights",
          .doc = "Copies weights into the layouts in which library kernels read them.",
          .needs = {"typed"},
          .provides = {},
          .run = run_pack_weights};
}

}  // namespace fluid
