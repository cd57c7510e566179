#include "tests/support/host_gpu_collectives.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <stdexcept>

#include "ir/tensor.h"
#include "tests/support/host_gpu_numbers.h"
#include "tests/support/host_gpu_rendezvous.h"
#include "tests/support/host_gpu_state.h"

using namespace fluid::testing;

/// A call that is queued once its state has been asked for often enough.
struct CallToQueue {
  std::function<void()> queue;
  int asked = 0;
};

struct FluidGpuCommunicator {
  FluidGpu* gpu;
  std::shared_ptr<HostRendezvous> meeting;
  std::optional<CallToQueue> call = {};
};

namespace {

/// Among those of the machine.
int number_of(const FluidGpu& gpu) { return host_gpu_state().options.first + gpu.device; }

constexpr int kAsked = 2;  ///< until a call is queued
constexpr int kJunk = 0xab;

using fluid::DType;

template <class T>
void add_all(std::byte* to, const std::string& from) {
  for (size_t i = 0; i < from.size() / sizeof(T); ++i) {
    T a, b;
    std::memcpy(&a, to + i * sizeof(T), sizeof(T));
    std::memcpy(&b, from.data() + i * sizeof(T), sizeof(T));
    a += b;
    std::memcpy(to + i * sizeof(T), &a, sizeof(T));
  }
}

/// Rounded after each addition.
void add_half_values(std::byte* to, const std::string& from, DType dtype) {
  for (size_t i = 0; i < from.size() / sizeof(uint16_t); ++i) {
    uint16_t a, b;
    std::memcpy(&a, to + 2 * i, sizeof a);
    std::memcpy(&b, from.data() + 2 * i, sizeof b);
    a = fluid::float_to_half(fluid::half_to_float(a, dtype) + fluid::half_to_float(b, dtype),
                             dtype);
    std::memcpy(to + 2 * i, &a, sizeof a);
  }
}

/// The sum over all ranks, in their order.
void add_up(std::span<std::byte> to, const std::vector<std::string>& parts, DType dtype) {
  std::memcpy(to.data(), parts[0].data(), to.size());
  for (size_t rank = 1; rank < parts.size(); ++rank) {
    if (dtype == fluid::f64) {
      add_all<double>(to.data(), parts[rank]);
    } else if (dtype == fluid::f32) {
      add_all<float>(to.data(), parts[rank]);
    } else {
      add_half_values(to.data(), parts[rank], dtype);
    }
  }
}

/// The data that a rank contributes to a collective, and the function that computes its result from
/// all contributions.
struct CollectiveOp {
  std::string what;  ///< the same on all ranks
  std::span<std::byte> data, given;
  std::function<void(std::span<std::byte> data, const std::vector<std::string>& parts)> finish;
};

/// Queues it, once the state of the communicator has been asked for.
FluidGpuResult begin(FluidGpuCommunicator* c, FluidGpuStream* stream, const char* name,
                     const CollectiveOp& exchange) {
  return host_gpu_call(name, c->gpu, [&] {
    if (c->call) throw misused("a communicator is used before the last call is in effect");
    if (c->meeting->aborted()) throw misused("a communicator is used that was aborted");
    if (!c->meeting->all_here()) throw misused("a communicator is used before all have met");
    c->call.emplace([meeting = c->meeting, stream, exchange] {
      queue_collective_work(
          stream, exchange.data,
          [meeting, exchange] {
            if (meeting->aborted()) {
              std::ranges::fill(exchange.data, std::byte{kJunk});
              return;
            }
            exchange.finish(exchange.data, meeting->parts(exchange.what));
          },
          [meeting, exchange](const HostWork* self) {
            return meeting->exchange(self, exchange.what, exchange.given);
          });
    });
  });
}

std::string collective_text(const char* name, int64_t count, int64_t share, DType dtype) {
  return std::string(name) + " " + std::to_string(count) + " " + std::to_string(share) + " " +
         std::string(fluid::name_of(dtype));
}

std::span<std::byte> bytes_of(void* data, int64_t bytes) {
  return {static_cast<std::byte*>(data), static_cast<size_t>(bytes)};
}

/// Returns the shard of rank `rank` of `data`, whose elements have `size` bytes.
std::span<std::byte> shard_of(std::span<std::byte> data, int64_t share, int64_t size, int rank) {
  const size_t begin = std::min(static_cast<size_t>(rank * share * size), data.size());
  return data.subspan(begin, std::min(static_cast<size_t>(share * size), data.size() - begin));
}

}  // namespace

