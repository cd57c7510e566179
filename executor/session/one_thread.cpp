#include "executor/session/one_thread.h"

#include "ir/error.h"

namespace fluid {

void ConcurrentUseDetector::enter() {
  const std::thread::id self = std::this_thread::get_id();
  std::thread::id nobody;
  const bool entered = owner_.load(std::memory_order_relaxed) == self ||
                       owner_.compare_exchange_strong(nobody, self, std::memory_order_acquire);
  if (!entered) {
    throw UserError(
        "an Executor is used by two threads at once: give each thread an Executor of its own, or "
        "let threads take turns");
  }
  ++depth_;
}

void ConcurrentUseDetector::leave() {
  if (--depth_ == 0) owner_.store({}, std::memory_order_release);
}

}  // namespace fluid
