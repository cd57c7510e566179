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

/// The error of wait() after this process has abandoned collectives that other ranks wait in.
inline constexpr const char* kLeftAStep =
    "this process left a step that all ranks take: start all again";

/// Runs collectives one after the other on its own thread, in the order of start(), while the
/// caller computes. For one caller at a time.
class CollectiveQueue {
 public:
  explicit CollectiveQueue(Communicator& communicator);
  ~CollectiveQueue();
  CollectiveQueue(const CollectiveQueue&) = delete;

  /// Preallocates for `count` collectives started before the first wait.
  void reserve(size_t count);
  /// Enqueues an in-place collective on `count` elements and returns at once. If `times` is not
  /// null, it holds the collective's begin and end once wait() returns.
  void start(CollectiveKind kind, void* data, int64_t count, DType dtype,
             TimeSpan* times = nullptr);
  /// Waits for the first `count` collectives started since the last wait_for_all(). Throws an error
  /// of the communicator.
  void wait(size_t count);
  /// Waits for all collectives and resets the count of wait().
  void wait_for_all();
  /// Drops the collectives that have not begun, and waits for the running one. Other ranks block in
  /// the dropped ones, so wait() throws from then on.
  void abandon();

 private:
  struct QueuedCollective {
    CollectiveKind kind;
    void* data;
    int64_t count;
    DType dtype;
    TimeSpan* times;
  };
  void wait(size_t count, std::unique_lock<std::mutex>& lock);
  void work();
  void run(const QueuedCollective& exchanged);

  Communicator& communicator_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<QueuedCollective> started_;  ///< since the last wait_for_all()
  size_t done_ = 0;
  bool busy_ = false;
  bool ended_ = false;
  std::exception_ptr failure_;
  std::thread thread_;
};

}  // namespace fluid
