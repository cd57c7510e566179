#include "executor/fluidrun/training_needs.h"

#include "executor/cpu/cpu_target.h"
#include "ops/source_kind.h"
#include "ops/table.h"
#include "passes/memory_plan.h"
#include "passes/pass.h"
#include "passes/pass_table.h"
#include "passes/rewrite.h"

namespace fluid {
namespace {

/// The training step before anything is fused, so that ops still are those of the user.
std::unique_ptr<ir::Program> training_step(const Program& program) {
  std::unique_ptr<ir::Program> step = program.ir().clone();
  const CpuTarget target(TargetDescription{});
  for (const Pass& pass : {infer_types_pass(), append_backward_pass(), simplify_pass(), cse_pass(),
                           dce_pass(), expand_optimizer_pass()}) {
    pass.run(*step, {}, target);
  }
  return step;
}

}  // namespace

TrainingNeeds training_needs(const Program& program) {
  TrainingNeeds needs;
  if (find_directive(program.ir().main()) == nullptr) return needs;
  const std::unique_ptr<ir::Program> step = training_step(program);
  for (const auto& op : step->main().ops) {
    if (is_store(*op)) needs.updated.insert(op->symbol);
    if (source_kind(*op) == SourceKind::state) {
      const Type& type = op->results.front().type;
      const bool is_moment = is_float(type.dtype) && !type.shape.empty();
      if (is_moment) needs.optimizer_bytes += type.bytes_at(1);
    }
    if (op->role != ir::Role::backward) continue;
    for (const Value& v : op->operands) {
      const ir::Op* root = root_of(v).op();
      const bool computed = source_kind(*root) == SourceKind::none;
      if (computed && root->role == ir::Role::forward) needs.saved_ops.insert(root->id);
    }
  }
  return needs;
}

}  // namespace fluid
