#pragma once

#include <map>
#include <memory>
#include <vector>

#include "executor/gpu/gpu_device.h"
#include "executor/gpu/open_gpu.h"
#include "executor/kernel_memo.h"

namespace fluid {

/// The passes of a fused group on a GPU, in order.
struct LoadedKernels {
  GpuProgram program;
  GpuModule module;
  std::vector<FluidGpuKernel*> entries;  ///< one a launch
};

/// Compiles groups and loads them, each once.
class GpuKernels {
 public:
  GpuKernels(std::shared_ptr<const OpenGpu> gpu, const GpuDeviceOptions& options, std::string arch)
      : gpu_(std::move(gpu)), compile_(options.compile), arch_(std::move(arch)) {}

  /// `passes`: of a memo that lives as long.
  std::shared_ptr<const LoadedKernels> load(const KernelMemo::Passes& passes);
  int compiled() const { return static_cast<int>(loaded_.size()); }
  double milliseconds() const { return milliseconds_; }

 private:
  std::shared_ptr<const OpenGpu> gpu_;
  decltype(GpuDeviceOptions::compile) compile_;
  std::string arch_;
  std::map<const KernelMemo::Passes*, std::shared_ptr<const LoadedKernels>> loaded_;
  double milliseconds_ = 0;
};

}  // namespace fluid
