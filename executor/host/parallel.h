#pragma once

#include <cstdint>

#include "codegen/compiler.h"

namespace fluid {

/// Returns the threads of a computation: `wanted`, or OpenMP's default if it is 0.
int thread_count(int wanted);

/// Prepares the pool. Call it before any library runs `threads` threads of the pool.
void before_threads(int threads);
/// Starts the pool, so that parallel regions of the calling thread get `threads` threads. Throws
/// DeviceError when the system gives fewer; OpenMP would end the process.
void start_pool(int threads);

/// While a LibraryThreads lives, libraries called by its thread use `threads` threads of the pool.
/// They also choose kernels and workspace by this number.
class LibraryThreads {
 public:
  explicit LibraryThreads(int threads);
  ~LibraryThreads();
  LibraryThreads(const LibraryThreads&) = delete;
  LibraryThreads& operator=(const LibraryThreads&) = delete;

 private:
  int before_;
};

/// Runs all blocks of a kernel on `threads` threads by one static contiguous partition (1: on the
/// calling thread). Does not run `finish`. Kernels give the same bits for any partition.
void run_blocks(const CompiledKernel& kernel, void* const* buffers, int64_t batch, int64_t blocks,
                int threads);

/// Calls `body(context, begin, end)` for the parts of [0, n), partitioned as in run_blocks().
void parallel_for(int64_t n, int threads, void (*body)(void* context, int64_t begin, int64_t end),
                  void* context);

/// Makes idle threads of a pool of `threads` threads sleep soon. A waiting libgomp thread spins for
/// 300,000 rounds, which takes cores from other work. It spins for 1,000 rounds if libgomp has
/// started more threads than there are processors (see GOMP_SPINCOUNT in its manual). libgomp reads
/// its settings before main(), so limit_spinning() starts that many threads. They sleep until the
/// process ends. Does nothing if GOMP_SPINCOUNT or OMP_WAIT_POLICY is set, or if the system refuses
/// the threads.
void limit_spinning(int threads);

}  // namespace fluid
