#pragma once

// LLVM's optimiser and code generator for one target. No LLVM type appears here.

#include <memory>
#include <span>
#include <string>

#include "codegen/kernel_ir.h"

namespace fluid::emit {

/// What code is made for, as LLVM names it.
struct Machine {
  std::string triple, cpu, features;
  bool gpu = false;  ///< kernels of a GPU's threads
};
Machine host_machine();
/// `arch` is "sm_90", ...; those that this LLVM does not know get the newest it knows below.
/// Throws UserError when `arch` is not of that form or older than sm_80.
Machine gpu_machine(const std::string& arch);
/// LLVM's version and the emitter's: whatever else the code depends on.
std::string code_version();

/// A kernel and the name of its function.
struct NamedKernel {
  const kir::Kernel* kernel;
  std::string symbol;
};

/// Compiles for one machine; for one thread.
class Backend {
 public:
  explicit Backend(const Machine& machine);
  ~Backend();
  enum class Form : uint8_t { object, assembly, llvm };
  /// The kernels as one module: an object file, or text.
  std::string compile(std::span<const NamedKernel> kernels, Form form);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace fluid::emit
