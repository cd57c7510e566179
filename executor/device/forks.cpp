#include "executor/device/forks.h"

#include <unistd.h>

#include <atomic>

#include "ir/error.h"

namespace fluid {
namespace {

std::atomic<pid_t> forbidden_by = 0;  // pid of the process that called forbid_forks(); 0: none

}  // namespace

void forbid_forks() {
  pid_t nobody = 0;
  if (forbidden_by == nobody) forbidden_by.compare_exchange_strong(nobody, getpid());
}

void refuse_forks() {
  if (forbidden_by == 0 || forbidden_by == getpid()) return;
  throw UserError(
      "this process was forked from one that has run steps or opened a GPU, which does not come "
      "along: fork before the first executor is made, or start a program in the new process");
}

}  // namespace fluid
