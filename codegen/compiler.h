#pragma once

// Machine code from kernel IR. No LLVM type appears here.

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "codegen/kernel_ir.h"

namespace fluid {

/// Runs blocks [begin, end) of a kernel. `buffers` is in the order of Kernel::buffers.
using KernelFn = void (*)(void* const* buffers, int64_t batch, int64_t begin, int64_t end);

struct CompiledKernel {
  KernelFn body = nullptr;
  KernelFn finish = nullptr;  ///< null without a finish; ignores begin and end
};

struct CompilerOptions {
  std::string cache_dir;            ///< empty: $FLUID_KERNEL_CACHE, else no cache on disk
  int64_t cache_limit = 512 << 20;  ///< bytes; the least recently used entries are evicted first
  int threads = 1;                  ///< compile threads
  /// LLVM's name of an older CPU to compile for, as "x86-64-v2". Empty: the host CPU.
  std::string cpu = {};
};

struct CompileStats {
  int compiled = 0;  ///< kernels that LLVM compiled
  int from_cache = 0;
  double ms = 0;
};

/// Compiles for the host CPU. Owns the code: kernels are valid while the Compiler lives.
class Compiler {
 public:
  explicit Compiler(CompilerOptions options);
  ~Compiler();
  /// Compiles all kernels; equal kernels are compiled once. Thread-safe.
  std::vector<CompiledKernel> compile(std::span<const kir::Kernel* const> kernels);
  CompiledKernel compile(const kir::Kernel& kernel);
  CompileStats stats() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Returns the optimised LLVM IR, or the assembly, of one kernel for the host. For tests and
/// `show`.
std::string emit_llvm(const kir::Kernel& kernel);
std::string emit_assembly(const kir::Kernel& kernel);

}  // namespace fluid
