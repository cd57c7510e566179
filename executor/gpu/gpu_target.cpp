#include "executor/gpu/gpu_target.h"

#include <algorithm>

#include "codegen/gpu.h"

namespace fluid {
namespace {

constexpr double kLaunchSeconds = 3e-6;

/// Of a bus that moves data twice a clock.
double memory_rate_of(const FluidGpuDescription& gpu) {
  return 2e3 * static_cast<double>(gpu.memory_clock_khz) * gpu.memory_bus_bits / 8;
}

/// A multiply and add for each lane of a multiprocessor and clock (CUDA C++ Programming Guide,
/// throughput of native arithmetic instructions).
double operation_rate_of(const FluidGpuDescription& gpu) {
  const int lanes = gpu.major == 8 && gpu.minor == 0 ? 64 : 128;
  return 2e3 * lanes * gpu.multiprocessors * static_cast<double>(gpu.clock_khz);
}

}  // namespace

GpuTarget::GpuTarget(const FluidGpuDescription& gpu)
    : arch_("sm_" + std::to_string(gpu.major) + std::to_string(gpu.minor)),
      memory_rate_(memory_rate_of(gpu)),
      operation_rate_(operation_rate_of(gpu)),
      kernels_(std::make_unique<KernelMemo>(schedule_gpu)) {}

double GpuTarget::generated_seconds(const ir::Op& op) const {
  double bytes = 0;
  for (const Value& v : op.operands) bytes += static_cast<double>(v.type().bytes_at(1));
  for (const ir::Result& r : op.results) bytes += static_cast<double>(r.type.bytes_at(1));
  return kLaunchSeconds + (memory_rate_ > 0 ? bytes / memory_rate_ : 0);
}

int64_t GpuTarget::scratch(const ir::Op& fused, int64_t batch) const {
  if (fused.attrs.has("kernel")) return 0;
  return scratch_layout(kernels_->passes_of(fused).front(), batch).bytes;
}

}  // namespace fluid
