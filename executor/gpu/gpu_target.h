#pragma once

#include <functional>
#include <set>

#include "executor/device/kernel_cache.h"
#include "executor/gpu_driver/gpu_task.h"
#include "executor/gpu_libraries/gpu_workspace.h"
#include "passes/target.h"

namespace fluid {

/// The GPU target of the compiler passes. Predicts kernel times, and offers library kernels for
/// matmuls and convolutions. All other ops are compiled to generated kernels.
class GpuTarget : public Target {
 public:
  /// Function that returns the recorded reason why the library has no algorithm for a task. Returns
  /// nullopt if no rejection is recorded.
  using RejectionReason = std::function<std::optional<std::string>(const GpuTask&)>;

  explicit GpuTarget(const FluidGpuDescription& gpu, const GpuLibraryOptions& libraries = {},
                     RejectionReason rejection_reason = {});
  std::string name() const override { return "cuda"; }
  int threads() const override { return 1; }
  std::vector<KernelCandidate> candidates(const ir::Op& op,
                                          const EpilogueOps& epilogue) const override;
  // False, because library kernels do not test the rejection flag.
  bool libraries_may_write_variables() const override { return false; }
  bool runs_repeat_kernels() const override { return true; }
  int feed_slots() const override { return 2; }
  double generated_seconds(const ir::Op& op) const override;
  int64_t scratch_bytes(const ir::Op& fused, int64_t batch) const override;
  /// Cache of the kernels that scratch_bytes() has scheduled. Compilation reuses these kernels.
  KernelCache& kernels() const { return *kernels_; }
  /// The GPU architecture, such as "sm_90".
  const std::string& arch() const { return arch_; }
  /// Memory bandwidth in bytes per second; 0 if the driver does not report it.
  double memory_rate() const { return memory_rate_; }
  /// Peak FLOP/s of f32 matmuls; 0 if the driver does not report the clock rate. With TF32, the
  /// rate is half the half-precision rate of tensor cores (NVIDIA's architecture white papers).
  double f32_matmul_rate() const;
  bool tf32() const { return libraries_.tf32; }
  /// Peak FLOP/s in f64; 0 if the driver does not report the clock rate.
  double f64_rate() const { return f64_rate_; }
  /// Peak FLOP/s of half-precision matmuls; 0 if the driver does not report the clock rate.
  double half_matmul_rate() const { return half_matmul_rate_; }
  /// Maximum workspace of a library kernel in bytes.
  int64_t max_workspace() const { return libraries_.max_workspace(); }
  std::vector<std::string> rejection_messages() const override;

 private:
  double kernel_seconds(double flops, double efficiency, double rate, double bytes) const;
  double library_seconds(const ir::Op& op, const GpuTask& task) const;
  bool is_rejected(const GpuTask& task, std::string_view kernel) const;

  std::string arch_;
  double memory_rate_, f32_rate_, f64_rate_, half_matmul_rate_;
  GpuLibraryOptions libraries_;
  RejectionReason rejection_reason_;
  /// Messages for the user, one per task that a library rejects.
  mutable std::set<std::string> rejected_;
  std::unique_ptr<KernelCache> kernels_;
};

}  // namespace fluid
