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

/// Threads for data readers, collectives and watchdogs. The system must allow them besides the
/// sleepers, and the pool twice: libgomp starts a new pool before the old one's threads are gone.
constexpr int kOthers = 8;

/// Starts an OpenMP team whose threads sleep forever. Returns false unless the system can give
/// these and `spare` more threads: libgomp ends the process when it cannot start one. libgomp does
/// not count the team's first thread.
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

}  // namespace fluid
