#pragma once

#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "executor/comm/communicator.h"
#include "executor/device/step_times.h"
#include "ops/comm/collective.h"

namespace fluid {

/// Message of the DeviceError that wait_for_first() throws after abandon().
inline constexpr const char* kAbandonedStepError =
    "this process left a step that all ranks take: start all again";

/// Runs collectives asynchronously: one at a time on a worker thread, in the order of enqueue().
/// Not thread-safe: all calls come from one thread at a time.
class CollectiveQueue {
 public:
  explicit CollectiveQueue(Communicator& communicator);
  ~CollectiveQueue();
  CollectiveQueue(const CollectiveQueue&) = delete;

  /// Preallocates the queue for up to `count` collectives between two calls of wait_for_all().
  void reserve(size_t count);
  /// Enqueues an in-place collective on `count` elements and returns at once. `times`, if not null,
  /// receives the begin and end times of the collective. Both are valid after wait_for_first().
  void enqueue(CollectiveKind kind, void* data, int64_t count, DType dtype,
               TimeSpan* times = nullptr);
  /// Waits for the first `count` collectives that were enqueued since the last wait_for_all().
  /// Rethrows the error of a failed collective.
  void wait_for_first(size_t count);
  /// Waits for all collectives and empties the queue.
  void wait_for_all();
  /// Drops the queued collectives and waits for the running one. Every later wait_for_first()
  /// throws, because the other ranks still block in the dropped collectives.
  void abandon();

 private:
  struct QueuedCollective {
    CollectiveKind kind;
    void* data;
    int64_t count;
    DType dtype;
    TimeSpan* times;
  };
  void wait_for_first(size_t count, std::unique_lock<std::mutex>& lock);
  void run_queue();
  void run(const QueuedCollective& queued);

  Communicator& communicator_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<QueuedCollective> enqueued_;  ///< collectives enqueued since the last wait_for_all()
  size_t completed_ = 0;
  bool running_ = false;
  bool stopping_ = false;
  std::exception_ptr failure_;
  std::thread thread_;
};

}  // namespace fluid
