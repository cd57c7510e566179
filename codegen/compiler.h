#pragma once

// Compiles kernel IR to machine code. This header exposes no LLVM types.

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ops/kernel_ir.h"

namespace fluid {

/// Entry point of a compiled kernel. Runs blocks [begin, end) for batch size `batch`. `buffers`
/// holds the addresses of the buffers, in the order of Kernel::buffers.
using KernelFn = void (*)(void* const* buffers, int64_t batch, int64_t begin, int64_t end);

struct CompiledKernel {
  KernelFn body = nullptr;
  /// Runs Kernel::finish and ignores `begin` and `end`. Null if Kernel::finish is empty.
  KernelFn finish = nullptr;
  /// Name of the generated function: a hash of the kernel, the target CPU and the code generator's
  /// version. Valid as long as the Compiler.
  std::string_view symbol;
};

struct CompilerOptions {
  /// Directory of the disk cache. $FLUID_KERNEL_CACHE, if set, replaces it. If both are empty,
  /// there is no disk cache.
  std::string cache_dir;
  /// Maximum size of the disk cache in bytes. Above this size, the least recently used entries
  /// are removed. The size is checked after compiling, at most once a minute.
  int64_t cache_limit = 512 << 20;
  int threads = 1;  ///< number of compilation threads
  /// LLVM's name of the target CPU, such as "x86-64-v2". Empty: the host CPU.
  std::string cpu = {};
};

struct CompileStats {
  int compiled = 0;  ///< number of kernels that LLVM compiled
  int cache_hits = 0;
  double ms = 0;  ///< total compile time in milliseconds
};

/// Compiles kernels for the host CPU. Owns the machine code: compiled kernels are valid only while
/// the Compiler lives.
class Compiler {
 public:
  explicit Compiler(CompilerOptions options);
  ~Compiler();
  /// Compiles all kernels. Kernels that differ only in their names are compiled once. Thread-safe.
  std::vector<CompiledKernel> compile(std::span<const kir::Kernel* const> kernels);
  CompiledKernel compile(const kir::Kernel& kernel);
  CompileStats stats() const;
  /// Returns the target triple, name and features of the CPU, and the code generator's version.
  const std::string& target_text() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Return the optimized LLVM IR or the assembly of one kernel, for use in tests. `cpu`: see
/// CompilerOptions::cpu.
std::string emit_llvm(const kir::Kernel& kernel, const std::string& cpu = {});
std::string emit_assembly(const kir::Kernel& kernel, const std::string& cpu = {});

}  // namespace fluid
