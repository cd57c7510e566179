#include "executor/comm/collective_queue.h"

#include "executor/comm/signals.h"
#include "ir/error.h"
#include "ir/threads.h"

namespace fluid {

CollectiveQueue::CollectiveQueue(Communicator& communicator) : communicator_(communicator) {
  const comm::SignalsBlocked guard(comm::SignalsBlocked::Which::all);
  thread_ = start_thread([this] { work(); });
}

CollectiveQueue::~CollectiveQueue() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void CollectiveQueue::reserve(size_t count) {
  const std::lock_guard lock(mutex_);
  started_.reserve(count);
}

void CollectiveQueue::start(CollectiveKind kind, void* data, int64_t count, DType dtype,
                            TimeSpan* times) {
  {
    const std::lock_guard lock(mutex_);
    started_.push_back({kind, data, count, dtype, times});
  }
  changed_.notify_all();
}

void CollectiveQueue::wait(size_t count) {
  std::unique_lock lock(mutex_);
  wait(count, lock);
}

void CollectiveQueue::wait(size_t count, std::unique_lock<std::mutex>& lock) {
  changed_.wait(lock, [&] { return done_ >= count || failure_; });
  if (failure_) std::rethrow_exception(failure_);
}

void CollectiveQueue::wait_for_all() {
  std::unique_lock lock(mutex_);
  wait(started_.size(), lock);
  started_.clear();
  done_ = 0;
}

void CollectiveQueue::abandon() {
  std::unique_lock lock(mutex_);
  started_.resize(busy_ ? done_ + 1 : done_);
  changed_.wait(lock, [&] { return !busy_; });
  started_.clear();
  done_ = 0;
  if (failure_) return;
  failure_ = std::make_exception_ptr(DeviceError(kLeftAStep));
}

void CollectiveQueue::run(const QueuedCollective& exchanged) {
  const auto& [kind, data, count, dtype, times] = exchanged;
  switch (kind) {
    case CollectiveKind::sum:
      return communicator_.all_reduce(data, count, dtype);
    case CollectiveKind::scatter:
      return communicator_.reduce_scatter(data, count, dtype);
    case CollectiveKind::gather:
      return communicator_.all_gather(data, count, dtype);
  }
}

void CollectiveQueue::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return ended_ || (!failure_ && done_ < started_.size()); });
    if (ended_) return;
    const QueuedCollective next = started_[done_];
    busy_ = true;
    lock.unlock();
    std::exception_ptr failure;
    if (next.times != nullptr) next.times->begin = clock_ns();
    try {
      run(next);
    } catch (...) {  // wait() rethrows it
      failure = std::current_exception();
    }
    if (next.times != nullptr) next.times->end = clock_ns();
    lock.lock();
    busy_ = false;
    failure_ = failure;
    if (!failure) ++done_;
    changed_.notify_all();
  }
}

}  // namespace fluid
