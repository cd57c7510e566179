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

GpuCall gpu_call(const StepCall& call) {
  return {.op = call.op,
          .position = call.position,
          .copy_bytes = call.copy_bytes,
          .refs = call.refs,
          .updates_variables = call.updates_variables()};
}

GpuCall generated_call(const StepCall& step_call, int64_t batch, KernelCache& kernel_cache,
                       std::vector<std::pair<const ir::Op*, int>>& error_operands) {
  const ir::Op& op = *step_call.op;
  check(op.attrs.has("body"), "op '" + op.name + "' reached the executor without a kernel");
  const KernelCache::Kernels& kernels = kernel_cache.kernels_of(op);
  GpuCall call = gpu_call(step_call);
  for (const kir::Kernel& kernel : kernels) call.launches.push_back({kernel});
  const std::vector<kir::Buffer>& buffers = kernels.front().buffers;
  check(batch <= max_batch(buffers), "the batch exceeds the range of the kernel's indices");
  const ScratchLayout scratch = scratch_layout(kernels.front(), batch);
  const int64_t begin = step_call.workspace_offset(scratch.bytes);
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

GpuCall library_call(const StepCall& step_call, int64_t batch, bool tf32) {
  GpuCall call = gpu_call(step_call);
  check(!call.updates_variables, "a library kernel would write to a variable");
  call.library.emplace(*step_call.op, batch, tf32);
  call.refs.push_back({.offset = step_call.workspace_offset(planned_workspace(*step_call.op))});
  return call;
}

GpuCall collective_call(const StepCall& step_call, const MemoryPlan& plan, size_t index) {
  GpuCall call = gpu_call(step_call);
  check(!call.updates_variables, "a collective writes to variables even if data was rejected");
  call.collective = collective_role(plan, *step_call.op);
  call.collective_index = index;
  return call;
}

/// Sets, for each call, the number of collectives that the call waits for.
void link_calls(const ir::Graph& main, std::vector<GpuCall>& calls) {
  std::vector<CallWithRole> linked;
  for (GpuCall& call : calls) {
    linked.push_back({main.ops[static_cast<size_t>(call.position)].get(), &call.collective});
  }
  complete_collective_roles(linked);
}

/// Makes every kernel that writes variables test the rejection flag. Inserts flag kernels, which
/// set the flag:
/// - A call that both checks data and writes variables gets a flag kernel before its last kernel,
///   because only its last kernel writes variables.
/// - The last call with error words gets a flag kernel at its end, unless it writes variables.
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

/// Adds the all-reduce of the rejection flag to the step list. It runs after all data checks and
/// the first `collectives_before` collectives, and before all kernels that write variables. So
/// these kernels write nothing if any rank has rejected its data.
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

GpuStepList gpu_step_list(const ir::Program& program, const MemoryPlan& plan,
                          const Options& options, KernelCache& kernel_cache) {
  GpuStepList list;
  const ir::Graph& main = program.main();
  const int64_t batch = options.batch;
  for (const StepCall& call : step_calls(main, plan, options, ScanLowering::unrolled)) {
    if (call.copy_bytes > 0) {
      list.calls.push_back(gpu_call(call));
    } else if (lowers_to<CollectiveOp>(*call.op)) {
      list.calls.push_back(collective_call(call, plan, list.collective_count++));
    } else if (call.op->attrs.has("kernel")) {
      list.calls.push_back(library_call(call, batch, options.tf32));
    } else {
      list.calls.push_back(generated_call(call, batch, kernel_cache, list.error_operands));
    }
  }
  for (size_t i = 0; i < main.ops.size(); ++i) {
    const ir::Op& op = *main.ops[i];
    if (!lowers_to<Store>(op)) continue;
    if (const auto copy = store_copy(plan, op, batch)) {
      list.calls.push_back({.op = &op,
                            .position = static_cast<int>(i),
                            .copy_bytes = copy->bytes,
                            .refs = {copy->from, copy->to},
                            .updates_variables = copy->updates_variable});
    }
  }
  link_calls(main, list.calls);
  const std::optional<size_t> collectives_before = collectives_before_error_sync(program.main());
  if (collectives_before || !list.error_operands.empty()) guard_updates(list);
  if (collectives_before) insert_error_sync(list, *collectives_before);
  return list;
}

}  // namespace fluid
