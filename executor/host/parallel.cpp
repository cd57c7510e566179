#include "executor/host/parallel.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <latch>
#include <memory>
#include <mutex>
#include <string>

#include "executor/device/forks.h"
#include "executor/device/step_times.h"
#include "executor/host/libgomp.h"
#include "ir/error.h"
#include "ir/threads.h"

namespace fluid {
namespace {

/// Number of threads reserved for data readers, collectives and watchdogs.
constexpr int kReservedThreads = 8;

/// Runs `body` on each thread of an OpenMP team of `threads` threads.
template <typename Body>
void run_on_team(int threads, Body body) {
  GOMP_parallel([](void* data) { (*static_cast<Body*>(data))(); }, &body,
                static_cast<unsigned>(threads), 0);
}

/// Starts `threads` OpenMP threads, which sleep until the process ends. If the system cannot start
/// `threads` + `spare` more threads, starts none and returns false. The check is necessary, because
/// libgomp ends the process when it cannot start a thread.
bool start_sleeping_team(int threads, int spare) {
  const auto started = std::make_shared<std::latch>(1);
  try {
    check_thread_limit(static_cast<size_t>(threads + spare) + 1, "a team that sleeps");
    start_thread([threads, started] {
      run_on_team(threads + 1, [] {});
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

/// Detects that other programs use the CPUs on which the threads of this process spin. In this case
/// the OS preempts the threads often. Thread-safe.
class CpuContention {
 public:
  /// Whether the rate of preemptions has been high at any time since the first call. Checks the
  /// rate at most once per kWindow; other calls only read the clock.
  bool seen() {
    if (seen_.load(std::memory_order_relaxed)) return true;
    const int64_t now = clock_ns();
    int64_t begin = window_begin_.load(std::memory_order_relaxed);
    if (now - begin < kWindow || !window_begin_.compare_exchange_strong(begin, now)) return false;
    rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    const int64_t before = preemptions_.exchange(usage.ru_nivcsw);
    const double seconds = static_cast<double>(now - begin) / 1e9;
    const auto more = static_cast<double>(usage.ru_nivcsw - before);
    const bool many = begin != 0 && more > kPreemptionsPerSecond * seconds;
    if (many && many_before_.load()) seen_ = true;  // ignores a single short burst
    many_before_ = many;
    return seen_;
  }

 private:
  static constexpr int64_t kWindow = 200'000'000;  // in ns
  // Measured: about 50 on a quiet virtual machine, and more than 200 beside another busy program.
  static constexpr double kPreemptionsPerSecond = 120;

  std::atomic<bool> seen_ = false, many_before_ = false;
  std::atomic<int64_t> window_begin_ = 0;
  std::atomic<int64_t> preemptions_ = 0;
};

}  // namespace

void limit_spinning(int threads) {
  // Smallest pool size of all earlier calls. A smaller pool needs more sleeping threads.
  static std::atomic<int> smallest_pool = 1 << 20;
  if (threads < 2 || threads >= smallest_pool.load(std::memory_order_relaxed)) return;
  static std::mutex mutex;
  static int sleepers = 0;
  const std::lock_guard lock(mutex);
  static const bool user_set =
      std::getenv("GOMP_SPINCOUNT") != nullptr || std::getenv("OMP_WAIT_POLICY") != nullptr;
  const int wanted = omp_get_num_procs() - threads + 1;
  // Leave room for the threads of two pools, because libgomp starts a new pool before the old
  // threads have exited.
  if (!user_set && wanted > sleepers &&
      start_sleeping_team(wanted - sleepers, 2 * (threads - 1) + kReservedThreads)) {
    sleepers = wanted;
  }
  smallest_pool = threads;
}

int thread_count(int requested) { return requested > 0 ? requested : omp_get_max_threads(); }

void prepare_thread_pool(int threads) {
  mark_fork_unsafe();
  static CpuContention contention;
  if (contention.seen()) limit_spinning(threads);
}

void start_pool(int threads) {
  thread_local int started = 1;
  if (threads <= started) return;
  // A parallel region with fewer threads than the pool terminates the surplus threads. The next
  // region of full size may create their replacements before they have exited. So the system must
  // permit twice the threads of the pool.
  check_thread_limit(2 * (static_cast<size_t>(threads) - 1),
                     "a pool of " + std::to_string(threads) + " threads");
  mark_fork_unsafe();
  run_on_team(threads, [] {});
  started = threads;
}

ScopedLibraryThreads::ScopedLibraryThreads(int threads) : before_(omp_get_max_threads()) {
  omp_set_num_threads(threads);
}

ScopedLibraryThreads::~ScopedLibraryThreads() { omp_set_num_threads(before_); }

void parallel_for(int64_t n, int threads, void (*body)(void*, int64_t, int64_t), void* context) {
  const int team = static_cast<int>(std::min<int64_t>(threads, n));
  if (team <= 1) {
    if (n > 0) body(context, 0, n);
    return;
  }
  prepare_thread_pool(threads);
  // Use a team of the whole pool, because libgomp ends the pool threads that are not in the team.
  run_on_team(threads, [=] {
    // A nested region may get fewer threads than requested.
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
