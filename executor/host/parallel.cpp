#include "executor/host/parallel.h"

#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <latch>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "executor/device/forks.h"
#include "executor/device/step_times.h"
#include "executor/host/cpu_contention.h"
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

/// Starts `threads` OpenMP threads, which sleep until the returned latch is counted down. If the
/// system cannot start `threads` + `spare` more threads, starts none and returns null. The check is
/// necessary, because libgomp ends the process when it cannot start a thread.
std::shared_ptr<std::latch> start_sleeping_team(int threads, int spare) {
  const auto started = std::make_shared<std::latch>(1), release = std::make_shared<std::latch>(1);
  try {
    check_thread_limit(static_cast<size_t>(threads + spare) + 1, "a team that sleeps");
    start_thread([threads, started, release] {
      run_on_team(threads + 1, [] {});
      started->count_down();
      release->wait();  // libgomp ends the team when this thread exits
    }).detach();
  } catch (const DeviceError&) {
    return nullptr;
  }
  started->wait();
  return release;
}

struct BlockRange {
  const CompiledKernel& kernel;
  void* const* buffers;
  int64_t batch;
};

/// The teams of sleeping OpenMP threads that limit_spinning() has started.
struct SleepingTeams {
  std::mutex mutex;
  /// One latch per team. Counting it down ends the team.
  std::vector<std::shared_ptr<std::latch>> releases;
  int sleepers = 0;
  /// Smallest pool size for which limit_spinning() was called since allow_spinning(). A smaller
  /// pool needs more sleeping threads.
  std::atomic<int> smallest_pool = kNoPool;

  static constexpr int kNoPool = 1 << 20;
};

SleepingTeams& sleeping_teams() {
  static auto& teams = *new SleepingTeams;  // never destroyed: the teams may outlive main()
  return teams;
}

}  // namespace

void limit_spinning(int threads) {
  SleepingTeams& teams = sleeping_teams();
  if (threads < 2 || threads >= teams.smallest_pool.load(std::memory_order_relaxed)) return;
  const std::lock_guard lock(teams.mutex);
  static const bool user_set =
      std::getenv("GOMP_SPINCOUNT") != nullptr || std::getenv("OMP_WAIT_POLICY") != nullptr;
  const int missing = omp_get_num_procs() - threads + 1 - teams.sleepers;
  teams.smallest_pool = threads;
  if (user_set || missing <= 0) return;
  // Leaves enough of the thread limit for two pools, because libgomp starts a new pool before the
  // threads of the old pool have exited.
  const auto release = start_sleeping_team(missing, 2 * (threads - 1) + kReservedThreads);
  if (release == nullptr) return;
  teams.releases.push_back(release);
  teams.sleepers += missing;
}

void allow_spinning() {
  SleepingTeams& teams = sleeping_teams();
  if (teams.smallest_pool.load(std::memory_order_relaxed) == SleepingTeams::kNoPool) return;
  const std::lock_guard lock(teams.mutex);
  for (const auto& release : teams.releases) release->count_down();
  teams.releases.clear();
  teams.sleepers = 0;
  teams.smallest_pool = SleepingTeams::kNoPool;
}

int thread_count(int requested) { return requested > 0 ? requested : omp_get_max_threads(); }

void prepare_thread_pool(int threads) {
  mark_fork_unsafe();
  static CpuContention contention;
  const int64_t now = clock_ns();
  if (!contention.is_due(now)) return;
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  contention.update(now, usage.ru_nivcsw) ? limit_spinning(threads) : allow_spinning();
}

void start_pool(int threads) {
  thread_local int started = 1;
  if (threads <= started) return;
  // A parallel region with fewer threads than the pool terminates the surplus threads. The next
  // region of full size may start new threads before the surplus threads have exited. So the system
  // must permit twice the threads of the pool.
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
  // Uses a team of the whole pool, because libgomp ends pool threads that are not in the team.
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
