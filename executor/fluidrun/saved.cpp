#include "executor/fluidrun/saved.h"

#include "executor/cpu/cpu_target.h"
#include "ops/source_kind.h"
#include "ops/table.h"
#include "passes/memory_plan.h"
#include "passes/passes.h"
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

std::set<int64_t> saved_ops(const Program& program) {
  std::set<int64_t> saved;
  if (find_directive(program.ir().main()) == nullptr) return saved;
  const std::unique_ptr<ir::Program> step = training_step(program);
  for (const auto& op : step->main().ops) {
    if (op->role != ir::Role::backward) continue;
    for (const Value& v : op->operands) {
      const ir::Op* root = root_of(v).op();
      const bool computed = source_kind(*root) == SourceKind::none;
      if (computed && root->role == ir::Role::forward) saved.insert(root->id);
    }
  }
  return saved;
}

std::set<std::string> trained_parameters(const Program& program) {
  std::set<std::string> trained;
  if (find_directive(program.ir().main()) == nullptr) return trained;
  const std::unique_ptr<ir::Program> step = training_step(program);
  for (const auto& op : step->main().ops) {
    if (is_store(*op)) trained.insert(op->symbol);
  }
  return trained;
}

int64_t optimizer_bytes(const Program& program) {
  if (find_directive(program.ir().main()) == nullptr) return 0;
  const std::unique_ptr<ir::Program> step = training_step(program);
  int64_t bytes = 0;
  for (const auto& op : step->main().ops) {
    if (source_kind(*op) != SourceKind::state) continue;
    const Type& type = op->results.front().type;
    if (is_float(type.dtype) && !type.shape.empty()) bytes += type.bytes_at(1);
  }
  return bytes;
}

}  // namespace fluid
