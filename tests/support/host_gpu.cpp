#include "tests/support/host_gpu.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <variant>

#include "tests/support/host_gpu_collectives.h"
#include "tests/support/host_gpu_convolutions.h"
#include "tests/support/host_gpu_modules.h"
#include "tests/support/host_gpu_order.h"
#include "tests/support/host_gpu_products.h"
#include "tests/support/host_gpu_state.h"

using namespace fluid::testing;

struct FluidGpuPlan {
  FluidGpu* gpu = nullptr;
  std::variant<FluidGpuMatmul, FluidGpuConvolution> task = {};
  FluidGpuAlgorithm choice = {};
  bool loaded = false;
};

namespace {

const char* error() { return host_gpu_state().error.c_str(); }

FluidGpuResult versions(FluidGpuVersions* versions) {
  return host_gpu_call("versions", nullptr,
                       [&] { *versions = {.linker = host_gpu_state().options.assembler}; });
}

FluidGpuResult device_count(int32_t* count) {
  return host_gpu_call("device_count", nullptr, [&] { *count = host_gpu_state().options.devices; });
}

void require_device(int32_t device) {
  if (device >= 0 && device < host_gpu_state().options.devices) return;
  throw HostError{fluid_gpu_unusable, "there is no such device"};
}

FluidGpuResult get_architecture(int32_t device, int32_t* architecture) {
  return host_gpu_call("architecture", nullptr, [&] {
    require_device(device);
    *architecture = 90;
  });
}

FluidGpuResult describe(int32_t device, FluidGpuDescription* description) {
  return host_gpu_call("describe", nullptr, [&] {
    require_device(device);
    *description = {.name = {},
                    .major = 9,
                    .multiprocessors = 1,
                    .memory_bus_bits = 512,
                    .clock_khz = 1'000'000,
                    .memory_clock_khz = 1'000'000,
                    .memory = host_gpu_state().options.memory,
                    .free_memory = host_gpu_state().options.memory};
    const std::string& name = host_gpu_state().options.name;
    name.copy(description->name, sizeof description->name - 1);
  });
}

FluidGpuResult open(int32_t device, FluidGpu** gpu) {
  return host_gpu_call("open", nullptr, [&] {
    require_device(device);
    create(gpu, host_gpu_state().options);
    (*gpu)->device = device;
  });
}

FluidGpuResult close(FluidGpu* gpu) {
  return host_gpu_call("close", nullptr, [&] {
    finish_host_work(gpu);
    destroy(gpu);
  });
}

FluidGpuResult allocate(FluidGpu* gpu, int64_t bytes, void** address) {
  return host_gpu_call("allocate", gpu, [&] {
    check_not_capturing(gpu, "memory is asked for");
    *address = gpu->memory.allocate(bytes);
    if (*address != nullptr) return;
    throw HostError{fluid_gpu_out_of_memory, std::to_string(bytes) + " bytes are needed, " +
                                                 std::to_string(gpu->memory.free()) + " are free"};
  });
}

FluidGpuResult release(FluidGpu* gpu, void* address) {
  return host_gpu_call("release", gpu, [&] {
    check_not_capturing(gpu, "memory is returned");
    gpu->scheduler.run_all();
    check_not_captured(gpu, address);
    if (!gpu->memory.release(address)) throw misused("memory is returned that was never given");
  });
}

FluidGpuResult allocate_host(FluidGpu* gpu, int64_t bytes, void** address) {
  return host_gpu_call("allocate_host", gpu, [&] {
    check_not_capturing(gpu, "memory is asked for");
    *address = gpu->memory.allocate_host(bytes);
  });
}

FluidGpuResult release_host(FluidGpu* gpu, void* address) {
  return host_gpu_call("release_host", gpu, [&] {
    check_not_capturing(gpu, "memory is returned");
    gpu->scheduler.run_all();
    check_not_captured(gpu, address);
    if (!gpu->memory.release_host(address)) {
      throw misused("memory is returned that was never given");
    }
  });
}

FluidGpuResult memory_info(FluidGpu* gpu, int64_t* free_bytes, int64_t* total_bytes) {
  return host_gpu_call("memory_info", gpu, [&] {
    const HostGpuState& state = host_gpu_state();
    *free_bytes = gpu->memory.free() - state.options.object_bytes * state.objects;
    *total_bytes = gpu->memory.total();
  });
}

FluidGpuResult stream_create(FluidGpu* gpu, FluidGpuStream** stream) {
  return host_gpu_call("stream_create", gpu, [&] {
    create(stream);
    (*stream)->gpu = gpu;
    gpu->streams.push_back(*stream);
  });
}

FluidGpuResult stream_destroy(FluidGpuStream* stream) {
  return host_gpu_call("stream_destroy", nullptr, [&] {
    std::erase(stream->gpu->streams, stream);
    destroy(stream);
  });
}

FluidGpuResult stream_synchronize(FluidGpuStream* stream) {
  return host_gpu_call("stream_synchronize", stream->gpu, [&] {
    if (stream->capture) check_not_capturing(stream->gpu, "a stream is waited for");
    stream->gpu->scheduler.run_until_done(stream->queued);
  });
}

FluidGpuResult copy(FluidGpuStream* stream, void* to, const void* from, int64_t bytes) {
  FluidGpu* gpu = stream->gpu;
  return host_gpu_call("copy", gpu, [&] {
    queue(stream, {to, from}, [=] {
      require(gpu, to, bytes);
      require(gpu, from, bytes);
      std::memmove(to, from, static_cast<size_t>(bytes));
      host_gpu_state().copied += bytes;
    });
  });
}

FluidGpuResult fill_memory(FluidGpuStream* stream, void* to, uint8_t value, int64_t bytes) {
  FluidGpu* gpu = stream->gpu;
  return host_gpu_call("fill", gpu, [&] {
    queue(stream, {to}, [=] {
      require(gpu, to, bytes);
      std::memset(to, value, static_cast<size_t>(bytes));
    });
  });
}

FluidGpuResult launch(FluidGpuStream* stream, const FluidGpuLaunch* launch) {
  return host_gpu_call("launch", stream->gpu, [&] {
    if (launch->grid < 1 || launch->block < 1 || launch->block > 1024) {
      throw misused("a kernel is launched with no group or too many threads");
    }
    std::vector<int64_t> values(static_cast<size_t>(launch->argument_count));
    for (size_t i = 0; i < values.size(); ++i) {
      std::memcpy(&values[i], launch->arguments[i], sizeof values[i]);
    }
    std::vector<const void*> given;
    for (const int64_t value : values) given.push_back(reinterpret_cast<const void*>(value));
    queue(stream, given, [copied = *launch, values]() mutable {
      std::vector<void*> arguments;
      for (int64_t& value : values) arguments.push_back(&value);
      copied.arguments = arguments.data();
      run_host_kernel(copied);
    });
  });
}

template <class Task>
void require_task(FluidGpu* gpu, const Task& task) {
  check_not_capturing(gpu, "a product is prepared");
  if (const std::string fault = host_fault(task); !fault.empty()) throw misused(fault);
}

bool has_algorithm(const FluidGpuMatmul& p) { return p.m <= host_gpu_state().options.most_rows; }
bool has_algorithm(const FluidGpuConvolution& c) {
  return c.filters <= host_gpu_state().options.most_filters;
}

bool computes(const FluidGpuMatmul& p) {
  return p.m <= host_gpu_state().options.most_rows_computed;
}
bool computes(const FluidGpuConvolution&) { return true; }

template <class Task>
FluidGpuResult choices_of(const char* name, FluidGpu* gpu, const Task& task, int64_t workspace,
                          FluidGpuAlgorithm* choices, int32_t* count) {
  return host_gpu_call(name, gpu, [&] {
    require_task(gpu, task);
    std::vector<FluidGpuAlgorithm> found = host_choices(task, workspace);
    if (!has_algorithm(task)) found.clear();
    *count = std::min(*count, static_cast<int32_t>(found.size()));
    std::copy_n(found.begin(), *count, choices);
  });
}

template <class Task>
FluidGpuResult create_gpu_plan(const char* name, FluidGpu* gpu, const Task& task,
                               const FluidGpuAlgorithm& choice, FluidGpuPlan** gpu_plan) {
  return host_gpu_call(name, gpu, [&] {
    require_task(gpu, task);
    if (!is_host_choice(task, choice)) throw misused("this is no choice for the product");
    create(gpu_plan);
    **gpu_plan = {gpu, task, choice};
  });
}

FluidGpuResult matmul_algorithms(FluidGpu* gpu, const FluidGpuMatmul* product, int64_t workspace,
                                 FluidGpuAlgorithm* choices, int32_t* count) {
  return choices_of("matmul_algorithms", gpu, *product, workspace, choices, count);
}

FluidGpuResult convolution_algorithms(FluidGpu* gpu, const FluidGpuConvolution* convolution,
                                      int64_t workspace, FluidGpuAlgorithm* choices,
                                      int32_t* count) {
  return choices_of("convolution_algorithms", gpu, *convolution, workspace, choices, count);
}

FluidGpuResult matmul_plan_create(FluidGpu* gpu, const FluidGpuMatmul* product,
                                  const FluidGpuAlgorithm* choice, FluidGpuPlan** gpu_plan) {
  return create_gpu_plan("matmul_plan_create", gpu, *product, *choice, gpu_plan);
}

FluidGpuResult convolution_plan_create(FluidGpu* gpu, const FluidGpuConvolution* convolution,
                                       const FluidGpuAlgorithm* choice, FluidGpuPlan** gpu_plan) {
  return create_gpu_plan("convolution_plan_create", gpu, *convolution, *choice, gpu_plan);
}

FluidGpuResult plan_destroy(FluidGpuPlan* gpu_plan) {
  return host_gpu_call("plan_destroy", nullptr, [&] { destroy(gpu_plan); });
}

FluidGpuResult multiply(FluidGpuStream* stream, FluidGpuPlan* gpu_plan,
                        const FluidGpuOperands* factors) {
  FluidGpu* gpu = stream->gpu;
  return host_gpu_call("multiply", gpu, [&] {
    if (stream->capture && !gpu_plan->loaded) {
      throw misused_by(stream, "a product is recorded that was never computed");
    }
    const auto able = [](const auto& task) { return computes(task); };
    if (!gpu_plan->loaded && !std::visit(able, gpu_plan->task)) {
      throw HostError{host_gpu_state().options.rejection_result, "no engine computes so many rows"};
    }
    const auto of_task = [&](const auto& function) {
      return std::visit(
          [&](const auto& task) { return function(task, gpu_plan->choice, *factors); },
          gpu_plan->task);
    };
    const std::vector<HostTouched> touched =
        of_task([](const auto&... all) { return touched_by(all...); });
    for (const HostTouched& t : touched) {
      const auto address = reinterpret_cast<uintptr_t>(t.address);
      if (address != 0 && address % FLUID_GPU_TENSOR_ALIGNMENT == 0) continue;
      throw misused_by(stream, "an address of a product is missing or not aligned");
    }
    const auto workspace = reinterpret_cast<uintptr_t>(factors->workspace);
    if (gpu_plan->choice.workspace > 0 && workspace % FLUID_GPU_WORKSPACE_ALIGNMENT != 0) {
      throw misused_by(stream, "a product's workspace is not aligned");
    }
    std::vector<const void*> given;
    for (const HostTouched& t : touched) given.push_back(t.address);
    for (auto& work : of_task([](const auto&... all) { return host_work(all...); })) {
      queue(stream, given, [gpu, touched, work = std::move(work)] {
        for (const HostTouched& t : touched) require(gpu, t.address, t.bytes);
        work();
      });
    }
    if (host_gpu_state().options.split_k_is_fast && gpu_plan->choice.workspace == 0) {
      for (int waits = 0; waits < 3; ++waits) queue(stream, {}, [] {});
    }
    gpu_plan->loaded |= !stream->capture;
  });
}

}  // namespace

