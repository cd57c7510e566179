#pragma once

#include <memory>
#include <string>

#include "executor/device/kernel_memo.h"
#include "executor/host/target_description.h"
#include "passes/target.h"

namespace fluid {

/// A CPU as the passes see it: this machine's, or one known by description only.
class CpuTarget : public Target {
 public:
  explicit CpuTarget(TargetDescription description) : cpu_(std::move(description)) {}
  std::string name() const override { return cpu_.name; }
  int threads() const override { return cpu_.threads; }
  /// Whether this process's libraries can make claims for the CPU. They know only the instruction
  /// set of this machine. If false, there are no claims.
  bool matches_host_isa() const;
  std::vector<Claim> claims(const ir::Op& op, const Chain& epilogue) const override;
  double generated_seconds(const ir::Op& op) const override;
  int64_t scratch(const ir::Op& fused, int64_t batch) const override;
  /// The kernels that scratch() scheduled, for reuse by compilation.
  KernelMemo& kernels() const { return *kernels_; }

 private:
  TargetDescription cpu_;
  std::unique_ptr<KernelMemo> kernels_ = std::make_unique<KernelMemo>();
};

}  // namespace fluid
