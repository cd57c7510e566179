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
  /// Becomes ready when ncclCommAbort() returns. Valid after begin_abort().
  std::future<void> aborted = {};
};

namespace fluid::cuda {
namespace {

/// Timeout for finalizing and for aborting a communicator. A communicator whose abort times out is
/// leaked.
constexpr std::chrono::seconds kEndTimeout{10};

/// Converts an ncclResult_t to a FluidGpuResult. Appends the last NCCL error of `communicator`,
/// which may be null, to the error message.
FluidGpuResult nccl_result(ncclResult_t result, const char* action, ncclComm_t communicator) {
  if (result == ncclSuccess) return fluid_gpu_ok;
  if (result == ncclInProgress) return fluid_gpu_not_ready;
  const std::string why = std::string(action) + " by NCCL: " + ncclGetErrorString(result);
  const std::string last = ncclGetLastError(communicator);
  const bool misuse = result == ncclInvalidArgument || result == ncclInvalidUsage;
  return set_error(misuse ? fluid_gpu_invalid_usage : fluid_gpu_failed,
                   last.empty() ? why : why + ": " + last);
}

/// Converts the result of a non-blocking NCCL call. Differs from nccl_result() only in that
/// ncclInProgress becomes fluid_gpu_ok.
FluidGpuResult nonblocking_result(ncclResult_t result, const char* action,
                                  ncclComm_t communicator) {
  return result == ncclInProgress ? fluid_gpu_ok : nccl_result(result, action, communicator);
}

/// Sets two environment variables of NCCL, unless the user has set them. NCCL_ALGO=Ring makes sums
/// reproducible. With NCCL's tree algorithms, the order of additions depends on more than the
/// ranks. NCCL_GRAPH_REGISTER=0 disables the registration of buffers that a CUDA graph uses.
/// Registration requires equal buffer offsets on all ranks (NCCL User Guide, "User Buffer
/// Registration"), but the ranks' memory plans differ.
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

/// Calls ncclCommAbort() on another thread, because ncclCommAbort() blocks until all CUDA graphs
/// that contain the communicator's collectives are destroyed. The caller destroys these graphs
/// later. Before it blocks, ncclCommAbort() sets the abort flag that NCCL's kernels poll.
void begin_abort(FluidGpuCommunicator& c) {
  std::packaged_task<void()> abort([device = c.gpu->device, handle = c.handle] {
    cudaSetDevice(device);
    ncclCommAbort(handle);
  });
  c.aborted = abort.get_future();
  std::thread(std::move(abort)).detach();
}

/// Finalizes a communicator, and waits until its queued work is complete. Returns false on an error
/// or if the work takes longer than kEndTimeout.
bool finalize(ncclComm_t handle) {
  const auto deadline = std::chrono::steady_clock::now() + kEndTimeout;
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
    if (finalize(c->handle)) {
      return ncclCommDestroy(c->handle) == ncclSuccess ? cudaSuccess : cudaErrorUnknown;
    }
    begin_abort(*c);
  }
  c->aborted.wait_for(kEndTimeout);  // leaks the communicator if the abort times out
  return cudaSuccess;
}

/// Makes a non-blocking NCCL call with the communicator's GPU as the current device.
template <class Call>
FluidGpuResult start_call(FluidGpuCommunicator* c, const char* action, Call&& call) {
  if (c->aborted.valid()) {
    return set_error(fluid_gpu_invalid_usage,
                     std::string(action) + ": the communicator was aborted");
  }
  const FluidGpuResult set = to_result(cudaSetDevice(c->gpu->device), "setting the current device");
  return set != fluid_gpu_ok ? set : nonblocking_result(call(), action, c->handle);
}

/// NCCL's enum value for a dtype, and the bytes of one element.
struct NcclDtype {
  ncclDataType_t type;
  int64_t bytes;
};

NcclDtype nccl_dtype(FluidGpuDtype dtype) {
  switch (dtype) {
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

/// Calls `each(rank, address, elements)` for every non-empty shard, within one NCCL group.
template <class Each>
ncclResult_t for_each_shard(const FluidGpuCommunicator& c, void* data, int64_t count,
                            int64_t shard_size, const NcclDtype& dtype, Each&& each) {
  if (const ncclResult_t result = ncclGroupStart(); result != ncclSuccess) return result;
  ncclResult_t result = ncclSuccess;
  for (int rank = 0; rank < c.ranks && rank * shard_size < count; ++rank) {
    const int64_t begin = rank * shard_size, elements = std::min(shard_size, count - begin);
    const ncclResult_t one =
        each(rank, static_cast<char*>(data) + begin * dtype.bytes, static_cast<size_t>(elements));
    if (one != ncclSuccess && one != ncclInProgress) result = one;
  }
  const ncclResult_t ended = ncclGroupEnd();
  return result == ncclSuccess ? ended : result;
}

}  // namespace

FluidGpuResult uuid(FluidGpu* gpu, FluidGpuUuid* uuid) {
  return run_on(gpu, "identifying a GPU", [&] {
    cudaDeviceProp properties;
    const cudaError_t error = cudaGetDeviceProperties(&properties, gpu->device);
    static_assert(sizeof properties.uuid == sizeof *uuid);
    std::memcpy(uuid, &properties.uuid, sizeof *uuid);
    return error;
  });
}

FluidGpuResult unique_id(FluidGpuUniqueId* unique_id) {
  configure_nccl();
  ncclUniqueId id;
  static_assert(sizeof id == sizeof *unique_id);
  const ncclResult_t result = ncclGetUniqueId(&id);
  std::memcpy(unique_id, &id, sizeof id);
  return nccl_result(result, "creating a communicator id", nullptr);
}

FluidGpuResult communicator_create(FluidGpu* gpu, const FluidGpuUniqueId* unique_id, int32_t rank,
                                   int32_t ranks, FluidGpuCommunicator** communicator) {
  configure_nccl();
  auto made = std::make_unique<FluidGpuCommunicator>(
      FluidGpuCommunicator{.gpu = gpu, .rank = rank, .ranks = ranks});
  ncclUniqueId id;
  std::memcpy(&id, unique_id, sizeof id);
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;  // makes NCCL calls non-blocking, so that callers can time out
  const FluidGpuResult result = start_call(made.get(), "creating the communicator", [&] {
    return ncclCommInitRankConfig(&made->handle, ranks, id, rank, &config);
  });
  if (result != fluid_gpu_ok) {
    if (made->handle) begin_abort(*made);
    return result;
  }
  *communicator = made.release();
  gpu->gpu_resources.add(*communicator, destroy_communicator);
  return fluid_gpu_ok;
}

FluidGpuResult communicator_state(FluidGpuCommunicator* communicator) {
  if (communicator->aborted.valid()) {
    return set_error(fluid_gpu_failed, "the communicator was aborted");
  }
  return nccl_result(state_of(communicator->handle), "running collectives", communicator->handle);
}

FluidGpuResult communicator_abort(FluidGpuCommunicator* communicator) {
  if (!communicator->aborted.valid()) begin_abort(*communicator);
  return fluid_gpu_ok;
}

FluidGpuResult communicator_destroy(FluidGpuCommunicator* communicator) {
  FluidGpu* gpu = communicator->gpu;
  return run_outside_capture(gpu, "destroying a communicator",
                             [&] { return gpu->gpu_resources.release_resource(communicator); });
}

FluidGpuResult all_reduce(FluidGpuCommunicator* c, FluidGpuStream* stream, void* data,
                          int64_t count, FluidGpuDtype dtype) {
  return start_call(c, "all-reduce", [&] {
    return ncclAllReduce(data, data, static_cast<size_t>(count), nccl_dtype(dtype).type, ncclSum,
                         c->handle, stream->handle);
  });
}

FluidGpuResult reduce_scatter(FluidGpuCommunicator* c, FluidGpuStream* stream, void* data,
                              int64_t count, int64_t shard_size, FluidGpuDtype dtype) {
  return start_call(c, "reduce-scatter", [&] {
    const NcclDtype of = nccl_dtype(dtype);
    if (count == shard_size * c->ranks) {
      return ncclReduceScatter(data, static_cast<char*>(data) + c->rank * shard_size * of.bytes,
                               static_cast<size_t>(shard_size), of.type, ncclSum, c->handle,
                               stream->handle);
    }
    return for_each_shard(
        *c, data, count, shard_size, of, [&](int rank, void* at, size_t elements) {
          return ncclReduce(at, at, elements, of.type, ncclSum, rank, c->handle, stream->handle);
        });
  });
}

FluidGpuResult all_gather(FluidGpuCommunicator* c, FluidGpuStream* stream, void* data,
                          int64_t count, int64_t shard_size, FluidGpuDtype dtype) {
  return start_call(c, "all-gather", [&] {
    const NcclDtype of = nccl_dtype(dtype);
    if (count == shard_size * c->ranks) {
      return ncclAllGather(static_cast<char*>(data) + c->rank * shard_size * of.bytes, data,
                           static_cast<size_t>(shard_size), of.type, c->handle, stream->handle);
    }
    return for_each_shard(
        *c, data, count, shard_size, of, [&](int rank, void* at, size_t elements) {
          return ncclBroadcast(at, at, elements, of.type, rank, c->handle, stream->handle);
        });
  });
}

FluidGpuResult broadcast(FluidGpuCommunicator* c, FluidGpuStream* stream, void* data, int64_t bytes,
                         int32_t root) {
  return start_call(c, "broadcast", [&] {
    return ncclBroadcast(data, data, static_cast<size_t>(bytes), ncclUint8, root, c->handle,
                         stream->handle);
  });
}

}  // namespace fluid::cuda
