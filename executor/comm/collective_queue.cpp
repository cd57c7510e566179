#include "executor/comm/collective_queue.h"

#include "executor/comm/signals.h"
#include "ir/error.h"
#include "ir/threads.h"

namespace fluid {

CollectiveQueue::CollectiveQueue(Communicator& communicator) : communicator_(communicator) {
  const comm::ScopedSignalBlock guard(comm::ScopedSignalBlock::SignalSet::all);
  thread_ = start_thread([this] { run_queue(); });
}

CollectiveQueue::~CollectiveQueue() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void CollectiveQueue::reserve(size_t count) {
  const std::lock_guard lock(mutex_);
  enqueued_.reserve(count);
}

void CollectiveQueue::enqueue(CollectiveKind kind, void* data, int64_t count, DType dtype,
                              TimeSpan* times) {
  {
    const std::lock_guard lock(mutex_);
    enqueued_.push_back({kind, data, count, dtype, times});
  }
  changed_.notify_all();
}

void CollectiveQueue::wait_for_first(size_t count) {
  std::unique_lock lock(mutex_);
  wait_for_first(count, lock);
}

void CollectiveQueue::wait_for_first(size_t count, std::unique_lock<std::mutex>& lock) {
  changed_.wait(lock, [&] { return completed_ >= count || failure_; });
  if (failure_) std::rethrow_exception(failure_);
}

void CollectiveQueue::wait_for_all() {
  std::unique_lock lock(mutex_);
  wait_for_first(enqueued_.size(), lock);
  enqueued_.clear();
  completed_ = 0;
}

void CollectiveQueue::abandon() {
  std::unique_lock lock(mutex_);
  enqueued_.resize(running_ ? completed_ + 1 : completed_);
  changed_.wait(lock, [&] { return !running_; });
  enqueued_.clear();
  completed_ = 0;
  if (failure_) return;
  failure_ = std::make_exception_ptr(DeviceError(kAbandonedStepError));
}

void CollectiveQueue::run(const QueuedCollective& queued) {
  const auto& [kind, data, count, dtype, times] = queued;
  switch (kind) {
    case CollectiveKind::all_reduce:
      return communicator_.all_reduce(data, count, dtype);
    case CollectiveKind::reduce_scatter:
      return communicator_.reduce_scatter(data, count, dtype);
    case CollectiveKind::all_gather:
      return communicator_.all_gather(data, count, dtype);
  }
}

void CollectiveQueue::run_queue() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return stopping_ || (!failure_ && completed_ < enqueued_.size()); });
    if (stopping_) return;
    const QueuedCollective next = enqueued_[completed_];
    running_ = true;
    lock.unlock();
    std::exception_ptr failure;
    if (next.times != nullptr) next.times->begin = clock_ns();
    try {
      run(next);
    } catch (...) {  // wait_for_first() rethrows it
      failure = std::current_exception();
    }
    if (next.times != nullptr) next.times->end = clock_ns();
    lock.lock();
    running_ = false;
    failure_ = failure;
    if (!failure) ++completed_;
    changed_.notify_all();
  }
}

}  // namespace fluid
