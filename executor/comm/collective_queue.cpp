#include "executor/comm/collective_queue.h"

#include "executor/comm/signals.h"
#include "ir/error.h"

namespace fluid {

CollectiveQueue::CollectiveQueue(Communicator& communicator) : communicator_(communicator) {
  const comm::SignalsBlocked guard(comm::SignalsBlocked::Which::all);
  thread_ = std::thread([this] { work(); });
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
  sums_.reserve(count);
}

void CollectiveQueue::start(void* data, int64_t count, DType dtype) {
  {
    const std::lock_guard lock(mutex_);
    sums_.push_back({data, count, dtype});
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
  wait(sums_.size(), lock);
  sums_.clear();
  done_ = 0;
}

void CollectiveQueue::abandon() {
  std::unique_lock lock(mutex_);
  sums_.resize(busy_ ? done_ + 1 : done_);
  changed_.wait(lock, [&] { return !busy_; });
  sums_.clear();
  done_ = 0;
  if (failure_) return;
  failure_ = std::make_exception_ptr(
      DeviceError("this process left a step that the others went on with: start all again"));
}

void CollectiveQueue::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return ended_ || (!failure_ && done_ < sums_.size()); });
    if (ended_) return;
    const Sum sum = sums_[done_];
    busy_ = true;
    lock.unlock();
    std::exception_ptr failure;
    try {
      communicator_.all_reduce(sum.data, sum.count, sum.dtype);
    } catch (...) {  // wait() throws it
      failure = std::current_exception();
    }
    lock.lock();
    busy_ = false;
    failure_ = failure;
    if (!failure) ++done_;
    changed_.notify_all();
  }
}

}  // namespace fluid
