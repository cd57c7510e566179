#include "executor/gpu/gpu_target.h"

#include <fmt/format.h>

#include <algorithm>

#include "codegen/gpu.h"
#include "executor/device/op_cost.h"
#include "executor/gpu_libraries/algorithm_record.h"
#include "executor/gpu_libraries/gpu_library_call.h"
#include "ops/table.h"

namespace fluid {
namespace {

constexpr double kLaunchSeconds = 3e-6;
/// Fixed overhead of a library kernel in seconds, for its prologue and epilogue.
constexpr double kLibrarySeconds = 2e-6;
/// Fraction of the peak FLOP/s that library kernels reach on large tensors.
constexpr double kLibraryEfficiency = 0.7;
/// Fraction of the peak FLOP/s that generated kernels reach.
constexpr double kGeneratedEfficiency = 0.2;
/// Tensor-core kernels pad the channel count of half-precision tensors to a multiple of this
/// number.
constexpr int64_t kChannelMultiple = 8;
/// Assumed FLOP/s if the driver does not report the clock rate.
constexpr double kUnknownRate = 1e13;

/// Memory bandwidth in bytes per second. The memory bus transfers data twice per clock cycle (DDR).
double memory_rate_of(const FluidGpuDescription& gpu) {
  return 2e3 * static_cast<double>(gpu.memory_clock_khz) * gpu.memory_bus_bits / 8;
}

/// Peak FLOP/s in f32. Each CUDA core executes one FMA per clock cycle (CUDA C++ Programming Guide,
/// throughput of native arithmetic instructions).
double f32_rate_of(const FluidGpuDescription& gpu) {
  const int lanes = gpu.major == 8 && gpu.minor == 0 ? 64 : 128;
  return 2e3 * lanes * gpu.multiprocessors * static_cast<double>(gpu.clock_khz);
}

/// Peak FLOP/s in f64: half the f32 rate on data-center GPUs, 1/64 on others (CUDA C++ Programming
/// Guide, throughput of native arithmetic instructions).
double f64_rate_of(const FluidGpuDescription& gpu) {
  const bool is_data_center = gpu.minor == 0 && gpu.major >= 8 && gpu.major <= 10;
  return f32_rate_of(gpu) / (is_data_center ? 2 : 64);
}

/// Peak FLOP/s of tensor cores in half precision with f32 accumulation (NVIDIA's architecture white
/// papers).
double half_matmul_rate_of(const FluidGpuDescription& gpu) {
  double multiplications = 512;
  if (gpu.minor == 0 && gpu.major == 8) multiplications = 1024;
  if (gpu.major == 9) multiplications = 2048;
  if (gpu.major == 10) multiplications = 4096;
  return 2e3 * multiplications * gpu.multiprocessors * static_cast<double>(gpu.clock_khz);
}

/// Bytes that `op` reads and writes.
double bytes_of(const ir::Op& op) {
  double bytes = 0;
  for (const Value& v : op.operands) bytes += static_cast<double>(v.type().bytes_at(1));
  for (const ir::Result& r : op.results) bytes += static_cast<double>(r.type.bytes_at(1));
  return bytes;
}

bool has_addend(const GpuTask& task) {
  return std::visit([](const auto& t) { return t.has_addend != 0; }, task);
}

bool has_relu(const GpuTask& task) {
  return std::visit([](const auto& t) { return t.relu != 0; }, task);
}

/// Fraction of the multiplications that are useful when a convolution pads its channels and
/// filters.
double channel_utilization(const FluidGpuConvolution& c) {
  if (c.dtype == fluid_gpu_f32) return 1;
  const auto used = [&](int64_t channels) {
    const int64_t own = channels / c.groups;
    return static_cast<double>(own) /
           static_cast<double>((own + kChannelMultiple - 1) / kChannelMultiple * kChannelMultiple);
  };
  return used(c.channels) * used(c.filters);
}

}  // namespace

GpuTarget::GpuTarget(const FluidGpuDescription& gpu, const GpuLibraryOptions& libraries,
                     RejectionReason rejection_reason)
    : arch_("sm_" + std::to_string(gpu.major) + std::to_string(gpu.minor)),
      memory_rate_(memory_rate_of(gpu)),
      f32_rate_(f32_rate_of(gpu)),
      f64_rate_(f64_rate_of(gpu)),
      half_matmul_rate_(half_matmul_rate_of(gpu)),
      libraries_(libraries),
      rejection_reason_(std::move(rejection_reason)),
      kernels_(std::make_unique<KernelCache>(schedule_gpu)) {}

double GpuTarget::f32_matmul_rate() const {
  return libraries_.tf32 ? half_matmul_rate_ / 2 : f32_rate_;
}

/// Predicted time of a kernel in seconds. The kernel executes `flops` operations at `efficiency`
/// times the peak `rate` in FLOP/s, and reads and writes `bytes` bytes.
double GpuTarget::kernel_seconds(double flops, double efficiency, double rate, double bytes) const {
  const double memory_seconds = memory_rate_ > 0 ? bytes / memory_rate_ : 0;
  return kLaunchSeconds +
         std::max(flops / efficiency / (rate > 0 ? rate : kUnknownRate), memory_seconds);
}

double GpuTarget::generated_seconds(const ir::Op& op) const {
  const bool contraction = !def_of(op).kernels->empty();
  const double flops = contraction ? cost_of(op, 1).flops : 0;
  return kernel_seconds(flops, kGeneratedEfficiency, f32_rate_, bytes_of(op));
}

/// Predicted time of the library kernel for `task`, in seconds.
double GpuTarget::library_seconds(const ir::Op& op, const GpuTask& task) const {
  const double rate =
      is_half_precision(op.operands[0].dtype()) ? half_matmul_rate_ : f32_matmul_rate();
  double bytes = bytes_of(op), efficiency = kLibraryEfficiency, conversion = 0;
  if (has_addend(task)) bytes += static_cast<double>(op.results[0].type.bytes_at(1));
  if (const auto* convolution = std::get_if<FluidGpuConvolution>(&task)) {
    efficiency *= channel_utilization(*convolution);
    for (const double bytes_converted : layout_conversion_bytes(*convolution)) {
      if (bytes_converted > 0)
        conversion +=
            // Times 2 because a conversion reads and writes each byte.
            kernel_seconds(0, 1, rate, 2 * bytes_converted);
    }
  }
  return kLibrarySeconds + kernel_seconds(cost_of(op, 1).flops, efficiency, rate, bytes) +
         conversion;
}

bool GpuTarget::is_rejected(const GpuTask& task, std::string_view kernel) const {
  const std::optional<std::string> why = rejection_reason_ ? rejection_reason_(task) : std::nullopt;
  if (why) {
    const int64_t planned = workspace_for(task, max_workspace());
    rejected_.insert(rejection_message(kernel, task, planned, *why) + ": code is generated");
  }
  return why.has_value();
}

std::vector<KernelCandidate> GpuTarget::candidates(const ir::Op& op,
                                                   const EpilogueOps& epilogue) const {
  std::optional<GpuTask> task;
  std::string_view kernel = kGpuMatmulKernel;
  if (const auto product = gpu_matmul(op, epilogue, 1)) {
    task = *product;
  } else if (const auto convolution = gpu_convolution(op, epilogue, 1)) {
    task = *convolution;
    kernel = gpu_convolution_kernel_name(op);
  }
  if (!task) return {};
  std::visit([&](auto& t) { t.tf32 = libraries_.tf32; }, *task);
  if (is_rejected(*task, kernel)) return {};
  const ir::Op& last = epilogue.empty() ? op : *epilogue.back();
  return {{.kernel = std::string(kernel),
           .seconds = library_seconds(op, *task),
           .workspace = planned_workspace(workspace_for(*task, max_workspace())),
           .propagates_nan = !has_relu(*task),
           .overwrites_addend = has_addend(*task),
           .operands = {op.operands[0].type().layout, op.operands[1].type().layout},
           .results = {last.results[0].type.layout}}};
}

std::vector<std::string> GpuTarget::rejection_messages() const {
  return {rejected_.begin(), rejected_.end()};
}

int64_t GpuTarget::scratch_bytes(const ir::Op& fused, int64_t batch) const {
  if (fused.attrs.has("kernel")) return 0;
  const kir::Kernel& kernel = kernels_->kernels_of(fused).front();
  if (const int64_t most = max_batch(kernel.buffers); batch > most) {
    throw BatchTooLarge(
        fmt::format("a batch of {} samples: GPU kernels take at most {} here; use a smaller batch "
                    "or micro-batches",
                    batch, most));
  }
  return scratch_layout(kernel, batch).bytes;
}

}  // namespace fluid