namespace fluid::testing {

const FluidGpuTable& host_gpu_table() {
  static const FluidGpuTable table = {.version = FLUID_GPU_TABLE_VERSION,
                                      .error = error,
                                      .versions = versions,
                                      .device_count = device_count,
                                      .architecture = get_architecture,
                                      .describe = describe,
                                      .open = open,
                                      .close = close,
                                      .allocate = allocate,
                                      .release = release,
                                      .allocate_host = allocate_host,
                                      .release_host = release_host,
                                      .memory_info = memory_info,
                                      .stream_create = stream_create,
                                      .stream_destroy = stream_destroy,
                                      .stream_synchronize = stream_synchronize,
                                      .copy = copy,
                                      .fill = fill_memory,
                                      .launch = launch,
                                      .event_create = host_event_create,
                                      .event_destroy = host_event_destroy,
                                      .event_record = host_event_record,
                                      .stream_wait = host_stream_wait,
                                      .event_query = host_event_query,
                                      .event_synchronize = host_event_synchronize,
                                      .event_milliseconds = host_event_milliseconds,
                                      .capture_begin = host_capture_begin,
                                      .capture_end = host_capture_end,
                                      .graph_launch = host_graph_launch,
                                      .graph_destroy = host_graph_destroy,
                                      .assemble = host_assemble,
                                      .free_cubin = host_image_release,
                                      .module_load = host_module_load,
                                      .module_unload = host_module_unload,
                                      .module_kernel = host_module_kernel,
                                      .matmul_algorithms = matmul_algorithms,
                                      .matmul_plan_create = matmul_plan_create,
                                      .convolution_algorithms = convolution_algorithms,
                                      .convolution_plan_create = convolution_plan_create,
                                      .plan_destroy = plan_destroy,
                                      .plan_execute = multiply,
                                      .uuid = host_identity,
                                      .unique_id = host_unique_id,
                                      .communicator_create = host_communicator_create,
                                      .communicator_state = host_communicator_state,
                                      .communicator_abort = host_communicator_abort,
                                      .communicator_destroy = host_communicator_destroy,
                                      .all_reduce = host_all_reduce,
                                      .reduce_scatter = host_reduce_scatter,
                                      .all_gather = host_all_gather,
                                      .broadcast = host_broadcast};
  return table;
}

}  // namespace fluid::testing
