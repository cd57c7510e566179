#pragma once

#include "executor/gpu/backend_table.h"
#include "executor/kernel_memo.h"
#include "passes/target.h"

namespace fluid {

/// A GPU as the passes see it. No library kernels yet: all is generated.
class GpuTarget : public Target {
 public:
  explicit GpuTarget(const FluidGpuDescription& gpu);
  std::string name() const override { return "cuda"; }
  int threads() const override { return 1; }
  std::vector<Claim> claims(const ir::Op&, const Chain&) const override { return {}; }
  double generated_seconds(const ir::Op& op) const override;
  int64_t scratch(const ir::Op& fused, int64_t batch) const override;
  /// What scratch() has scheduled, for whoever compiles what it planned.
  KernelMemo& kernels() const { return *kernels_; }
  /// "sm_90".
  const std::string& arch() const { return arch_; }
  /// Bytes a second to and from memory; 0 when the driver does not tell.
  double memory_rate() const { return memory_rate_; }
  /// Operations a second in f32, which generated kernels compute halves in, too; 0 as above.
  double operation_rate() const { return operation_rate_; }

 private:
  std::string arch_;
  double memory_rate_, operation_rate_;
  std::unique_ptr<KernelMemo> kernels_;
};

}  // namespace fluid
