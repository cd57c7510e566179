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

/// The ranks whose GPUs take part in collectives, one GPU per rank, and the timeouts of the
/// collectives.
struct GpuPeers {
  World world = {};
  /// Host communicator between the ranks' processes; null if there are no other ranks.
  Communicator* host_communicator = nullptr;
  std::chrono::milliseconds timeout{60'000};  ///< timeout of waiting until a step is complete
  /// Timeout of the rendezvous and of starting an NCCL call.
  std::chrono::milliseconds rendezvous_timeout{300'000};
};

/// Identifies a step or collective that this rank has started, for error messages.
struct PendingCollective {
  const char* name = "";  ///< name in messages, such as "the GPUs' step"
  int64_t sequence = 0;   ///< result of Communicator::begin_collective()
};

/// Runs NCCL collectives on a dedicated stream. If a rank dies, hangs or omits a call, the matching
/// call of every other rank throws a DeviceError within the timeout. The error names the failed
/// rank. All later calls throw the same error.
class GpuCollectives {
 public:
  /// Collective. Creates and connects the NCCL communicator.
  /// Throws UserError when two ranks have the same GPU.
  GpuCollectives(std::shared_ptr<const OpenGpu> gpu, const GpuPeers& peers);
  GpuCollectives(const GpuCollectives&) = delete;

  /// Preallocates events for collectives with indices below `count`.
  void reserve(size_t count);
  /// Queues collective `index` after the work queued on the compute stream so far. Records the
  /// events of `timed`, if not null, before and after the collective.
  void start(size_t index, const CollectiveRole& role, void* data, DType dtype,
             const GpuEventPair* timed = nullptr);
  /// Makes later work on the compute stream wait for the collectives with indices below `count`.
  void stream_wait(size_t count);

  /// Registers the start of a step. Every rank must run the step. synchronize() or abort_step()
  /// must follow.
  PendingCollective begin_step() { return begin_collective("the GPUs' step"); }
  /// Waits on the host for `end`, the event at the end of the step that `pending` identifies.
  /// Earlier steps must be complete, because the timeout starts with this call.
  void synchronize(const PendingCollective& pending, const GpuEvent& end);
  /// Waits on the host for all work queued on the compute stream.
  void synchronize();
  /// Aborts the communicator after an error on this rank within a step. All later calls throw.
  void abort_step();
  /// Makes later begin_step() and broadcast() calls throw. Every rank calls disable() after a step
  /// that any rank has rejected.
  void disable();

  /// Collective. Broadcasts `bytes` bytes of GPU memory from rank 0, and waits for completion.
  void broadcast(void* data, int64_t bytes);

 private:
  using Deadline = std::chrono::steady_clock::time_point;
  PendingCollective begin_collective(const char* name);
  void check_distinct_gpus();
  void connect_ranks();
  void warm_up_communicator();
  void wait_for_compute_stream(const GpuEvent& event);
  void check_and_wait(FluidGpuResult enqueue_result);
  /// Calls `poll` until it returns fluid_gpu_ok. Calls fail() at the deadline, or if `poll` returns
  /// an error.
  template <class Poll>
  void wait_until(const PendingCollective& pending, Deadline deadline, Poll poll);
  [[noreturn]] void fail(const PendingCollective& pending, const std::string& reason);
  void abort_communicator();

  std::shared_ptr<const OpenGpu> gpu_;
  GpuPeers peers_;
  GpuStream stream_;
  GpuEvent queued_, done_;
  /// Events recorded before and after each collective, by index of the collective.
  std::vector<GpuEvent> ready_, collective_done_;
  GpuCommunicator communicator_;
  PendingCollective last_;
  /// Message of the error that all later calls throw; empty if no error has occurred.
  std::string failure_;
  bool aborted_ = false;
};

}  // namespace fluid
