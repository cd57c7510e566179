#include "executor/gpu/gpu_target.h"

#include <fmt/format.h>

#include <algorithm>

#include "codegen/gpu.h"
#include "executor/device/op_cost.h"
#include "executor/gpu_libraries/choice_record.h"
#include "executor/gpu_libraries/gpu_library_call.h"
#include "ops/table.h"

namespace fluid {
namespace {

constexpr double kLaunchSeconds = 3e-6;
constexpr double kLibrarySeconds = 2e-6;  ///< start and end overhead of a library kernel
/// Fraction of the peak that libraries reach on large tensors.
constexpr double kLibraryEfficiency = 0.7;
constexpr double kGeneratedEfficiency = 0.2;  ///< fraction of the peak that generated code reaches
/// Tensor cores process half-precision channels in multiples of this.
constexpr int64_t kLanes = 8;
constexpr double kUnknownRate = 1e13;  ///< FLOP/s, if the driver does not report the clock

/// Bytes per second; the bus transfers twice per clock (DDR).
double memory_rate_of(const FluidGpuDescription& gpu) {
  return 2e3 * static_cast<double>(gpu.memory_clock_khz) * gpu.memory_bus_bits / 8;
}

/// FLOP/s in f32: one FMA per lane, SM and clock (CUDA C++ Programming Guide, throughput of native
/// arithmetic instructions).
double operation_rate_of(const FluidGpuDescription& gpu) {
  const int lanes = gpu.major == 8 && gpu.minor == 0 ? 64 : 128;
  return 2e3 * lanes * gpu.multiprocessors * static_cast<double>(gpu.clock_khz);
}

/// FLOP/s in f64. Data-center GPUs have half as many f64 as f32 units, others 1/64 (CUDA C++
/// Programming Guide, throughput of native arithmetic instructions).
double wide_rate_of(const FluidGpuDescription& gpu) {
  const bool for_science = gpu.minor == 0 && gpu.major >= 8 && gpu.major <= 10;
  return operation_rate_of(gpu) / (for_science ? 2 : 64);
}

/// FLOP/s of tensor cores in half precision with f32 accumulation (NVIDIA's architecture white
/// papers).
double half_rate_of(const FluidGpuDescription& gpu) {
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

bool adds(const GpuTask& task) {
  return std::visit([](const auto& t) { return t.adds != 0; }, task);
}

bool has_relu(const GpuTask& task) {
  return std::visit([](const auto& t) { return t.relu != 0; }, task);
}

/// Fraction of the tensor-core lanes that hold channels and filters instead of padding.
double lanes_used(const FluidGpuConvolution& c) {
  if (c.number == fluid_gpu_f32) return 1;
  const auto used = [&](int64_t channels) {
    const int64_t own = channels / c.groups;
    return static_cast<double>(own) / static_cast<double>((own + kLanes - 1) / kLanes * kLanes);
  };
  return used(c.channels) * used(c.filters);
}

}  // namespace

GpuTarget::GpuTarget(const FluidGpuDescription& gpu, const GpuLibraries& libraries,
                     RejectionReason refusal)
    : arch_("sm_" + std::to_string(gpu.major) + std::to_string(gpu.minor)),
      memory_rate_(memory_rate_of(gpu)),
      operation_rate_(operation_rate_of(gpu)),
      wide_rate_(wide_rate_of(gpu)),
      half_rate_(half_rate_of(gpu)),
      libraries_(libraries),
      rejection_reason_(std::move(refusal)),
      kernels_(std::make_unique<KernelMemo>(schedule_gpu)) {}

double GpuTarget::wide_product_rate() const {
  return libraries_.tf32 ? half_rate_ / 2 : operation_rate_;
}

/// Predicted time of a kernel that reaches the fraction `part` of `rate`.
double GpuTarget::seconds(double flops, double part, double rate, double bytes) const {
  const double moving = memory_rate_ > 0 ? bytes / memory_rate_ : 0;
  return kLaunchSeconds + std::max(flops / part / (rate > 0 ? rate : kUnknownRate), moving);
}

double GpuTarget::generated_seconds(const ir::Op& op) const {
  const bool contraction = !def_of(op).kernels->empty();
  const double flops = contraction ? cost_of(op, 1).flops : 0;
  return seconds(flops, kGeneratedEfficiency, operation_rate_, bytes_of(op));
}

/// Predicted time of a library kernel.
double GpuTarget::seconds(const ir::Op& op, const GpuTask& task) const {
  const double rate = is_half(op.operands[0].dtype()) ? half_rate_ : wide_product_rate();
  double bytes = bytes_of(op), efficiency = kLibraryEfficiency, turning = 0;
  if (adds(task)) bytes += static_cast<double>(op.results[0].type.bytes_at(1));
  if (const auto* convolution = std::get_if<FluidGpuConvolution>(&task)) {
    efficiency *= lanes_used(*convolution);
    for (const double turned : layout_conversion_bytes(*convolution)) {
      if (turned > 0) turning += seconds(0, 1, rate, 2 * turned);  // read and written
    }
  }
  return kLibrarySeconds + seconds(cost_of(op, 1).flops, efficiency, rate, bytes) + turning;
}

bool GpuTarget::is_rejected(const GpuTask& task, std::string_view kernel) const {
  const std::optional<std::string> why = rejection_reason_ ? rejection_reason_(task) : std::nullopt;
  if (why) {
    const int64_t planned = workspace_for(task, workspace());
    rejected_.insert(rejection_message(kernel, task, planned, *why) + ": code is generated");
  }
  return why.has_value();
}

std::vector<Claim> GpuTarget::claims(const ir::Op& op, const Chain& epilogue) const {
  std::optional<GpuTask> task;
  std::string_view kernel = kGpuProductKernel;
  if (const auto product = gpu_product(op, epilogue, 1)) {
    task = *product;
  } else if (const auto convolution = gpu_convolution(op, epilogue, 1)) {
    task = *convolution;
    kernel = gpu_convolution_kernel(op);
  }
  if (!task) return {};
  std::visit([&](auto& t) { t.tf32 = libraries_.tf32; }, *task);
  if (is_rejected(*task, kernel)) return {};
  const ir::Op& last = epilogue.empty() ? op : *epilogue.back();
  return {{.kernel = std::string(kernel),
           .seconds = seconds(op, *task),
           .workspace = planned_workspace(workspace_for(*task, workspace())),
           .keeps_nan = !has_relu(*task),
           .adds_in_place = adds(*task),
           .operands = {op.operands[0].type().layout, op.operands[1].type().layout},
           .results = {last.results[0].type.layout}}};
}

std::vector<std::string> GpuTarget::refused() const { return {rejected_.begin(), rejected_.end()}; }

int64_t GpuTarget::scratch(const ir::Op& fused, int64_t batch) const {
  if (fused.attrs.has("kernel")) return 0;
  const kir::Kernel& kernel = kernels_->passes_of(fused).front();
  if (const int64_t most = max_batch(kernel.buffers); batch > most) {
    throw BatchTooLarge(
        fmt::format("a batch of {} samples: GPU kernels take at most {} here; use a smaller batch "
                    "or micro-batches",
                    batch, most));
  }
  return scratch_layout(kernel, batch).bytes;
}

}  // namespace fluid
