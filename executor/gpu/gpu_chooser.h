#pragma once

#include <memory>
#include <span>
#include <vector>

#include "executor/gpu/choice_record.h"
#include "executor/gpu/open_gpu.h"

namespace fluid {

/// Chooses how libraries compute their tasks, and keeps what it chose, so that a program has the
/// same bits whenever it runs.
class GpuChooser {
 public:
  GpuChooser(std::shared_ptr<const OpenGpu> gpu, ChoiceRecord record)
      : gpu_(std::move(gpu)), record_(std::move(record)) {}

  /// Whether the library has a way to compute a task within so many bytes of workspace. Where it
  /// has none, that is remembered: the record refuses it.
  bool has_way(const GpuTask& task, int64_t workspace);
  /// Operands of a task that hold nothing that is needed.
  using Unused = std::vector<std::span<std::byte>>;
  /// A task that captures may have. It is computed on `factors` for that, many times where it is
  /// timed: what their result and workspace held is lost, and what `unused` does, which is timed
  /// on noise, as GPUs are faster on zeros. Throws DeviceError when the library has no way to
  /// compute it, or none that does not fail, recorded or not.
  GpuMultiplier multiplier(const GpuTask& task, const FluidGpuFactors& factors, int64_t workspace,
                           const Unused& unused = {});
  const ChoiceRecord& record() const { return record_; }
  /// ChoiceRecord::take(): multipliers made before may be others than it says then.
  bool take(const ChoiceRecord::Decisions& decisions);
  /// How often decisions were taken that changed multipliers.
  int revision() const { return revision_; }

 private:
  std::optional<KeptChoice> known(const GpuTask& task, int64_t workspace) const;
  GpuMultiplier kept(const GpuTask& task, const FluidGpuFactors& factors, int64_t workspace);
  GpuMultiplier favourite(const GpuTask& task, const FluidGpuFactors& factors, int64_t workspace);
  GpuMultiplier fastest(const GpuTask& task, const FluidGpuFactors& factors, int64_t workspace,
                        const Unused& unused);
  bool works(const GpuMultiplier& multiplier, const FluidGpuFactors& factors) const;
  GpuGraph recorded(const GpuMultiplier& multiplier, const FluidGpuFactors& factors,
                    int calls) const;
  float milliseconds(const GpuMultiplier& multiplier, const FluidGpuFactors& factors) const;
  float milliseconds(const GpuGraph& calls) const;

  std::shared_ptr<const OpenGpu> gpu_;
  ChoiceRecord record_;
  int revision_ = 0;
};

}  // namespace fluid
