#pragma once

// Compiles kernel IR with the optimizer and code generator of LLVM. This header exposes no LLVM
// types.

#include <memory>
#include <span>
#include <string>

#include "ops/kernel_ir.h"

namespace fluid::emit {

/// The triple, CPU name and features that select an LLVM target machine.
struct TargetSpec {
  std::string triple, cpu, features;
  bool gpu = false;
};
/// Returns the target for the CPU that LLVM calls `cpu`, or for the host CPU if `cpu` is empty.
TargetSpec cpu_target_spec(const std::string& cpu);
/// Returns the target for the GPU architecture `arch`, for example "sm_90". If this LLVM version
/// does not support `arch`, returns the newest supported architecture before `arch`. Throws
/// UserError when `arch` is malformed or older than sm_80.
TargetSpec gpu_target_spec(const std::string& arch);
/// Returns the versions of LLVM and of the emitter as text, for use in cache keys.
std::string code_generator_version();

/// A kernel, and the symbol of the function generated from the kernel.
struct NamedKernel {
  const kir::Kernel* kernel;
  std::string symbol;
};

/// Compiles kernels for one target. Not thread-safe.
class Backend {
 public:
  explicit Backend(const TargetSpec& spec);
  ~Backend();
  enum class OutputKind : uint8_t { object, assembly, llvm };
  /// Compiles the kernels into one LLVM module. Returns an object file, assembly or LLVM IR,
  /// depending on `output_kind`.
  std::string compile(std::span<const NamedKernel> kernels, OutputKind output_kind);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace fluid::emit
