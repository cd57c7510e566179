#pragma once

// Compiles kernel IR to machine code. This header exposes no LLVM types.

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ops/kernel_ir.h"

namespace fluid {

/// The function of a compiled kernel, which runs blocks [begin, end). `buffers` holds the addresses
/// of the buffers in the order of Kernel::buffers.
using KernelFn = void (*)(void* const* buffers, int64_t batch, int64_t begin, int64_t end);

struct CompiledKernel {
  KernelFn body = nullptr;
  /// Runs Kernel::finish and ignores `begin` and `end`. Null if the kernel has no finish.
  KernelFn finish = nullptr;
};

struct CompilerOptions {
  /// Directory of the disk cache. Empty: $FLUID_KERNEL_CACHE, or no disk cache if that variable is
  /// unset.
  std::string cache_dir;
  /// Maximum size of the disk cache in bytes. If it is exceeded, the least recently used entries
  /// are evicted.
  int64_t cache_limit = 512 << 20;
  int threads = 1;  ///< number of compilation threads
  /// LLVM's name of the CPU to compile for, for example "x86-64-v2". Empty: the host CPU.
  std::string cpu = {};
};

struct CompileStats {
  int compiled = 0;  ///< number of kernels that LLVM compiled
  int cache_hits = 0;
  double ms = 0;
};

/// Compiles kernels for the host CPU. Owns their machine code: the compiled kernels are valid while
/// the Compiler lives.
class Compiler {
 public:
  explicit Compiler(CompilerOptions options);
  ~Compiler();
  /// Compiles all kernels. Kernels that differ only in their names are compiled once. Thread-safe.
  std::vector<CompiledKernel> compile(std::span<const kir::Kernel* const> kernels);
  CompiledKernel compile(const kir::Kernel& kernel);
  CompileStats stats() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Returns the optimized LLVM IR, or the assembly, of one kernel for the host CPU. Used by tests
/// and by `fluidrun show`.
std::string emit_llvm(const kir::Kernel& kernel);
std::string emit_assembly(const kir::Kernel& kernel);

}  // namespace fluid
