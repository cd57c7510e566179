#include "executor/device/forks.h"

#include <unistd.h>

#include <atomic>

#include "ir/error.h"

namespace fluid {
namespace {

/// PID of the process that called mark_fork_unsafe(); 0: not called.
std::atomic<pid_t> fork_unsafe_process = 0;

}  // namespace

void mark_fork_unsafe() {
  pid_t nobody = 0;
  if (fork_unsafe_process == nobody) fork_unsafe_process.compare_exchange_strong(nobody, getpid());
}

void check_not_forked() {
  if (fork_unsafe_process == 0 || fork_unsafe_process == getpid()) return;
  throw UserError(
      "this process was forked after its parent had run steps or opened a GPU, which a fork does "
      "not inherit: fork before making the first Executor, or exec a program in the child");
}

}  // namespace fluid
