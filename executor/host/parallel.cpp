#include "executor/host/parallel.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <latch>
#include <memory>
#include <mutex>
#include <string>

#include "executor/device/forks.h"
#include "executor/host/libgomp.h"
#include "ir/error.h"
#include "ir/threads.h"

namespace fluid {
namespace {

/// Threads reserved for data readers, collectives and watchdogs. limit_spinning() also reserves the
/// threads of two pools: libgomp starts a new pool before the threads of the old one have ended.
constexpr int kOthers = 8;

/// Runs `body` on each thread of a team.
template <typename Body>
void on_team(int threads, Body body) {
  GOMP_parallel([](void* data) { (*static_cast<Body*>(data))(); }, &body,
                static_cast<unsigned>(threads), 0);
}

/// Starts an OpenMP team whose `threads` threads sleep forever. Returns false, without a team,
/// unless the system allows `threads` + `spare` more threads. The check is needed because libgomp
/// ends the process when it cannot start a thread. libgomp does not count the team's first thread.
bool start_sleepers(int threads, int spare) {
  const auto started = std::make_shared<std::latch>(1);
  try {
    check_threads(static_cast<size_t>(threads + spare) + 1, "a team that sleeps");
    start_thread([threads, started] {
      on_team(threads + 1, [] {});
      started->count_down();
      while (true) pause();
    }).detach();
  } catch (const DeviceError&) {
    return false;
  }
  started->wait();
  return true;
}

struct BlockRange {
  const CompiledKernel& kernel;
  void* const* buffers;
  int64_t batch;
};

}  // namespace

void limit_spinning(int threads) {
  static std::atomic<int> lowest = 1 << 20;  // smallest pool for which there are enough sleepers
  if (threads < 2 || threads >= lowest.load(std::memory_order_relaxed)) return;
  static std::mutex mutex;
  static int sleepers = 0;
  const std::lock_guard lock(mutex);
  static const bool chosen =
      std::getenv("GOMP_SPINCOUNT") != nullptr || std::getenv("OMP_WAIT_POLICY") != nullptr;
  const int wanted = omp_get_num_procs() - threads + 1;
  if (!chosen && wanted > sleepers &&
      start_sleepers(wanted - sleepers, 2 * (threads - 1) + kOthers)) {
    sleepers = wanted;
  }
  lowest = threads;
}

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
  on_team(threads, [] {});
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
  on_team(threads, [=] {
    // A nested or limited region may get fewer threads than requested.
    const int64_t size = std::min(team, omp_get_num_threads());
    const int64_t rank = omp_get_thread_num();
    if (rank < size) body(context, n * rank / size, n * (rank + 1) / size);
  });
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
