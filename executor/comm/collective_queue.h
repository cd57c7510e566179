#pragma once

#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "executor/comm/communicator.h"
#include "executor/device/step_times.h"
#include "ops/comm/exchange.h"

namespace fluid {

/// What whoever has left a step is told from then on.
inline constexpr const char* kLeftAStep =
    "this process left a step that all ranks take: start all again";

/// Exchanges with all processes, made one after the other by a thread of their own while the caller
/// computes. For one caller at a time; they are made in the order in which they are started.
class CollectiveQueue {
 public:
  explicit CollectiveQueue(Communicator& communicator);
  ~CollectiveQueue();
  CollectiveQueue(const CollectiveQueue&) = delete;

  /// Makes room for `count` exchanges that are started before the first is waited for.
  void reserve(size_t count);
  /// Starts to exchange `count` elements, in place. Returns at once. When it was done is left in
  /// `times`, if that is not null, before wait() returns.
  void start(ExchangeKind kind, void* data, int64_t count, DType dtype, TimeSpan* times = nullptr);
  /// Returns when the first `count` of those started since all were done last are there. Throws
  /// what the communicator threw for one of them.
  void wait(size_t count);
  void wait_for_all();
  /// Drops what has not begun, and returns when nothing is in use any more. The other processes
  /// wait for what is dropped: from then on wait() throws.
  void abandon();

 private:
  struct Exchanged {
    ExchangeKind kind;
    void* data;
    int64_t count;
    DType dtype;
    TimeSpan* times;
  };
  void wait(size_t count, std::unique_lock<std::mutex>& lock);
  void work();
  void run(const Exchanged& exchanged);

  Communicator& communicator_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Exchanged> started_;  ///< since all were done
  size_t done_ = 0;
  bool busy_ = false;
  bool ended_ = false;
  std::exception_ptr failure_;
  std::thread thread_;
};

}  // namespace fluid
