#include "executor/gpu/gpu_library_call.h"

#include "executor/device/library_task.h"
#include "executor/gpu/gpu_convolution.h"
#include "executor/gpu/gpu_product.h"
#include "ir/error.h"

namespace fluid {
namespace {

GpuTask task_of(const LibraryBody& body, const ir::Op& fused, int64_t batch) {
  if (const auto product = gpu_product(*body.head, body.epilogue, batch)) return *product;
  const auto convolution = gpu_convolution(*body.head, body.epilogue, batch);
  check(convolution.has_value(), "no library of a GPU's knows the kernel of '" + fused.name + "'");
  return *convolution;
}

/// Device addresses serve as integers only.
void* aligned_workspace(void* planned) {
  const auto address = reinterpret_cast<uintptr_t>(planned);
  const auto beyond = address % FLUID_GPU_WORKSPACE_ALIGNMENT;
  const auto padding = beyond == 0 ? 0 : FLUID_GPU_WORKSPACE_ALIGNMENT - beyond;
  return static_cast<std::byte*>(planned) + padding;
}

}  // namespace

int64_t planned_workspace(const ir::Op& fused) {
  return fused.attrs.get<int64_t>("workspace_bytes");
}

GpuLibraryCall::GpuLibraryCall(const ir::Op& fused, int64_t batch, bool tf32)
    : workspace(planned_workspace(fused) - planned_workspace(0)) {
  const LibraryBody body(fused);
  task = task_of(body, fused, batch);
  std::visit(
      [&](auto& t) {
        t.tf32 = tf32;
        adds = t.adds != 0;
        bias = t.bias != 0;
      },
      task);
  buffers = body.buffers;
  buffers.push_back(fused.operands.size());
}

FluidGpuOperands GpuLibraryCall::factors(const std::vector<void*>& addresses, void* planned) const {
  const auto at = [&](size_t i) { return addresses[buffers[i]]; };
  return {.a = at(0),
          .b = at(1),
          .addend = adds ? at(2) : nullptr,
          .bias = bias ? at(2) : nullptr,
          .result = at(buffers.size() - 1),
          .workspace = aligned_workspace(planned)};
}

}  // namespace fluid
