#pragma once

#include <functional>
#include <set>

#include "executor/device/kernel_memo.h"
#include "executor/gpu_driver/gpu_task.h"
#include "executor/gpu_libraries/gpu_workspace.h"
#include "passes/target.h"

namespace fluid {

/// The compiler's view of a GPU. Libraries claim the matmuls and convolutions that they compute
/// faster; code is generated for everything else.
class GpuTarget : public Target {
 public:
  /// Returns why the library has no algorithm for a task; nullopt when no refusal is recorded.
  using RejectionReason = std::function<std::optional<std::string>(const GpuTask&)>;

  explicit GpuTarget(const FluidGpuDescription& gpu, const GpuLibraries& libraries = {},
                     RejectionReason refusal = {});
  std::string name() const override { return "cuda"; }
  int threads() const override { return 1; }
  std::vector<Claim> claims(const ir::Op& op, const Chain& epilogue) const override;
  // They do not test the rejection flag.
  bool libraries_may_update() const override { return false; }
  bool repeats_kernels() const override { return true; }
  int feed_slots() const override { return 2; }
  double generated_seconds(const ir::Op& op) const override;
  int64_t scratch(const ir::Op& fused, int64_t batch) const override;
  /// The kernels that scratch() has scheduled, to be compiled later.
  KernelMemo& kernels() const { return *kernels_; }
  /// The architecture, such as "sm_90".
  const std::string& arch() const { return arch_; }
  /// Memory bandwidth in bytes per second; 0 when the driver does not report it.
  double memory_rate() const { return memory_rate_; }
  /// Peak FLOP/s of libraries in f32; 0 when the driver does not report the clock. With TF32,
  /// tensor cores reach half their half-precision rate (NVIDIA's architecture white papers).
  double wide_product_rate() const;
  bool tf32() const { return libraries_.tf32; }
  /// Peak FLOP/s in f64; 0 when unknown.
  double wide_rate() const { return wide_rate_; }
  /// Peak FLOP/s of half-precision matmuls; 0 when unknown.
  double half_rate() const { return half_rate_; }
  /// Maximum workspace of a library kernel in bytes.
  int64_t workspace() const { return libraries_.most(); }
  std::vector<std::string> refused() const override;

 private:
  double seconds(double flops, double part, double rate, double bytes) const;
  double seconds(const ir::Op& op, const GpuTask& task) const;
  bool is_rejected(const GpuTask& task, std::string_view kernel) const;

  std::string arch_;
  double memory_rate_, operation_rate_, wide_rate_, half_rate_;
  GpuLibraries libraries_;
  RejectionReason rejection_reason_;
  mutable std::set<std::string> rejected_;  ///< one line per task that the library cannot compute
  std::unique_ptr<KernelMemo> kernels_;
};

}  // namespace fluid
