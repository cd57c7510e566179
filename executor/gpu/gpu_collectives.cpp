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

constexpr int kBusyPolls = 200;  ///< polls before the host sleeps between polls
constexpr std::chrono::microseconds kPause{20};
/// Time-out for a step started after a rejected one. Other ranks may not have started it.
constexpr std::chrono::milliseconds kRejectedStepTimeout{2'000};

FluidGpuDtype element_of(DType dtype) {
  const std::optional<FluidGpuDtype> number = gpu_dtype(dtype);
  check(number.has_value(), "collectives of GPUs take floats only");
  return *number;
}

}  // namespace

GpuCollectives::GpuCollectives(std::shared_ptr<const OpenGpu> gpu, const GpuPeers& peers)
    : gpu_(std::move(gpu)),
      peers_(peers),
      stream_(gpu_->gpu.stream()),
      queued_(gpu_->gpu.event()),
      done_(gpu_->gpu.event()) {
  peers_.control->barrier(peers_.first_timeout);
  check_distinct_gpus();
  gpu_->ledger.measured("communicator", [&] {
    connect_ranks();
    warm_up_communicator();
  });
}

/// Gathers the GPUs' ids; each rank owns one line of a bucket.
void GpuCollectives::check_distinct_gpus() {
  const World& world = peers_.world;
  const auto size = static_cast<size_t>(world.size);
  std::vector<double> lines(size * kBucketLine);
  const auto identity_at = [&](size_t rank) {
    FluidGpuIdentity identity;
    std::memcpy(&identity, &lines[rank * kBucketLine], sizeof identity);
    return std::to_array(identity.bytes);
  };
  FluidGpuIdentity own = {};
  check_gpu(gpu_->gpu.table(), gpu_->gpu.table().identity(gpu_->gpu.get(), &own), gpu_->gpu.get());
  std::memcpy(&lines[static_cast<size_t>(world.rank) * kBucketLine], &own, sizeof own);
  peers_.control->all_gather(lines.data(), static_cast<int64_t>(lines.size()), f64);
  for (size_t rank = 1; rank < size; ++rank) {
    for (size_t other = 0; other < rank; ++other) {
      if (identity_at(rank) != identity_at(other)) continue;
      throw UserError(fmt::format(
          "rank {} and rank {} have the same GPU: start as many ranks as there are GPUs, as "
          "`fluidrun launch --nproc auto` does, or train on the CPU with --place cpu",
          other, rank));
    }
  }
}

void GpuCollectives::connect_ranks() {
  const FluidGpuTable& table = gpu_->gpu.table();
  FluidGpuUniqueId meeting = {};
  if (peers_.world.rank == 0) check_gpu(table, table.meeting(&meeting), gpu_->gpu.get());
  peers_.control->broadcast(&meeting, sizeof meeting, 0);
  begin("the rendezvous of GPUs");
  FluidGpuCommunicator* made = nullptr;
  const FluidGpuResult begun = table.communicator_create(
      gpu_->gpu.get(), &meeting, peers_.world.rank, peers_.world.size, &made);
  communicator_ = GpuCommunicator(table, made);
  wait_until_complete(begun);
}

/// Connects the GPUs now, not within the first step.
void GpuCollectives::warm_up_communicator() {
  const Gpu& gpu = gpu_->gpu;
  const GpuMemory host = gpu.allocate_host(sizeof(float)), sum = gpu.allocate(sizeof(float));
  float value = 1;
  std::memcpy(host.data(), &value, sizeof value);
  reserve(1);
  begin();
  gpu.copy(gpu_->stream, sum.data(), host.data(), sizeof value);
  start(0, {.elements = 1, .kind = CollectiveKind::sum}, sum.data(), f32);
  await(1);
  gpu.copy(gpu_->stream, host.data(), sum.data(), sizeof value);
  wait();
  std::memcpy(&value, host.data(), sizeof value);
  if (value != static_cast<float>(peers_.world.size)) {
    throw DeviceError(fmt::format("{} GPUs sum {} ones to {}: they do not communicate correctly",
                                  peers_.world.size, peers_.world.size, value));
  }
}

void GpuCollectives::reserve(size_t exchanges) {
  while (ready_.size() < exchanges) {
    ready_.push_back(gpu_->gpu.event());
    collective_done_.push_back(gpu_->gpu.event());
  }
}

/// Orders later work on the collectives' stream after all work queued on the steps' stream so far.
void GpuCollectives::fork(const GpuEvent& event) {
  gpu_->gpu.record(event, gpu_->stream);
  gpu_->gpu.wait(stream_, event);
}

