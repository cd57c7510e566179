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

GpuCall generated_call(ir::Op& op, const MemoryPlan& plan, int64_t batch, KernelCache& memo,
                       std::vector<std::pair<const ir::Op*, int>>& error_operands) {
  check(op.attrs.has("body"), "op '" + op.name + "' reached the executor without a kernel");
  const KernelCache::Kernels& kernels = memo.kernels_of(op);
  GpuCall call{.op = &op, .refs = buffers_of(plan, op)};
  call.updates_variables = updates_variables(op, call.refs);
  for (const kir::Kernel& kernel : kernels) call.launches.push_back({kernel});
  const std::vector<kir::Buffer>& buffers = kernels.front().buffers;
  check(batch <= max_batch(buffers), "the batch exceeds the range of the kernel's indices");
  const ScratchLayout scratch = scratch_layout(kernels.front(), batch);
  const int64_t begin = workspace_offset_of(plan, op, scratch.bytes);
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
  call.refs.push_back({.offset = workspace_offset_of(plan, op, planned_workspace(op))});
  return call;
}

GpuCall collective_call(ir::Op& op, const MemoryPlan& plan, size_t index) {
  std::vector<BufferRef> refs = buffers_of(plan, op);
  check(!updates_variables(op, refs), "a collective writes to variables even if data was rejected");
  return {.op = &op,
          .collective = collective_role(plan, op),
          .collective_index = index,
          .refs = std::move(refs)};
}

/// Sets, for each call, the number of collectives that the call waits for.
void link_calls(std::vector<GpuCall>& calls) {
  std::vector<CallWithRole> linked;
  for (GpuCall& call : calls) linked.push_back({call.op, &call.collective});
  complete_collective_roles(linked);
}

/// Makes all kernels that write variables test the rejection flag. The kernel that sets the flag is
/// appended to the last call that has error words. In a call that both checks data and writes
/// variables, only the last kernel writes variables, and the flag is set just before that kernel.
void guard_updates(GpuStepList& list) {
  using Kind = GpuKernelLaunch::Kind;
  const auto count = static_cast<int64_t>(list.error_operands.size());
  const auto last =
      std::find_if(list.calls.rbegin(), list.calls.rend(), std::mem_fn(&GpuCall::has_error_words));
  for (auto call = list.calls.begin(); call != list.calls.end(); ++call) {
    auto& launches = call->launches;
    if (call->copy_bytes > 0 && call->updates_variables)
      launches.push_back({copy_kernel(call->copy_bytes)});
    auto updates = call->updates_variables ? launches.begin() : launches.end();
    if (call->updates_variables && call->has_error_words()) updates = launches.end() - 1;
    for (auto launch = updates; launch != launches.end(); ++launch) {
      *launch = {skip_if_rejected(std::move(launch->kernel)), Kind::guarded};
    }
    if (call + 1 == last.base() || (call->updates_variables && call->has_error_words())) {
      launches.insert(updates, {error_flag_kernel(count), Kind::rejection});
    }
  }
}

/// Places the all-reduce of the rejection flag after all data checks and after the first
/// `collectives_before` collectives. The all-reduce precedes all kernels that write variables.
/// Those kernels do nothing if any rank has rejected its data.
void insert_error_sync(GpuStepList& list, size_t collectives_before) {
  list.error_sync = list.collective_count;
  for (size_t i = 0; i < list.calls.size(); ++i) {
    const GpuCall& call = list.calls[i];
    const bool before =
        call.collective.is_collective() && call.collective_index < collectives_before;
    if (call.has_error_words() || before) list.error_sync_before = i + 1;
  }
  bool found_first = false;
  for (size_t i = 0; i < list.calls.size(); ++i) {
    for (GpuKernelLaunch& launch : list.calls[i].launches) {
      if (launch.kind != GpuKernelLaunch::Kind::guarded) continue;
      check(i >= list.error_sync_before,
            "a variable is written before ranks exchange their error words");
      launch.waits_for_error_sync = !std::exchange(found_first, true);
    }
  }
}

}  // namespace

GpuStepList gpu_step_list(const ir::Program& program, const MemoryPlan& plan, int64_t batch,
                          bool tf32, KernelCache& memo) {
  GpuStepList list;
  for (const auto& op : program.main().ops) {
    if (lowers_to<Source>(*op) || lowers_to<Alias>(*op) || lowers_to<Store>(*op)) continue;
    if (lowers_to<CollectiveOp>(*op)) {
      list.calls.push_back(collective_call(*op, plan, list.collective_count++));
    } else if (op->attrs.has("kernel")) {
      list.calls.push_back(library_call(*op, plan, batch, tf32));
    } else {
      list.calls.push_back(generated_call(*op, plan, batch, memo, list.error_operands));
    }
  }
  for (const auto& op : program.main().ops) {
    if (!lowers_to<Store>(*op)) continue;
    if (const auto copy = store_copy(plan, *op, batch)) {
      list.calls.push_back({.op = op.get(),
                            .copy_bytes = copy->bytes,
                            .refs = {copy->from, copy->to},
                            .updates_variables = copy->updates_variable});
    }
  }
  link_calls(list.calls);
  const std::optional<size_t> collectives_before = collectives_before_error_sync(program.main());
  if (collectives_before || !list.error_operands.empty()) guard_updates(list);
  if (collectives_before) insert_error_sync(list, *collectives_before);
  return list;
}

}  // namespace fluid
