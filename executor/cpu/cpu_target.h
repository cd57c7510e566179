#pragma once

#include <memory>
#include <string>

#include "executor/cpu/kernel_tuner.h"
#include "executor/device/kernel_cache.h"
#include "executor/host/target_description.h"
#include "passes/target.h"

namespace fluid {

/// Tells compiler passes which library kernels a CPU can run, and predicts the times of kernels.
/// The CPU may differ from this machine's CPU.
class CpuTarget : public Target {
 public:
  /// `tuner`: measures the times of matmuls and convolutions; null: all times are predicted.
  explicit CpuTarget(TargetDescription description, std::unique_ptr<KernelTuner> tuner = nullptr);
  std::string name() const override { return cpu_.name; }
  int threads() const override { return cpu_.threads; }
  /// Whether the described CPU has this machine's vector width and instruction sets. If not,
  /// candidates() is empty, because libraries choose kernels for this machine's instruction sets.
  bool matches_host_isa() const;
  std::vector<KernelCandidate> candidates(const ir::Op& op,
                                          const EpilogueOps& epilogue) const override;
  double generated_seconds(const ir::Op& op) const override;
  bool runs_combine_ops() const override { return true; }
  int64_t scratch_bytes(const ir::Op& fused, int64_t batch) const override;
  const TargetDescription& description() const { return cpu_; }
  /// Cache of the kernels that scratch_bytes() has scheduled, for reuse by compilation.
  KernelCache& kernels() const { return *kernels_; }
  const KernelTuner* tuner() const { return tuner_.get(); }

 private:
  std::vector<KernelCandidate> predicted_candidates(const ir::Op& op,
                                                    const EpilogueOps& epilogue) const;
  double predicted_generated_seconds(const ir::Op& op) const;
  KernelTimes times(const ir::Op& op, const EpilogueOps& epilogue) const;

  TargetDescription cpu_;
  std::unique_ptr<KernelCache> kernels_;
  std::unique_ptr<KernelTuner> tuner_;
};

}  // namespace fluid
