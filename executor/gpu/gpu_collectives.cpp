#include "executor/gpu/gpu_collectives.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <thread>

#include "executor/comm/collective_queue.h"
#include "executor/gpu_driver/gpu_task.h"
#include "ir/error.h"
#include "passes/bucket.h"

namespace fluid {
namespace {

using Clock = std::chrono::steady_clock;

/// Number of polls without a pause. After each later poll, the thread sleeps for kPause.
constexpr int kBusyPolls = 200;
constexpr std::chrono::microseconds kPause{20};
/// Timeout of a step that was in flight when an earlier step was rejected. The timeout is short
/// because other ranks may never start the step.
constexpr std::chrono::milliseconds kRejectedStepTimeout{2'000};

FluidGpuDtype gpu_dtype_of(DType dtype) {
  const std::optional<FluidGpuDtype> gpu_type = gpu_dtype(dtype);
  check(gpu_type.has_value(), "collectives of GPUs take floats only");
  return *gpu_type;
}

}  // namespace

GpuCollectives::GpuCollectives(std::shared_ptr<const OpenGpu> gpu, const GpuPeers& peers)
    : gpu_(std::move(gpu)),
      peers_(peers),
      stream_(gpu_->gpu.create_stream()),
      queued_(gpu_->gpu.create_event()),
      done_(gpu_->gpu.create_event()) {
  peers_.host_communicator->barrier(peers_.rendezvous_timeout);
  check_distinct_gpus();
  gpu_->memory_tracker.measure("communicator", [&] {
    connect_ranks();
    warm_up_communicator();
  });
}

/// All-gathers the UUIDs of the ranks' GPUs. Throws UserError if two ranks have the same GPU. The
/// shard of each rank is one cache line that begins with the UUID of its GPU.
void GpuCollectives::check_distinct_gpus() {
  const World& world = peers_.world;
  const auto size = static_cast<size_t>(world.size);
  std::vector<double> lines(size * kBucketAlignment);
  const auto uuid_at = [&](size_t rank) {
    FluidGpuUuid uuid;
    std::memcpy(&uuid, &lines[rank * kBucketAlignment], sizeof uuid);
    return std::to_array(uuid.bytes);
  };
  FluidGpuUuid own = {};
  check_gpu(gpu_->gpu.table(), gpu_->gpu.table().uuid(gpu_->gpu.get(), &own), gpu_->gpu.get());
  std::memcpy(&lines[static_cast<size_t>(world.rank) * kBucketAlignment], &own, sizeof own);
  peers_.host_communicator->all_gather(lines.data(), static_cast<int64_t>(lines.size()), f64);
  for (size_t rank = 1; rank < size; ++rank) {
    for (size_t other = 0; other < rank; ++other) {
      if (uuid_at(rank) != uuid_at(other)) continue;
      throw UserError(fmt::format(
          "rank {} and rank {} have the same GPU: start as many ranks as there are GPUs, as "
          "`fluidrun launch --nproc auto` does, or train on the CPU with --place cpu",
          other, rank));
    }
  }
}

void GpuCollectives::connect_ranks() {
  const FluidGpuTable& table = gpu_->gpu.table();
  FluidGpuUniqueId unique_id = {};
  if (peers_.world.rank == 0) check_gpu(table, table.unique_id(&unique_id), gpu_->gpu.get());
  peers_.host_communicator->broadcast(&unique_id, sizeof unique_id, 0);
  begin_collective("the rendezvous of GPUs");
  FluidGpuCommunicator* communicator = nullptr;
  const FluidGpuResult result = table.communicator_create(
      gpu_->gpu.get(), &unique_id, peers_.world.rank, peers_.world.size, &communicator);
  communicator_ = GpuCommunicator(table, communicator);
  check_and_wait(result);
}

/// Runs an all-reduce of ones and checks the sum, because NCCL connects the GPUs lazily, in the
/// first collective.
void GpuCollectives::warm_up_communicator() {
  const Gpu& gpu = gpu_->gpu;
  const GpuMemory host = gpu.allocate_host(sizeof(float)), sum = gpu.allocate(sizeof(float));
  float value = 1;
  std::memcpy(host.data(), &value, sizeof value);
  reserve(1);
  begin_step();
  gpu.copy(gpu_->stream, sum.data(), host.data(), sizeof value);
  start(0, {.elements = 1, .kind = CollectiveKind::all_reduce}, sum.data(), f32);
  stream_wait(1);
  gpu.copy(gpu_->stream, host.data(), sum.data(), sizeof value);
  synchronize();
  std::memcpy(&value, host.data(), sizeof value);
  if (value != static_cast<float>(peers_.world.size)) {
    throw DeviceError(fmt::format("{} GPUs sum {} ones to {}: they do not communicate correctly",
                                  peers_.world.size, peers_.world.size, value));
  }
}

void GpuCollectives::reserve(size_t count) {
  while (ready_.size() < count) {
    ready_.push_back(gpu_->gpu.create_event());
    collective_done_.push_back(gpu_->gpu.create_event());
  }
}

/// Makes later work on the communication stream wait for the work queued on the compute stream so
/// far.
void GpuCollectives::wait_for_compute_stream(const GpuEvent& event) {
  gpu_->gpu.record(event, gpu_->stream);
  gpu_->gpu.wait(stream_, event);
}

void GpuCollectives::start(size_t index, const CollectiveRole& role, void* data, DType dtype,
                           const GpuEventPair* timed) {
  const FluidGpuTable& table = gpu_->gpu.table();
  const int64_t count = role.elements;
  const BucketShard own = bucket_shard(count, peers_.world.size, peers_.world.rank);
  const int64_t shard_size = bucket_shard(count, peers_.world.size, 0).size();
  const FluidGpuDtype gpu_type = gpu_dtype_of(dtype);
  wait_for_compute_stream(ready_[index]);
  if (timed != nullptr) gpu_->gpu.record(timed->begin, stream_);
  if (count > 0) {
    switch (role.kind) {
      case CollectiveKind::all_reduce:
        check_and_wait(table.all_reduce(communicator_.get(), stream_.get(), data, count, gpu_type));
        break;
      case CollectiveKind::reduce_scatter:
        check_and_wait(table.reduce_scatter(communicator_.get(), stream_.get(), data, count,
                                            shard_size, gpu_type));
        break;
      case CollectiveKind::all_gather:
        check_and_wait(table.all_gather(communicator_.get(), stream_.get(), data, count, shard_size,
                                        gpu_type));
        break;
    }
  }
  // Fills the shards of the other ranks with zeros, as the CPU's reduce-scatter does.
  if (role.kind == CollectiveKind::reduce_scatter) {
    auto* bytes = static_cast<std::byte*>(data);
    const int64_t size = size_of(dtype);
    if (own.begin > 0) gpu_->gpu.fill(stream_, bytes, 0, own.begin * size);
    if (own.end < count) {
      gpu_->gpu.fill(stream_, bytes + own.end * size, 0, (count - own.end) * size);
    }
  }
  if (timed != nullptr) gpu_->gpu.record(timed->end, stream_);
  gpu_->gpu.record(collective_done_[index], stream_);
}

void GpuCollectives::stream_wait(size_t count) {
  if (count > 0) gpu_->gpu.wait(gpu_->stream, collective_done_[count - 1]);
}

PendingCollective GpuCollectives::begin_collective(const char* name) {
  if (!failure_.empty()) throw DeviceError(failure_);
  last_ = {name, peers_.host_communicator->begin_collective()};
  return last_;
}

void GpuCollectives::synchronize() {
  gpu_->gpu.record(done_, gpu_->stream);
  synchronize(last_, done_);
}

void GpuCollectives::synchronize(const PendingCollective& pending, const GpuEvent& end) {
  if (aborted_) throw DeviceError(failure_);
  const FluidGpuTable& table = gpu_->gpu.table();
  const bool disabled = !failure_.empty();
  wait_until(
      pending,
      Clock::now() + (disabled ? std::min(peers_.timeout, kRejectedStepTimeout) : peers_.timeout),
      [&] {
        const FluidGpuResult state = table.communicator_state(communicator_.get());
        if (state != fluid_gpu_ok) return state;
        return table.event_query(end.get());
      });
}

/// Waits on the host until the last non-blocking NCCL call is complete. `enqueue_result`: the value
/// that the NCCL call returned.
void GpuCollectives::check_and_wait(FluidGpuResult enqueue_result) {
  const FluidGpuTable& table = gpu_->gpu.table();
  if (enqueue_result != fluid_gpu_ok) fail(last_, table.error());
  wait_until(last_, Clock::now() + peers_.rendezvous_timeout,
             [&] { return table.communicator_state(communicator_.get()); });
}

template <class Poll>
void GpuCollectives::wait_until(const PendingCollective& pending, Deadline deadline, Poll poll) {
  for (int polls = 0;; ++polls) {
    const FluidGpuResult result = poll();
    if (result == fluid_gpu_ok) return;
    if (result != fluid_gpu_not_ready) fail(pending, gpu_->gpu.table().error());
    if (Clock::now() > deadline) fail(pending, "");
    if (polls > kBusyPolls) std::this_thread::sleep_for(kPause);
  }
}

void GpuCollectives::broadcast(void* data, int64_t bytes) {
  if (bytes == 0) return;
  begin_collective("the GPUs' broadcast");
  wait_for_compute_stream(queued_);
  check_and_wait(gpu_->gpu.table().broadcast(communicator_.get(), stream_.get(), data, bytes, 0));
  gpu_->gpu.record(queued_, stream_);
  gpu_->gpu.wait(gpu_->stream, queued_);
  synchronize();
}

void GpuCollectives::abort_communicator() {
  aborted_ = true;
  if (communicator_) gpu_->gpu.table().communicator_abort(communicator_.get());
}

void GpuCollectives::abort_step() {
  if (!failure_.empty()) return;
  disable();
  abort_communicator();
}

void GpuCollectives::disable() {
  if (failure_.empty()) failure_ = kAbandonedStepError;
}

/// Aborts the communicator, then throws a DeviceError that names the failed rank. The abort comes
/// first, because finding the failed rank takes time. After disable(), the error names no rank.
void GpuCollectives::fail(const PendingCollective& pending, const std::string& reason) {
  // Copies `reason`, because abort_communicator() overwrites the error message that `reason` may
  // reference.
  const std::string why = reason;
  abort_communicator();
  if (!failure_.empty()) throw DeviceError(failure_);
  try {
    peers_.host_communicator->throw_failure(pending.name, pending.sequence, why);
  } catch (const DeviceError& e) {
    failure_ = e.what();
  }
  throw DeviceError(failure_);
}

}  // namespace fluid
