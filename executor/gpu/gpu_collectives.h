#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "executor/comm/communicator.h"
#include "executor/device/collective_role.h"
#include "executor/gpu/gpu_timeline.h"
#include "executor/gpu_driver/open_gpu.h"

namespace fluid {

/// The ranks that a GPU communicates with, each with a GPU of its own.
struct GpuPeers {
  World world = {};
  Communicator* control = nullptr;  ///< communicator of the processes; null: the GPU works alone
  std::chrono::milliseconds timeout{60'000};         ///< for a step that all ranks have started
  std::chrono::milliseconds first_timeout{300'000};  ///< for the rendezvous
};

/// A step or collective that all ranks have started, for error messages.
struct StartedCollective {
  const char* what = "";
  int64_t number = 0;  ///< count of Communicator::enter()
};

/// NCCL collectives, queued on a stream beside the steps' stream. If a rank dies, hangs or does not
/// make the call, the call on every other rank throws a DeviceError that names this rank, within
/// the time-out. All later calls throw too.
class GpuCollectives {
 public:
  /// Collective. Throws UserError when two ranks have the same GPU.
  GpuCollectives(std::shared_ptr<const OpenGpu> gpu, const GpuPeers& peers);
  GpuCollectives(const GpuCollectives&) = delete;

  /// Preallocates events for collectives with numbers below `exchanges`.
  void reserve(size_t exchanges);
  /// Queues collective `number` after the work queued on the steps' stream so far. `timed`: null,
  /// or events to record around it.
  void start(size_t number, const CollectiveRole& exchange, void* data, DType dtype,
             const GpuSpan* timed = nullptr);
  /// Later work on the steps' stream waits for the collectives with numbers below `count`.
  void await(size_t count);

  /// Starts a step that all ranks run. wait() or leave() must follow.
  StartedCollective begin() { return begin("the GPUs' step"); }
  /// Waits for `end`, an event recorded on the steps' stream. Earlier steps must be complete,
  /// because the time-out counts from this call.
  void wait(const StartedCollective& begun, const GpuEvent& end);
  /// Waits for the last begin() and all work queued on the steps' stream.
  void wait();
  /// Aborts the communicator when this rank alone stops. All later calls throw.
  void leave();
  /// Ends collectives after a step that some rank rejected. All ranks call it. All later calls
  /// throw.
  void part();

  /// Collective. Broadcasts rank 0's bytes.
  void broadcast(void* data, int64_t bytes);

 private:
  using Deadline = std::chrono::steady_clock::time_point;
  StartedCollective begin(const char* what);
  void check_distinct_gpus();
  void connect_ranks();
  void warm_up_communicator();
  void fork(const GpuEvent& event);
  void wait_until_complete(FluidGpuResult begun);
  /// Calls `done` until it returns ok. Fails at the deadline or on an error.
  template <class Done>
  void poll(const StartedCollective& begun, Deadline deadline, Done done);
  [[noreturn]] void fail(const StartedCollective& begun, const std::string& said);
  void abort();

  std::shared_ptr<const OpenGpu> gpu_;
  GpuPeers peers_;
  GpuStream stream_;
  GpuEvent queued_, done_;
  std::vector<GpuEvent> ready_, collective_done_;  ///< by number of the collective
  GpuCommunicator communicator_;
  StartedCollective last_;
  std::string failure_;  ///< why all calls throw; empty while the communicator works
  bool aborted_ = false;
};

}  // namespace fluid
