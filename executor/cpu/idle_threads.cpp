#include "executor/cpu/idle_threads.h"

#include <omp.h>
#include <pthread.h>
#include <semaphore.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <mutex>
#include <vector>

namespace fluid {
namespace {

void* end_at_once(void*) { return nullptr; }

/// libgomp ends the process where it cannot start a thread.
bool can_start(int threads) {
  std::vector<pthread_t> started;
  bool all = true;
  for (int i = 0; i < threads && all; ++i) {
    pthread_t thread = {};
    all = pthread_create(&thread, nullptr, end_at_once, nullptr) == 0;
    if (all) started.push_back(thread);
  }
  for (const pthread_t thread : started) pthread_join(thread, nullptr);
  return all;
}

struct Team {
  int threads;
  sem_t started;
};

/// Starts a team of libgomp's that nothing runs in any more, and keeps it.
void* hold_team(void* argument) {
  auto* team = static_cast<Team*>(argument);
#pragma omp parallel num_threads(team->threads)
  { asm volatile(""); }
  sem_post(&team->started);  // `team` goes with it
  while (true) pause();
}

/// A team whose master libgomp did not start itself counts one thread less.
bool start_sleepers(int threads) {
  Team team{threads + 1, {}};
  if (sem_init(&team.started, 0, 0) != 0) return false;
  pthread_t master = {};
  const bool begun =
      can_start(threads + 1) && pthread_create(&master, nullptr, hold_team, &team) == 0;
  if (begun) {
    pthread_detach(master);
    while (sem_wait(&team.started) != 0) {
    }
  }
  sem_destroy(&team.started);
  return begun;
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
  if (!chosen && wanted > sleepers && start_sleepers(wanted - sleepers)) sleepers = wanted;
  lowest = threads;
}

}  // namespace fluid
