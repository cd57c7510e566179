#include "executor/gpu/gpu_step_list.h"

#include <algorithm>
#include <functional>

#include "codegen/gpu_guard.h"
#include "ops/table.h"
#include "passes/collective_order.h"

namespace fluid {
namespace {

template <class T>
bool lowers_to(const ir::Op& op) {
  return std::holds_alternative<T>(*def_of(op).lower);
}

GpuCall group_call(ir::Op& op, const MemoryPlan& plan, int64_t batch, KernelMemo& memo,
                   std::vector<std::pair<const ir::Op*, int>>& error_operands) {
  check(op.attrs.has("body"), "op '" + op.name + "' reached the executor without a kernel");
  const KernelMemo::Passes& passes = memo.passes_of(op);
  GpuCall call{.op = &op, .refs = buffers_of(plan, op)};
  call.updates = updates_variables(op, call.refs);
  for (const kir::Kernel& pass : passes) call.passes.push_back({pass});
  const std::vector<kir::Buffer>& buffers = passes.front().buffers;
  check(batch <= max_batch(buffers), "the batch exceeds the range of the kernel's indices");
  const ScratchLayout scratch = scratch_layout(passes.front(), batch);
  const int64_t begin = workspace_of(plan, op, scratch.bytes);
  for (const int64_t offset : scratch.offsets) call.refs.push_back({.offset = begin + offset});
  if (!buffers.empty() && buffers.back().role == kir::Buffer::Role::error) {
    call.refs.push_back({.error_word = static_cast<int>(error_operands.size())});
    for (size_t i = 0; i < op.operands.size(); ++i) {
      error_operands.emplace_back(&op, static_cast<int>(i));
    }
  }
  check(call.refs.size() == buffers.size(), "a kernel has buffers beyond its op's");
  return call;
}

GpuCall library_call(ir::Op& op, const MemoryPlan& plan, int64_t batch, bool tf32) {
  GpuCall call{.op = &op, .refs = buffers_of(plan, op)};
  check(!updates_variables(op, call.refs), "a library kernel would write to a variable");
  call.library.emplace(op, batch, tf32);
  call.refs.push_back({.offset = workspace_of(plan, op, planned_workspace(op))});
  return call;
}

GpuCall collective_call(ir::Op& op, const MemoryPlan& plan, size_t number) {
  std::vector<BufferRef> refs = buffers_of(plan, op);
  check(!updates_variables(op, refs), "a collective writes to variables even if data was rejected");
  return {
      .op = &op, .exchange = collective_role(plan, op), .number = number, .refs = std::move(refs)};
}

/// Sets which collectives each call waits for.
void relate(std::vector<GpuCall>& calls) {
  std::vector<LinkedCall> related;
  for (GpuCall& call : calls) related.push_back({call.op, &call.exchange});
  link_collectives(related);
}

/// Makes all kernels that write variables test the rejection flag. The last call with error words
/// sets the flag. A call that both checks data and writes variables writes them in its last kernel.
/// The flag is set before this kernel.
void guard_updates(GpuStepList& list) {
  using Kind = GpuPass::Kind;
  const auto count = static_cast<int64_t>(list.error_operands.size());
  const auto last =
      std::find_if(list.calls.rbegin(), list.calls.rend(), std::mem_fn(&GpuCall::refuses));
  for (auto call = list.calls.begin(); call != list.calls.end(); ++call) {
    auto& passes = call->passes;
    if (call->copy_bytes > 0 && call->updates) passes.push_back({copy_pass(call->copy_bytes)});
    auto updates = call->updates ? passes.begin() : passes.end();
    if (call->updates && call->refuses()) updates = passes.end() - 1;
    for (auto pass = updates; pass != passes.end(); ++pass) {
      *pass = {unless_rejected(std::move(pass->kernel)), Kind::guarded};
    }
    if (call + 1 == last.base() || (call->updates && call->refuses())) {
      passes.insert(updates, {error_flag_pass(count), Kind::refusal});
    }
  }
}

/// Places the collective that exchanges the rejection flag after all data checks and after the
/// first `collectives_before` collectives. All kernels that write variables come later, and do
/// nothing if any rank rejected its data.
void insert_error_sync(GpuStepList& list, size_t collectives_before) {
  list.refusals = list.exchanges;
  for (size_t i = 0; i < list.calls.size(); ++i) {
    const GpuCall& call = list.calls[i];
    const bool before = call.exchange.exchanges() && call.number < collectives_before;
    if (call.refuses() || before) list.error_sync_before = i + 1;
  }
  bool heeded = false;
  for (size_t i = 0; i < list.calls.size(); ++i) {
    for (GpuPass& pass : list.calls[i].passes) {
      if (pass.kind != GpuPass::Kind::guarded) continue;
      check(i >= list.error_sync_before,
            "a variable is written before ranks exchange their error words");
      pass.waits_for_error_sync = !std::exchange(heeded, true);
    }
  }
}

}  // namespace

GpuStepList gpu_step_list(const ir::Program& program, const MemoryPlan& plan, int64_t batch,
                          bool tf32, KernelMemo& memo) {
  GpuStepList list;
  for (const auto& op : program.main().ops) {
    if (lowers_to<Source>(*op) || lowers_to<Alias>(*op) || lowers_to<Store>(*op)) continue;
    if (lowers_to<CollectiveOp>(*op)) {
      list.calls.push_back(collective_call(*op, plan, list.exchanges++));
    } else if (op->attrs.has("kernel")) {
      list.calls.push_back(library_call(*op, plan, batch, tf32));
    } else {
      list.calls.push_back(group_call(*op, plan, batch, memo, list.error_operands));
    }
  }
  for (const auto& op : program.main().ops) {
    if (!lowers_to<Store>(*op)) continue;
    if (const auto copy = copy_of_store(plan, *op, batch)) {
      list.calls.push_back({.op = op.get(),
                            .copy_bytes = copy->bytes,
                            .refs = {copy->from, copy->to},
                            .updates = copy->updates});
    }
  }
  relate(list.calls);
  const std::optional<size_t> told = collectives_before_error_sync(program.main());
  if (told || !list.error_operands.empty()) guard_updates(list);
  if (told) insert_error_sync(list, *told);
  return list;
}

}  // namespace fluid
