#include <nccl.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <future>
#include <memory>
#include <string>
#include <thread>

#include "executor/cuda/functions.h"
#include "executor/cuda/objects.h"

struct FluidGpuCommunicator {
  FluidGpu* gpu = nullptr;
  int rank = 0, ranks = 1;
  ncclComm_t handle = nullptr;
  std::future<void> aborted = {};  ///< valid once the abort has begun
};

namespace fluid::cuda {
namespace {

/// Time to finish or abort a communicator before it is leaked.
constexpr std::chrono::seconds kToEnd{10};

/// `communicator` may be null.
FluidGpuResult nccl_answer(ncclResult_t result, const char* doing, ncclComm_t communicator) {
  if (result == ncclSuccess) return fluid_gpu_ok;
  if (result == ncclInProgress) return fluid_gpu_not_ready;
  const std::string why = std::string(doing) + " by NCCL: " + ncclGetErrorString(result);
  const std::string last = ncclGetLastError(communicator);
  const bool misuse = result == ncclInvalidArgument || result == ncclInvalidUsage;
  return set_error(misuse ? fluid_gpu_misused : fluid_gpu_failed,
                   last.empty() ? why : why + ": " + last);
}

/// As nccl_answer(), for a non-blocking call: in progress is ok.
FluidGpuResult begun(ncclResult_t result, const char* doing, ncclComm_t communicator) {
  return result == ncclInProgress ? fluid_gpu_ok : nccl_answer(result, doing, communicator);
}

/// Sets environment variables for NCCL unless the user has set them. NCCL_ALGO: tree reductions add
/// in an order that depends on more than the ranks. NCCL_GRAPH_REGISTER: buffers in graphs would be
/// registered, which requires equal offsets on all ranks (User Guide, "User Buffer Registration").
/// Ranks lay out and grow their arenas differently.
void configure_nccl() {
  static const bool done = [] {
    setenv("NCCL_ALGO", "Ring", 0);
    setenv("NCCL_GRAPH_REGISTER", "0", 0);
    return true;
  }();
  static_cast<void>(done);
}

ncclResult_t state_of(ncclComm_t handle) {
  ncclResult_t state = ncclSuccess;
  const ncclResult_t result = ncclCommGetAsyncError(handle, &state);
  return result == ncclSuccess ? state : result;
}

/// Aborts on a thread of its own. ncclCommAbort() raises the flag that NCCL's kernels poll. Then it
/// blocks until all graphs with the communicator's work are destroyed, which happens only after
/// this returns.
void begin_abort(FluidGpuCommunicator& c) {
  std::packaged_task<void()> abort([device = c.gpu->device, handle = c.handle] {
    cudaSetDevice(device);
    ncclCommAbort(handle);
  });
  c.aborted = abort.get_future();
  std::thread(std::move(abort)).detach();
}

/// Whether all queued work finishes within kToEnd.
bool finish(ncclComm_t handle) {
  const auto deadline = std::chrono::steady_clock::now() + kToEnd;
  ncclResult_t state = ncclCommFinalize(handle);
  while (state == ncclInProgress && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    state = state_of(handle);
  }
  return state == ncclSuccess;
}

cudaError_t destroy_communicator(void* object) {
  const std::unique_ptr<FluidGpuCommunicator> c(static_cast<FluidGpuCommunicator*>(object));
  if (!c->aborted.valid()) {
    if (finish(c->handle)) {
      return ncclCommDestroy(c->handle) == ncclSuccess ? cudaSuccess : cudaErrorUnknown;
    }
    begin_abort(*c);
  }
  c->aborted.wait_for(kToEnd);  // leak the communicator if it does not end
  return cudaSuccess;
}

/// Makes `call` with the communicator's GPU as the current device.
template <class Call>
FluidGpuResult with(FluidGpuCommunicator* c, const char* doing, Call&& call) {
  if (c->aborted.valid()) {
    return set_error(fluid_gpu_misused, std::string(doing) + ": the communicator was aborted");
  }
  const FluidGpuResult set = answer(cudaSetDevice(c->gpu->device), "setting the current device");
  return set != fluid_gpu_ok ? set : begun(call(), doing, c->handle);
}

struct Element {
  ncclDataType_t type;
  int64_t bytes;
};

Element nccl_element(FluidGpuDtype element) {
  switch (element) {
    case fluid_gpu_f64:
      return {ncclFloat64, 8};
    case fluid_gpu_f16:
      return {ncclFloat16, 2};
    case fluid_gpu_bf16:
      return {ncclBfloat16, 2};
    case fluid_gpu_f32:
      break;
  }
  return {ncclFloat32, 4};
}

/// Calls `each(rank, address, elements)` for every non-empty shard, as one NCCL group.
template <class Each>
ncclResult_t for_each_shard(const FluidGpuCommunicator& c, void* data, int64_t count, int64_t share,
                            const Element& element, Each&& each) {
  if (const ncclResult_t result = ncclGroupStart(); result != ncclSuccess) return result;
  ncclResult_t result = ncclSuccess;
  for (int rank = 0; rank < c.ranks && rank * share < count; ++rank) {
    const int64_t begin = rank * share, elements = std::min(share, count - begin);
    const ncclResult_t one =
        each(rank, static_cast<char*>(data) + begin * element.bytes, static_cast<size_t>(elements));
    if (one != ncclSuccess && one != ncclInProgress) result = one;
  }
  const ncclResult_t ended = ncclGroupEnd();
  return result == ncclSuccess ? ended : result;
}

}  // namespace

FluidGpuResult identity(FluidGpu* gpu, FluidGpuIdentity* identity) {
  return on(gpu, "identifying a GPU", [&] {
    cudaDeviceProp properties;
    const cudaError_t error = cudaGetDeviceProperties(&properties, gpu->device);
    static_assert(sizeof properties.uuid == sizeof *identity);
    std::memcpy(identity, &properties.uuid, sizeof *identity);
    return error;
  });
}

FluidGpuResult meeting(FluidGpuUniqueId* meeting) {
  configure_nccl();
  ncclUniqueId id;
  static_assert(sizeof id == sizeof *meeting);
  const ncclResult_t result = ncclGetUniqueId(&id);
  std::memcpy(meeting, &id, sizeof id);
  return nccl_answer(result, "creating a communicator id", nullptr);
}

FluidGpuResult communicator_create(FluidGpu* gpu, const FluidGpuUniqueId* meeting, int32_t rank,
                                   int32_t ranks, FluidGpuCommunicator** communicator) {
  configure_nccl();
  auto made = std::make_unique<FluidGpuCommunicator>(
      FluidGpuCommunicator{.gpu = gpu, .rank = rank, .ranks = ranks});
  ncclUniqueId id;
  std::memcpy(&id, meeting, sizeof id);
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;  // waiting for other ranks needs a time-out
  const FluidGpuResult result = with(made.get(), "creating the communicator", [&] {
    return ncclCommInitRankConfig(&made->handle, ranks, id, rank, &config);
  });
  if (result != fluid_gpu_ok) return result;
  *communicator = made.release();
  gpu->gpu_resources.add(*communicator, destroy_communicator);
  return fluid_gpu_ok;
}

FluidGpuResult communicator_state(FluidGpuCommunicator* communicator) {
  if (communicator->aborted.valid()) {
    return set_error(fluid_gpu_failed, "the communicator was aborted");
  }
  return nccl_answer(state_of(communicator->handle), "running collectives", communicator->handle);
}

FluidGpuResult communicator_abort(FluidGpuCommunicator* communicator) {
  if (!communicator->aborted.valid()) begin_abort(*communicator);
  return fluid_gpu_ok;
}

FluidGpuResult communicator_destroy(FluidGpuCommunicator* communicator) {
  FluidGpu* gpu = communicator->gpu;
  return outside_captures(gpu, "destroying a communicator",
                          [&] { return gpu->gpu_resources.release_resource(communicator); });
}

FluidGpuResult all_reduce(FluidGpuCommunicator* c, FluidGpuStream* stream, void* data,
                          int64_t count, FluidGpuDtype element) {
  return with(c, "all-reduce", [&] {
    return ncclAllReduce(data, data, static_cast<size_t>(count), nccl_element(element).type,
                         ncclSum, c->handle, stream->handle);
  });
}

FluidGpuResult reduce_scatter(FluidGpuCommunicator* c, FluidGpuStream* stream, void* data,
                              int64_t count, int64_t share, FluidGpuDtype element) {
  return with(c, "reduce-scatter", [&] {
    const Element of = nccl_element(element);
    if (count == share * c->ranks) {
      return ncclReduceScatter(data, static_cast<char*>(data) + c->rank * share * of.bytes,
                               static_cast<size_t>(share), of.type, ncclSum, c->handle,
                               stream->handle);
    }
    return for_each_shard(*c, data, count, share, of, [&](int rank, void* at, size_t elements) {
      return ncclReduce(at, at, elements, of.type, ncclSum, rank, c->handle, stream->handle);
    });
  });
}

FluidGpuResult all_gather(FluidGpuCommunicator* c, FluidGpuStream* stream, void* data,
                          int64_t count, int64_t share, FluidGpuDtype element) {
  return with(c, "all-gather", [&] {
    const Element of = nccl_element(element);
    if (count == share * c->ranks) {
      return ncclAllGather(static_cast<char*>(data) + c->rank * share * of.bytes, data,
                           static_cast<size_t>(share), of.type, c->handle, stream->handle);
    }
    return for_each_shard(*c, data, count, share, of, [&](int rank, void* at, size_t elements) {
      return ncclBroadcast(at, at, elements, of.type, rank, c->handle, stream->handle);
    });
  });
}

FluidGpuResult broadcast(FluidGpuCommunicator* c, FluidGpuStream* stream, void* data, int64_t bytes,
                         int32_t root) {
  return with(c, "broadcast", [&] {
    return ncclBroadcast(data, data, static_cast<size_t>(bytes), ncclUint8, root, c->handle,
                         stream->handle);
  });
}

}  // namespace fluid::cuda