void GpuCollectives::start(size_t number, const CollectiveRole& exchange, void* data, DType dtype,
                           const GpuSpan* timed) {
  const FluidGpuTable& table = gpu_->gpu.table();
  const int64_t count = exchange.elements;
  const BucketShard own = bucket_shard(count, peers_.world.size, peers_.world.rank);
  const int64_t share = bucket_shard(count, peers_.world.size, 0).size();
  const FluidGpuDtype element = element_of(dtype);
  fork(ready_[number]);
  if (timed != nullptr) gpu_->gpu.record(timed->begin, stream_);
  if (count > 0) {
    switch (exchange.kind) {
      case CollectiveKind::sum:
        wait_until_complete(
            table.all_reduce(communicator_.get(), stream_.get(), data, count, element));
        break;
      case CollectiveKind::scatter:
        wait_until_complete(
            table.reduce_scatter(communicator_.get(), stream_.get(), data, count, share, element));
        break;
      case CollectiveKind::gather:
        wait_until_complete(
            table.all_gather(communicator_.get(), stream_.get(), data, count, share, element));
        break;
    }
  }
  if (exchange.kind == CollectiveKind::scatter) {  // zero the other ranks' shards, as the CPU does
    auto* bytes = static_cast<std::byte*>(data);
    const int64_t size = size_of(dtype);
    if (own.begin > 0) gpu_->gpu.fill(stream_, bytes, 0, own.begin * size);
    if (own.end < count) {
      gpu_->gpu.fill(stream_, bytes + own.end * size, 0, (count - own.end) * size);
    }
  }
  if (timed != nullptr) gpu_->gpu.record(timed->end, stream_);
  gpu_->gpu.record(collective_done_[number], stream_);
}

void GpuCollectives::await(size_t count) {
  if (count > 0) gpu_->gpu.wait(gpu_->stream, collective_done_[count - 1]);
}

StartedCollective GpuCollectives::begin(const char* what) {
  if (!failure_.empty()) throw DeviceError(failure_);
  last_ = {what, peers_.control->enter()};
  return last_;
}

void GpuCollectives::wait() {
  gpu_->gpu.record(done_, gpu_->stream);
  wait(last_, done_);
}

void GpuCollectives::wait(const StartedCollective& begun, const GpuEvent& end) {
  if (aborted_) throw DeviceError(failure_);
  const FluidGpuTable& table = gpu_->gpu.table();
  const bool parted = !failure_.empty();
  poll(begun,
       Clock::now() + (parted ? std::min(peers_.timeout, kRejectedStepTimeout) : peers_.timeout),
       [&] {
         const FluidGpuResult state = table.communicator_state(communicator_.get());
         if (state != fluid_gpu_ok) return state;
         return table.event_query(end.get());
       });
}

/// Waits until the last NCCL call has taken effect.
void GpuCollectives::wait_until_complete(FluidGpuResult begun) {
  const FluidGpuTable& table = gpu_->gpu.table();
  if (begun != fluid_gpu_ok) fail(last_, table.error());
  poll(last_, Clock::now() + peers_.first_timeout,
       [&] { return table.communicator_state(communicator_.get()); });
}

template <class Done>
void GpuCollectives::poll(const StartedCollective& begun, Deadline deadline, Done done) {
  for (int polls = 0;; ++polls) {
    const FluidGpuResult result = done();
    if (result == fluid_gpu_ok) return;
    if (result != fluid_gpu_not_ready) fail(begun, gpu_->gpu.table().error());
    if (Clock::now() > deadline) fail(begun, "");
    if (polls > kBusyPolls) std::this_thread::sleep_for(kPause);
  }
}

void GpuCollectives::broadcast(void* data, int64_t bytes) {
  if (bytes == 0) return;
  begin("the GPUs' broadcast");
  fork(queued_);
  wait_until_complete(
      gpu_->gpu.table().broadcast(communicator_.get(), stream_.get(), data, bytes, 0));
  gpu_->gpu.record(queued_, stream_);
  gpu_->gpu.wait(gpu_->stream, queued_);
  wait();
}

void GpuCollectives::abort() {
  aborted_ = true;
  if (communicator_) gpu_->gpu.table().communicator_abort(communicator_.get());
}

void GpuCollectives::leave() {
  if (!failure_.empty()) return;
  part();
  abort();
}

void GpuCollectives::part() {
  if (failure_.empty()) failure_ = kLeftAStep;
}

/// Aborts first: finding the rank to blame takes time. After part() no rank is to blame.
void GpuCollectives::fail(const StartedCollective& begun, const std::string& said) {
  const std::string why = said;  // abort() overwrites the message
  abort();
  if (!failure_.empty()) throw DeviceError(failure_);
  try {
    peers_.control->fail(begun.what, begun.number, why);
  } catch (const DeviceError& e) {
    failure_ = e.what();
  }
  throw DeviceError(failure_);
}

}  // namespace fluid
