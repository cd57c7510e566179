#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "codegen/gpu.h"
#include "codegen/object_cache.h"
#include "executor/device/compile_report.h"
#include "executor/gpu_driver/open_gpu.h"

namespace fluid {

/// A kernel loaded onto the GPU, and its launch parameters.
struct LoadedKernel {
  GpuLaunch launch;
  FluidGpuKernel* entry = nullptr;
};

/// Compiles and loads each distinct kernel once, and owns the loaded modules. The new kernels of
/// one load() call form one module, whose cubin is cached on disk.
class GpuKernels {
 public:
  /// `arch`: GPU architecture, such as "sm_90". `linker_version`: version of nvJitLink, which is
  /// part of the cache key.
  GpuKernels(std::shared_ptr<const OpenGpu> gpu, std::string arch, int64_t linker_version,
             ObjectCache cache)
      : gpu_(std::move(gpu)),
        arch_(std::move(arch)),
        linker_version_(linker_version),
        cache_(std::move(cache)) {}

  /// Loads `kernels`, and returns the loaded kernels in the same order. Kernels that differ only in
  /// name share one loaded kernel.
  std::vector<LoadedKernel> load(std::span<const kir::Kernel> kernels);
  CompileReport report() const { return report_; }

 private:
  /// Entry name of a kernel (a hash of the kernel) -> kernel.
  using NamedKernels = std::map<std::string, kir::Kernel>;
  void load_module(const NamedKernels& kernels);
  std::string key_of(const NamedKernels& kernels) const;
  void add_module(const std::string& code, const NamedKernels& kernels);

  std::shared_ptr<const OpenGpu> gpu_;
  std::string arch_;
  int64_t linker_version_;
  ObjectCache cache_;
  std::vector<GpuModule> modules_;
  std::map<std::string, LoadedKernel> loaded_;  ///< entry name -> loaded kernel
  CompileReport report_;
};

}  // namespace fluid
