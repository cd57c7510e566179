#pragma once

#include <functional>
#include <set>

#include "executor/device/kernel_memo.h"
#include "executor/gpu/gpu_task.h"
#include "executor/gpu/gpu_workspace.h"
#include "passes/target.h"

namespace fluid {

/// A GPU as the passes see it. Libraries compute products and convolutions that are worth it; all
/// else is generated.
class GpuTarget : public Target {
 public:
  /// Why the library was found to have no way to compute a task; empty where it was not.
  using Refusal = std::function<std::optional<std::string>(const GpuTask&)>;

  explicit GpuTarget(const FluidGpuDescription& gpu, const GpuLibraries& libraries = {},
                     Refusal refusal = {});
  std::string name() const override { return "cuda"; }
  int threads() const override { return 1; }
  std::vector<Claim> claims(const ir::Op& op, const Chain& epilogue) const override;
  bool libraries_may_update() const override { return false; }  // nothing predicates them
  bool repeats_kernels() const override { return true; }
  int feed_slots() const override { return 2; }
  double generated_seconds(const ir::Op& op) const override;
  int64_t scratch(const ir::Op& fused, int64_t batch) const override;
  /// What scratch() has scheduled, for whoever compiles what it planned.
  KernelMemo& kernels() const { return *kernels_; }
  /// "sm_90".
  const std::string& arch() const { return arch_; }
  /// Bytes a second to and from memory; 0 when the driver does not tell.
  double memory_rate() const { return memory_rate_; }
  /// Operations a second of libraries in f32, 0 as above, which may be by TF32: tensor cores do
  /// half as much in that as in halves (NVIDIA's architecture white papers).
  double wide_product_rate() const;
  bool tf32() const { return libraries_.tf32; }
  /// The same in f64.
  double wide_rate() const { return wide_rate_; }
  /// The same in matrix products of halves.
  double half_rate() const { return half_rate_; }
  /// Bytes that a library kernel may have at most.
  int64_t workspace() const { return libraries_.most(); }
  std::vector<std::string> refused() const override;

 private:
  double seconds(double flops, double part, double rate, double bytes) const;
  double seconds(const ir::Op& op, const GpuTask& task) const;
  bool is_refused(const GpuTask& task, std::string_view kernel) const;

  std::string arch_;
  double memory_rate_, operation_rate_, wide_rate_, half_rate_;
  GpuLibraries libraries_;
  Refusal refusal_;
  mutable std::set<std::string> refused_;  ///< lines, of tasks that were asked about
  std::unique_ptr<KernelMemo> kernels_;
};

}  // namespace fluid
