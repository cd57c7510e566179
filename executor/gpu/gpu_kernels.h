#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "codegen/gpu.h"
#include "codegen/object_cache.h"
#include "executor/device/compile_report.h"
#include "executor/gpu/open_gpu.h"

namespace fluid {

/// A pass that can be launched.
struct LoadedPass {
  GpuLaunch launch;
  FluidGpuKernel* entry = nullptr;
};

/// Compiles passes and loads them, each once, and owns what was loaded. Those that are asked for
/// together become one module, which is kept on disk.
class GpuKernels {
 public:
  /// `arch`: "sm_90"; `assembler`: the version of what the GPU's `assemble` is.
  GpuKernels(std::shared_ptr<const OpenGpu> gpu, std::string arch, int64_t assembler,
             ObjectCache cache)
      : gpu_(std::move(gpu)),
        arch_(std::move(arch)),
        assembler_(assembler),
        cache_(std::move(cache)) {}

  /// In the order of `passes`, whose names do not matter.
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
  std::map<std::string, LoadedPass> loaded_;  ///< by the entry's name, which follows from the code
  CompileReport report_;
};

}  // namespace fluid
