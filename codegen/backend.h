#pragma once

// LLVM's optimiser and code generator for one target. No LLVM type appears here.

#include <memory>
#include <span>
#include <string>

#include "codegen/kernel_ir.h"

namespace fluid::emit {

/// A target of code generation, in LLVM's terms.
struct Machine {
  std::string triple, cpu, features;
  bool gpu = false;  ///< the target is a GPU
};
Machine host_machine();
/// Returns the target for an architecture such as "sm_90". If this LLVM does not support it,
/// returns the newest supported one below. Throws UserError when `arch` is malformed or older than
/// sm_80.
Machine gpu_machine(const std::string& arch);
/// Returns the versions of LLVM and the emitter, for cache keys.
std::string code_version();

/// A kernel, and the symbol of its function.
struct NamedKernel {
  const kir::Kernel* kernel;
  std::string symbol;
};

/// Compiles kernels for one target. Not thread-safe.
class Backend {
 public:
  explicit Backend(const Machine& machine);
  ~Backend();
  enum class Form : uint8_t { object, assembly, llvm };
  /// Compiles the kernels as one module. Returns an object file or text.
  std::string compile(std::span<const NamedKernel> kernels, Form form);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace fluid::emit
