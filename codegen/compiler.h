#pragma once

// Machine code from kernel IR. No LLVM type appears here.

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "codegen/kernel_ir.h"

namespace fluid {

/// Runs blocks [begin, end) of a kernel; `buffers` in the kernel's argument order.
using KernelFn = void (*)(void* const* buffers, int64_t batch, int64_t begin, int64_t end);

struct CompiledKernel {
  KernelFn body = nullptr;
  KernelFn finish = nullptr;  ///< null when the kernel has none; its range is ignored
};

struct CompilerOptions {
  std::string cache_dir;            ///< empty: no cache on disk
  int64_t cache_limit = 512 << 20;  ///< bytes; the oldest entries go first
  int threads = 1;                  ///< compile threads
  /// LLVM's name of a CPU that has less than this one, "x86-64-v2": code is made for that. Empty:
  /// for this one.
  std::string cpu = {};
};

struct CompileStats {
  int compiled = 0;  ///< kernels that LLVM compiled
  int from_cache = 0;
  double ms = 0;
};

/// Compiles for the host CPU. Owns the code: kernels live as long as it does.
class Compiler {
 public:
  explicit Compiler(CompilerOptions options);
  ~Compiler();
  /// Compiles all kernels (equal ones once). Thread-safe.
  std::vector<CompiledKernel> compile(std::span<const kir::Kernel* const> kernels);
  CompiledKernel compile(const kir::Kernel& kernel);
  CompileStats stats() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// LLVM IR or assembly of one kernel for the host, after optimisation: for tests and `show`.
std::string emit_llvm(const kir::Kernel& kernel);
std::string emit_assembly(const kir::Kernel& kernel);

}  // namespace fluid
