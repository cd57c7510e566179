#include "executor/cpu/idle_threads.h"

#include <omp.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <latch>
#include <memory>
#include <mutex>

#include "ir/error.h"
#include "ir/threads.h"

namespace fluid {
namespace {

/// Threads that read data, exchange sums and watch. The system must give as many besides the
/// sleepers, and a pool twice, as libgomp starts a new one before the old one is gone.
constexpr int kOthers = 8;

/// Starts a team of libgomp's whose threads sleep for good, where the system gives as many and
/// `spare` others: libgomp ends the process where it cannot start one. It does not count the team's
/// first thread.
bool start_sleepers(int threads, int spare) {
  const auto started = std::make_shared<std::latch>(1);
  try {
    check_threads(static_cast<size_t>(threads + spare) + 1, "a team that sleeps");
    start_thread([threads, started] {
#pragma omp parallel num_threads(threads + 1)
      { asm volatile(""); }
      started->count_down();
      while (true) pause();
    }).detach();
  } catch (const DeviceError&) {
    return false;
  }
  started->wait();
  return true;
}

}  // namespace

void limit_spinning(int threads) {
  static std::atomic<int> lowest = 1 << 20;  // threads of a pool that has enough sleepers
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

}  // namespace fluid
