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

/// A kernel loaded onto the GPU, with its launch parameters.
struct LoadedPass {
  GpuLaunch launch;
  FluidGpuKernel* entry = nullptr;
};

/// Compiles and loads each distinct kernel once, and owns the modules. The kernels of one call to
/// load() form one module, which is cached on disk.
class GpuKernels {
 public:
  /// `arch`: "sm_90". `assembler`: version of the table's `assemble`.
  GpuKernels(std::shared_ptr<const OpenGpu> gpu, std::string arch, int64_t assembler,
             ObjectCache cache)
      : gpu_(std::move(gpu)),
        arch_(std::move(arch)),
        assembler_(assembler),
        cache_(std::move(cache)) {}

  /// Loads the kernels `passes` and returns them in the same order. Ignores their names.
  std::vector<LoadedPass> load(std::span<const kir::Kernel> passes);
  CompileReport report() const { return report_; }

 private:
  using Named = std::map<std::string, kir::Kernel>;
  void load_module(const Named& passes);
  std::string key_of(const Named& passes) const;
  void add_module(const std::string& code, const Named& passes);

  std::shared_ptr<const OpenGpu> gpu_;
  std::string arch_;
  int64_t assembler_;
  ObjectCache cache_;
  std::vector<GpuModule> modules_;
  std::map<std::string, LoadedPass> loaded_;  ///< by entry name, a hash of the code
  CompileReport report_;
};

}  // namespace fluid
