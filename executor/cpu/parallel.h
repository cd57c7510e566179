#pragma once

#include <cstdint>

#include "codegen/compiler.h"

namespace fluid {

/// Threads a computation may use: `wanted`, or OpenMP's own choice when it is 0.
int thread_count(int wanted);

/// To be called before the pool runs anything in `threads` threads, by whatever library.
void before_threads(int threads);
/// Makes sure that the calling thread's parallel regions get `threads` threads: OpenMP would end
/// the process. Throws DeviceError where the system gives fewer.
void start_pool(int threads);

/// While it lives, libraries that share the pool use `threads` threads when this thread calls them:
/// they choose kernels and workspace by it, too.
class LibraryThreads {
 public:
  explicit LibraryThreads(int threads);
  ~LibraryThreads();
  LibraryThreads(const LibraryThreads&) = delete;
  LibraryThreads& operator=(const LibraryThreads&) = delete;

 private:
  int before_;
};

/// Runs all blocks of a kernel, on `threads` threads by one static contiguous partition (1: in the
/// caller). Does not run `finish`. Kernels give the same bits for any partition.
void run_blocks(const CompiledKernel& kernel, void* const* buffers, int64_t batch, int64_t blocks,
                int threads);

/// Calls `body(context, begin, end)` over [0, n), split as run_blocks does.
void parallel_for(int64_t n, int threads, void (*body)(void* context, int64_t begin, int64_t end),
                  void* context);

}  // namespace fluid
