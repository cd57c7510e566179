#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "executor/comm/communicator.h"
#include "executor/device/exchange_calls.h"
#include "executor/gpu/gpu_timeline.h"
#include "executor/gpu/open_gpu.h"

namespace fluid {

/// The processes that a GPU works together with, each of which has one of its own.
struct GpuPeers {
  World world = {};
  Communicator* control = nullptr;  ///< by which the processes meet; null: the GPU works alone
  std::chrono::milliseconds timeout{60'000};         ///< for what all ranks have begun
  std::chrono::milliseconds first_timeout{300'000};  ///< for them to meet
};

/// What the ranks have begun together, for who tells that it does not end.
struct BegunTogether {
  const char* what = "";
  int64_t number = 0;  ///< as Communicator::enter() counts
};

/// What GPUs of several processes compute together, queued on a stream of their own beside the one
/// that steps run on. A rank that dies, stops or stays away makes the call of every other one throw
/// a DeviceError that names it, within the time-out; from then on every call does.
class GpuCollectives {
 public:
  /// A call of all ranks. Throws UserError when two have the same GPU.
  GpuCollectives(std::shared_ptr<const OpenGpu> gpu, const GpuPeers& peers);
  GpuCollectives(const GpuCollectives&) = delete;

  /// Makes room for exchanges with these numbers, from 0.
  void reserve(size_t exchanges);
  /// Queues the exchange of what the steps' stream has made so far. `timed`: null, or noted around
  /// it.
  void start(size_t number, const ExchangeRole& exchange, void* data, DType dtype,
             const GpuSpan* timed = nullptr);
  /// What is queued on the steps' stream from now on waits for the first `count` exchanges.
  void await(size_t count);

  /// Begins what all ranks do together; wait() is to follow, or leave().
  BegunTogether begin() { return begin("the GPUs' step"); }
  /// Returns when it has come to `end`, which was noted on the steps' stream. What was begun before
  /// it must be over: the time-out counts from here.
  void wait(const BegunTogether& begun, const GpuEvent& end);
  /// The same of what was begun last, to the end of all that was queued on that stream.
  void wait();
  /// The others go on with what this rank does not: from then on every call throws.
  void leave();
  /// All ranks end here what they did together: from then on every call throws.
  void part();

  /// Gives all ranks rank 0's bytes.
  void broadcast(void* data, int64_t bytes);

 private:
  using Deadline = std::chrono::steady_clock::time_point;
  BegunTogether begin(const char* what);
  void refuse_shared_gpus();
  void meet();
  void add_up_ones();
  void fork(const GpuEvent& event);
  void settle(FluidGpuResult begun);
  /// Polls until `done` says so; fails at the deadline, or when a call does.
  template <class Done>
  void poll(const BegunTogether& begun, Deadline deadline, Done done);
  [[noreturn]] void fail(const BegunTogether& begun, const std::string& said);
  void abort();

  std::shared_ptr<const OpenGpu> gpu_;
  GpuPeers peers_;
  GpuStream stream_;
  GpuEvent queued_, done_;
  std::vector<GpuEvent> ready_, exchanged_;  ///< by an exchange's number
  GpuCommunicator communicator_;
  BegunTogether last_;
  std::string failure_;  ///< once it failed, or this rank goes on no more
  bool aborted_ = false;
};

}  // namespace fluid
