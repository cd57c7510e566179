#include "executor/device/forks.h"

#include <unistd.h>

#include <atomic>

#include "ir/error.h"

namespace fluid {
namespace {

std::atomic<pid_t> forbidden_by = 0;  // pid of the process that called mark_fork_unsafe(); 0: none

}  // namespace

void mark_fork_unsafe() {
  pid_t nobody = 0;
  if (forbidden_by == nobody) forbidden_by.compare_exchange_strong(nobody, getpid());
}

void check_not_forked() {
  if (forbidden_by == 0 || forbidden_by == getpid()) return;
  throw UserError(
      "this process was forked after its parent had run steps or opened a GPU, which a fork does "
      "not inherit: fork before making the first Executor, or exec a program in the child");
}

}  // namespace fluid
