#include "passes/packing.h"
#include "passes/pass.h"
#include "passes/rewrite.h"
#include "passes/weight_ops.h"

namespace fluid {
namespace {

/// A packed matrix lies beside the weight, and matrices are most of the parameters of many
/// networks. So its copy must save at least this fraction of a product's time.
constexpr double kMinGainOfMatrix = 0.1;

bool pays_for_memory(const PackingKernel& packing, const ir::Op& op) {
  const bool packs_matrix = op.operands.back().shape().rank() == 2;
  return !packs_matrix || packing.saved_seconds() >= kMinGainOfMatrix * packing.current_seconds;
}

/// Gives weights the layouts in which library kernels read them, so that a kernel does not reorder
/// its weight in each step. precompute_weights then moves the copies out of the step.
bool run_pack_weights(ir::Program& program, const Options& options, const Target& target) {
  ir::Graph& graph = program.main();
  const std::map<const ir::Op*, bool> weights = weight_ops(graph);
  const auto is_weight = [&](Value v) {
    const auto known = weights.find(v.op());
    return known != weights.end() && known->second;
  };
  PackedCopies copies;
  return rewrite_ops(graph, [&](ir::Op& op) {
    const auto packing = packing_kernel(op, options.batch, target, is_weight);
    if (!packing || !pays_for_memory(*packing, op)) return Values();
    Values operands = op.operands;
    for (size_t i = 0; i < operands.size(); ++i) {
      const std::optional<Layout>& layout = packing->kernel.operands[i];
      if (layout != operands[i].type().layout) operands[i] = copies.get(operands[i], layout);
    }
    ir::Op* on_packed = graph.append(op.name, operands, op.attrs, result_types(op), op.loc);
    return Values{on_packed->result()};
  });
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
