#pragma once

#include <cstdint>

#include "codegen/compiler.h"

namespace fluid {

/// Returns the number of threads to use: `requested`, or OpenMP's default if `requested` is 0.
int thread_count(int requested);

/// Marks the process as unsafe to fork. Calls limit_spinning() while other programs compete for the
/// CPUs, else allow_spinning(). Must be called before a library starts pool threads, and in each
/// step.
void prepare_thread_pool(int threads);
/// Starts the OpenMP pool of the calling thread with `threads` threads. Throws DeviceError if the
/// system cannot start these threads. Without this check, OpenMP would end the process.
void start_pool(int threads);

/// Sets the number of threads that libraries use when called from this thread, for the lifetime of
/// the object. Libraries also choose kernels and workspace sizes according to this number.
class ScopedLibraryThreads {
 public:
  explicit ScopedLibraryThreads(int threads);
  ~ScopedLibraryThreads();
  ScopedLibraryThreads(const ScopedLibraryThreads&) = delete;
  ScopedLibraryThreads& operator=(const ScopedLibraryThreads&) = delete;

 private:
  int before_;
};

/// Whether a kernel of `flops` FLOPs should run on several threads. For a smaller kernel, waking
/// the thread pool costs more time than it saves.
constexpr bool pays_for_threads(double flops) { return flops > 60e3; }

/// Runs all blocks of a kernel on `threads` threads (1: on the calling thread). Each thread runs a
/// contiguous range of blocks, as in OpenMP's static schedule. Does not run CompiledKernel::finish.
/// Results are bit-identical for any number of threads.
void run_blocks(const CompiledKernel& kernel, void* const* buffers, int64_t batch, int64_t blocks,
                int threads);

/// Calls `body(context, begin, end)` for each chunk of [0, n), partitioned as in run_blocks().
void parallel_for(int64_t n, int threads, void (*body)(void* context, int64_t begin, int64_t end),
                  void* context);

/// Calls `body(begin, end)` for each chunk of [0, n), as above, on the threads of the library calls
/// of this thread.
template <class Body>
void parallel_for(int64_t n, Body body) {
  parallel_for(
      n, thread_count(0),
      [](void* body, int64_t begin, int64_t end) { (*static_cast<Body*>(body))(begin, end); },
      &body);
}

/// Limits the spinning of idle threads in a pool of `threads` threads. A waiting libgomp thread
/// spins for 300,000 iterations, which takes CPU time from other work. libgomp lowers the limit to
/// 100 iterations when it manages more threads than CPUs (GOMP_SPINCOUNT in the libgomp manual;
/// libgomp/env.c). Starts additional threads until libgomp manages more threads than CPUs. The
/// additional threads sleep until allow_spinning(). Setting GOMP_SPINCOUNT would have no effect,
/// because libgomp reads its environment variables before main(). Does nothing if GOMP_SPINCOUNT or
/// OMP_WAIT_POLICY is set, or if the system cannot start the threads.
void limit_spinning(int threads);
/// Ends the threads that limit_spinning() has started.
void allow_spinning();

}  // namespace fluid
