#include "executor/cpu/parallel.h"

#include <omp.h>

#include <algorithm>
#include <string>

#include "executor/cpu/idle_threads.h"
#include "executor/device/forks.h"
#include "ir/threads.h"

namespace fluid {
namespace {

struct BlockRange {
  const CompiledKernel& kernel;
  void* const* buffers;
  int64_t batch;
};

}  // namespace

int thread_count(int wanted) { return wanted > 0 ? wanted : omp_get_max_threads(); }

void before_threads(int threads) {
  mark_fork_unsafe();
  limit_spinning(threads);
}

void start_pool(int threads) {
  thread_local int started = 1;
  if (threads <= started) return;
  // A region with fewer threads ends the others. The next region may start as many new ones before
  // these are gone.
  check_threads(2 * (static_cast<size_t>(threads) - 1),
                "a pool of " + std::to_string(threads) + " threads");
  mark_fork_unsafe();
#pragma omp parallel num_threads(threads)
  {}
  limit_spinning(threads);
  started = threads;
}

LibraryThreads::LibraryThreads(int threads) : before_(omp_get_max_threads()) {
  omp_set_num_threads(threads);
}

LibraryThreads::~LibraryThreads() { omp_set_num_threads(before_); }

void parallel_for(int64_t n, int threads, void (*body)(void*, int64_t, int64_t), void* context) {
  const int team = static_cast<int>(std::min<int64_t>(threads, n));
  if (team <= 1) {
    if (n > 0) body(context, 0, n);
    return;
  }
  before_threads(threads);
  // Uses the whole pool, because libgomp ends the threads that a smaller team leaves out.
#pragma omp parallel num_threads(threads)
  {
    // A nested or limited region may get fewer threads than requested.
    const int64_t size = std::min(team, omp_get_num_threads());
    const int64_t rank = omp_get_thread_num();
    if (rank < size) body(context, n * rank / size, n * (rank + 1) / size);
  }
}

void run_blocks(const CompiledKernel& kernel, void* const* buffers, int64_t batch, int64_t blocks,
                int threads) {
  BlockRange range{kernel, buffers, batch};
  parallel_for(
      blocks, threads,
      [](void* context, int64_t begin, int64_t end) {
        const auto& r = *static_cast<BlockRange*>(context);
        r.kernel.body(r.buffers, r.batch, begin, end);
      },
      &range);
}

}  // namespace fluid