namespace fluid::testing {

FluidGpuResult host_identity(FluidGpu* gpu, FluidGpuUuid* identity) {
  return host_gpu_call("identity", gpu, [&] {
    *identity = {};
    identity->bytes[0] = static_cast<uint8_t>(number_of(*gpu));
  });
}

FluidGpuResult host_unique_id(FluidGpuUniqueId* meeting) {
  return host_gpu_call("meeting", nullptr, [&] {
    const std::string folder = HostRendezvous::make_folder();
    *meeting = {};
    folder.copy(meeting->bytes, sizeof meeting->bytes - 1);
  });
}

FluidGpuResult host_communicator_create(FluidGpu* gpu, const FluidGpuUniqueId* meeting,
                                        int32_t rank, int32_t ranks,
                                        FluidGpuCommunicator** communicator) {
  return host_gpu_call("communicator_create", gpu, [&] {
    if (rank < 0 || rank >= ranks) throw misused("a rank is none of those that there are");
    const std::string identity = std::to_string(number_of(*gpu));
    *communicator = new FluidGpuCommunicator{
        gpu, std::make_shared<HostRendezvous>(meeting->bytes, rank, ranks, identity)};
    ++host_gpu_state().objects;
  });
}

FluidGpuResult host_communicator_state(FluidGpuCommunicator* c) {
  bool ready = true;
  const FluidGpuResult result = host_gpu_call("communicator_state", c->gpu, [&] {
    if (c->meeting->aborted()) throw HostError{fluid_gpu_failed, "the communicator was aborted"};
    ready = c->meeting->all_here();
    if (!ready) return;
    if (const auto twins = c->meeting->twins()) throw misused(*twins + " have the same GPU");
    if (!c->call) return;
    ready = ++c->call->asked >= kAsked;
    if (!ready) return;
    const CallToQueue call = std::move(*c->call);
    c->call.reset();
    call.queue();
  });
  return result == fluid_gpu_ok && !ready ? fluid_gpu_not_ready : result;
}

FluidGpuResult host_communicator_abort(FluidGpuCommunicator* c) {
  return host_gpu_call("communicator_abort", nullptr, [&] {
    c->call.reset();
    c->meeting->abort();
  });
}

FluidGpuResult host_communicator_destroy(FluidGpuCommunicator* c) {
  return host_gpu_call("communicator_destroy", nullptr, [&] {
    finish_host_work(c->gpu);
    if (c->meeting.use_count() > 1) throw misused("there are graphs with work of a communicator");
    delete c;
    --host_gpu_state().objects;
  });
}

FluidGpuResult host_all_reduce(FluidGpuCommunicator* c, FluidGpuStream* stream, void* data,
                               int64_t count, FluidGpuDtype element) {
  const DType dtype = host_dtype(element);
  const std::span<std::byte> all = bytes_of(data, count * size_of(dtype));
  return begin(c, stream, "all_reduce",
               {collective_text("all_reduce", count, count, dtype), all, all,
                [dtype](std::span<std::byte> to, const std::vector<std::string>& parts) {
                  add_up(to, parts, dtype);
                }});
}

FluidGpuResult host_reduce_scatter(FluidGpuCommunicator* c, FluidGpuStream* stream, void* data,
                                   int64_t count, int64_t share, FluidGpuDtype element) {
  const DType dtype = host_dtype(element);
  const std::span<std::byte> all = bytes_of(data, count * size_of(dtype));
  const std::span<std::byte> own = shard_of(all, share, size_of(dtype), c->meeting->rank());
  return begin(c, stream, "reduce_scatter",
               {collective_text("reduce_scatter", count, share, dtype), all, all,
                [dtype, own](std::span<std::byte> to, const std::vector<std::string>& parts) {
                  add_up(to, parts, dtype);
                  std::fill(to.begin(), to.begin() + (own.data() - to.data()), std::byte{kJunk});
                  std::fill(to.begin() + (own.data() + own.size() - to.data()), to.end(),
                            std::byte{kJunk});
                }});
}

FluidGpuResult host_all_gather(FluidGpuCommunicator* c, FluidGpuStream* stream, void* data,
                               int64_t count, int64_t share, FluidGpuDtype element) {
  const DType dtype = host_dtype(element);
  const std::span<std::byte> all = bytes_of(data, count * size_of(dtype));
  return begin(c, stream, "all_gather",
               {collective_text("all_gather", count, share, dtype), all,
                shard_of(all, share, size_of(dtype), c->meeting->rank()),
                [](std::span<std::byte> to, const std::vector<std::string>& parts) {
                  size_t at = 0;
                  for (const std::string& part : parts) {
                    std::memcpy(to.data() + at, part.data(), part.size());
                    at += part.size();
                  }
                }});
}

FluidGpuResult host_broadcast(FluidGpuCommunicator* c, FluidGpuStream* stream, void* data,
                              int64_t bytes, int32_t root) {
  const std::span<std::byte> all = bytes_of(data, bytes);
  const bool gives = root == c->meeting->rank();
  return begin(c, stream, "broadcast",
               {"broadcast " + std::to_string(bytes) + " of " + std::to_string(root), all,
                gives ? all : std::span<std::byte>(),
                [root](std::span<std::byte> to, const std::vector<std::string>& parts) {
                  std::memcpy(to.data(), parts[static_cast<size_t>(root)].data(), to.size());
                }});
}

}  // namespace fluid::testing
