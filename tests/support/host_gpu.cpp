#include "tests/support/host_gpu.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>

#include "ir/error.h"
#include "ir/number.h"
#include "tests/support/host_gpu_collectives.h"
#include "tests/support/host_gpu_memory.h"
#include "tests/support/host_gpu_products.h"
#include "tests/support/ptx_machine.h"

using namespace fluid::testing;

struct FluidGpuKernel {
  HostKernel code;
};

struct FluidGpuModule {
  FluidGpu* gpu = nullptr;
  std::deque<FluidGpuKernel> kernels;
};

struct FluidGpuStream : HostStream {
  FluidGpu* gpu = nullptr;
};

struct FluidGpuEvent : HostEvent {
  FluidGpu* gpu = nullptr;
  int looked = 0;  ///< how often, since it was noted last
};

struct FluidGpuGraph {
  FluidGpu* gpu = nullptr;
  HostFrontier work;
};

struct FluidGpuMultiplier {
  FluidGpu* gpu = nullptr;
  FluidGpuProduct product = {};
  FluidGpuChoice choice = {};
  bool loaded = false;
};

struct FluidGpu {
  explicit FluidGpu(const HostGpuOptions& options)
      : memory(options.memory), scheduler(options.pace, options.seed) {}

  HostGpuMemory memory;
  HostScheduler scheduler;
  int device = 0;
  std::vector<HostStream*> streams;
  std::string failure;  ///< once it failed
};

namespace {

constexpr std::string_view kTextBegins = "host kernels ";

struct ToFail {
  FluidGpuResult result;
  int calls;
};

struct State {
  HostGpuOptions options;
  std::map<std::string, ToFail> to_fail;
  std::vector<std::vector<HostKernel>> modules;
  std::string error;
  int objects = 0;
};

State& state() {
  static State state;
  return state;
}

void fail_if_told(const std::string& name, FluidGpu* gpu) {
  const auto found = state().to_fail.find(name);
  if (found == state().to_fail.end() || found->second.calls-- > 0) return;
  const FluidGpuResult result = found->second.result;
  state().to_fail.erase(found);
  if (gpu != nullptr && result == fluid_gpu_failed) gpu->failure = name + " was told to fail";
  throw HostRefusal{result, name + " was told to fail"};
}

/// Runs a function of the table. On a GPU that failed every one fails.
template <class Call>
FluidGpuResult guarded(const char* name, FluidGpu* gpu, Call&& call) {
  try {
    fail_if_told(name, gpu);
    if (gpu != nullptr && !gpu->failure.empty()) throw HostRefusal{fluid_gpu_failed, gpu->failure};
    if (gpu != nullptr) gpu->scheduler.pass();
    call();
    return fluid_gpu_ok;
  } catch (const HostRefusal& refusal) {
    state().error = refusal.why;
    return refusal.result;
  } catch (const std::exception& e) {
    state().error = std::string("queued work failed: ") + e.what();
    if (gpu != nullptr) gpu->failure = state().error;
    return fluid_gpu_failed;
  }
}

HostRefusal misused(const std::string& why) { return {fluid_gpu_misused, why}; }

/// What a capture does not survive.
void refuse_while_recorded(FluidGpu* gpu, const char* what) {
  for (HostStream* stream : gpu->streams) {
    if (!stream->capture) continue;
    stream->capture->lost = true;
    throw misused(std::string(what) + " while a stream is recorded");
  }
}

template <class T, class... Arguments>
void create(T** object, Arguments&&... arguments) {
  *object = new T{std::forward<Arguments>(arguments)...};
  ++state().objects;
}

template <class T>
void destroy(T* object) {
  delete object;
  --state().objects;
}

void queue(FluidGpuStream* stream, std::function<void()> run) {
  FluidGpu* gpu = stream->gpu;
  gpu->scheduler.add(*stream, [gpu, run = std::move(run)] {
    const HostGpuMemory::Opened opened(gpu->memory);
    run();
  });
}

void require(FluidGpu* gpu, const void* address, int64_t bytes) {
  if (gpu->memory.contains(address, bytes)) return;
  throw std::runtime_error("memory that was never given, or was returned, is touched");
}

const char* error() { return state().error.c_str(); }

FluidGpuResult versions(FluidGpuVersions* versions) {
  return guarded("versions", nullptr, [&] { *versions = {.linker = state().options.assembler}; });
}

FluidGpuResult device_count(int32_t* count) {
  return guarded("device_count", nullptr, [&] { *count = state().options.devices; });
}

void require_device(int32_t device) {
  if (device >= 0 && device < state().options.devices) return;
  throw HostRefusal{fluid_gpu_unusable, "there is no such device"};
}

FluidGpuResult describe(int32_t device, FluidGpuDescription* description) {
  return guarded("describe", nullptr, [&] {
    require_device(device);
    *description = {.name = "a host that stands in for a GPU",
                    .major = 9,
                    .multiprocessors = 1,
                    .memory_bus_bits = 512,
                    .clock_khz = 1'000'000,
                    .memory_clock_khz = 1'000'000,
                    .memory = state().options.memory,
                    .free_memory = state().options.memory};
  });
}

FluidGpuResult open(int32_t device, FluidGpu** gpu) {
  return guarded("open", nullptr, [&] {
    require_device(device);
    create(gpu, state().options);
    (*gpu)->device = device;
  });
}

FluidGpuResult close(FluidGpu* gpu) {
  return guarded("close", nullptr, [&] {
    if (gpu->failure.empty()) gpu->scheduler.run_all();
    destroy(gpu);
  });
}

FluidGpuResult allocate(FluidGpu* gpu, int64_t bytes, void** address) {
  return guarded("allocate", gpu, [&] {
    refuse_while_recorded(gpu, "memory is asked for");
    *address = gpu->memory.allocate(bytes);
    if (*address != nullptr) return;
    throw HostRefusal{fluid_gpu_out_of_memory, std::to_string(bytes) + " bytes are needed, " +
                                                   std::to_string(gpu->memory.free()) +
                                                   " are free"};
  });
}

FluidGpuResult release(FluidGpu* gpu, void* address) {
  return guarded("release", gpu, [&] {
    refuse_while_recorded(gpu, "memory is returned");
    gpu->scheduler.run_all();
    if (!gpu->memory.release(address)) throw misused("memory is returned that was never given");
  });
}

FluidGpuResult allocate_host(FluidGpu* gpu, int64_t bytes, void** address) {
  return guarded("allocate_host", gpu, [&] {
    refuse_while_recorded(gpu, "memory is asked for");
    *address = gpu->memory.allocate_host(bytes);
  });
}

FluidGpuResult release_host(FluidGpu* gpu, void* address) {
  return guarded("release_host", gpu, [&] {
    refuse_while_recorded(gpu, "memory is returned");
    gpu->scheduler.run_all();
    if (!gpu->memory.release_host(address)) {
      throw misused("memory is returned that was never given");
    }
  });
}

FluidGpuResult memory_info(FluidGpu* gpu, int64_t* free_bytes, int64_t* total_bytes) {
  return guarded("memory_info", gpu, [&] {
    *free_bytes = gpu->memory.free();
    *total_bytes = gpu->memory.total();
  });
}

FluidGpuResult stream_create(FluidGpu* gpu, FluidGpuStream** stream) {
  return guarded("stream_create", gpu, [&] {
    create(stream);
    (*stream)->gpu = gpu;
    gpu->streams.push_back(*stream);
  });
}

FluidGpuResult stream_destroy(FluidGpuStream* stream) {
  return guarded("stream_destroy", nullptr, [&] {
    std::erase(stream->gpu->streams, stream);
    destroy(stream);
  });
}

FluidGpuResult stream_synchronize(FluidGpuStream* stream) {
  return guarded("stream_synchronize", stream->gpu, [&] {
    if (stream->capture) refuse_while_recorded(stream->gpu, "a stream is waited for");
    stream->gpu->scheduler.run_until_done(stream->queued);
  });
}

FluidGpuResult copy(FluidGpuStream* stream, void* to, const void* from, int64_t bytes) {
  FluidGpu* gpu = stream->gpu;
  return guarded("copy", gpu, [&] {
    queue(stream, [=] {
      require(gpu, to, bytes);
      require(gpu, from, bytes);
      std::memmove(to, from, static_cast<size_t>(bytes));
    });
  });
}

FluidGpuResult fill(FluidGpuStream* stream, void* to, uint8_t value, int64_t bytes) {
  FluidGpu* gpu = stream->gpu;
  return guarded("fill", gpu, [&] {
    queue(stream, [=] {
      require(gpu, to, bytes);
      std::memset(to, value, static_cast<size_t>(bytes));
    });
  });
}

FluidGpuResult launch(FluidGpuStream* stream, const FluidGpuLaunch* launch) {
  return guarded("launch", stream->gpu, [&] {
    if (launch->groups < 1 || launch->threads < 1 || launch->threads > 1024) {
      throw misused("a kernel is launched with no group or too many threads");
    }
    std::vector<int64_t> values(static_cast<size_t>(launch->argument_count));
    for (size_t i = 0; i < values.size(); ++i) {
      std::memcpy(&values[i], launch->arguments[i], sizeof values[i]);
    }
    queue(stream, [copied = *launch, values]() mutable {
      std::vector<void*> arguments;
      for (int64_t& value : values) arguments.push_back(&value);
      copied.arguments = arguments.data();
      copied.kernel->code.run(copied);
    });
  });
}

FluidGpuResult event_create(FluidGpu* gpu, FluidGpuEvent** event) {
  return guarded("event_create", gpu, [&] {
    create(event);
    (*event)->gpu = gpu;
  });
}

FluidGpuResult event_destroy(FluidGpuEvent* event) {
  return guarded("event_destroy", nullptr, [&] { destroy(event); });
}

FluidGpuResult event_record(FluidGpuEvent* event, FluidGpuStream* stream) {
  return guarded("event_record", stream->gpu, [&] {
    queue(stream, [] {});  // its end is when the event happened
    stream->gpu->scheduler.note(*event, *stream);
    event->looked = 0;
  });
}

FluidGpuResult stream_wait(FluidGpuStream* stream, FluidGpuEvent* event) {
  return guarded("stream_wait", stream->gpu, [&] { stream->gpu->scheduler.wait(*stream, *event); });
}

void require_not_recorded(const FluidGpuEvent* event) {
  if (!event->capture) return;
  event->capture->lost = true;
  throw misused("an event is looked at that was noted in a capture");
}

FluidGpuResult event_query(FluidGpuEvent* event) {
  bool done = false;
  const FluidGpuResult result = guarded("event_query", event->gpu, [&] {
    require_not_recorded(event);
    if (event->looked++ > 0) event->gpu->scheduler.look();
    done = HostScheduler::is_done(event->stands_for);
  });
  return result == fluid_gpu_ok && !done ? fluid_gpu_not_ready : result;
}

FluidGpuResult event_synchronize(FluidGpuEvent* event) {
  return guarded("event_synchronize", event->gpu, [&] {
    require_not_recorded(event);
    event->gpu->scheduler.run_until_done(event->stands_for);
  });
}

FluidGpuResult event_milliseconds(FluidGpuEvent* from, FluidGpuEvent* to, float* milliseconds) {
  return guarded("event_milliseconds", from->gpu, [&] {
    for (const FluidGpuEvent* event : {from, to}) {
      if (!event->noted || event->capture || !HostScheduler::is_done(event->stands_for)) {
        throw misused("a time is asked for between events that are not done");
      }
    }
    *milliseconds = to->stands_for.back()->done_at - from->stands_for.back()->done_at;
  });
}

FluidGpuResult capture_begin(FluidGpuStream* stream) {
  return guarded("capture_begin", stream->gpu,
                 [&] { stream->gpu->scheduler.begin_capture(*stream, stream->gpu->streams); });
}

FluidGpuResult capture_end(FluidGpuStream* stream, FluidGpuGraph** graph) {
  return guarded("capture_end", stream->gpu, [&] {
    HostFrontier work = stream->gpu->scheduler.end_capture(*stream, stream->gpu->streams);
    create(graph);
    **graph = {stream->gpu, std::move(work)};
  });
}

FluidGpuResult graph_launch(FluidGpuGraph* graph, FluidGpuStream* stream) {
  return guarded("graph_launch", stream->gpu,
                 [&] { stream->gpu->scheduler.launch(graph->work, *stream); });
}

FluidGpuResult graph_destroy(FluidGpuGraph* graph) {
  return guarded("graph_destroy", nullptr, [&] { destroy(graph); });
}

using Kernels = std::vector<HostKernel>;

/// Kernels that run their PTX.
Kernels read_ptx(std::string_view text, FluidGpu* gpu) {
  std::shared_ptr<const PtxMachine> machine;
  try {
    machine = std::make_shared<const PtxMachine>(text);
  } catch (const fluid::InternalError& e) {
    throw HostRefusal{fluid_gpu_failed, e.what()};
  }
  const PtxMachine::FindBlock find = [gpu](const void* address) {
    const auto [begin, end] = gpu->memory.block_of(address);
    return PtxBlock{begin, end};
  };
  Kernels kernels;
  for (const std::string& name : machine->entries()) {
    kernels.push_back({name, [machine, find, name](const FluidGpuLaunch& launch) {
                         std::vector<uint64_t> arguments(
                             static_cast<size_t>(launch.argument_count));
                         for (size_t i = 0; i < arguments.size(); ++i) {
                           std::memcpy(&arguments[i], launch.arguments[i], sizeof arguments[i]);
                         }
                         machine->run(name, launch.groups, launch.threads, arguments, find);
                       }});
  }
  return kernels;
}

/// Those of host_gpu_text, or of PTX.
Kernels kernels_of(std::string_view text, FluidGpu* gpu) {
  if (!text.starts_with(kTextBegins)) return read_ptx(text, gpu);
  const auto number = fluid::number_in<size_t>(text.substr(kTextBegins.size()));
  if (number && *number < state().modules.size()) return state().modules[*number];
  throw HostRefusal{fluid_gpu_failed, "this is no image of kernels"};
}

FluidGpuResult assemble(FluidGpu* gpu, const char* text, size_t length, void** image,
                        size_t* image_bytes) {
  return guarded("assemble", gpu, [&] {
    kernels_of({text, length}, gpu);
    *image = new char[length];
    std::memcpy(*image, text, length);
    *image_bytes = length;
    ++state().objects;
  });
}

void image_release(void* image) {
  delete[] static_cast<char*>(image);
  --state().objects;
}

FluidGpuResult module_load(FluidGpu* gpu, const void* image, size_t bytes,
                           FluidGpuModule** module) {
  return guarded("module_load", gpu, [&] {
    Kernels kernels = kernels_of({static_cast<const char*>(image), bytes}, gpu);
    create(module);
    (*module)->gpu = gpu;
    for (HostKernel& kernel : kernels) (*module)->kernels.push_back({std::move(kernel)});
  });
}

FluidGpuResult module_unload(FluidGpuModule* module) {
  return guarded("module_unload", nullptr, [&] {
    if (module->gpu->failure.empty()) module->gpu->scheduler.run_all();
    destroy(module);
  });
}

FluidGpuResult module_kernel(FluidGpuModule* module, const char* name, FluidGpuKernel** kernel) {
  return guarded("module_kernel", module->gpu, [&] {
    const auto found = std::ranges::find_if(
        module->kernels, [&](const FluidGpuKernel& k) { return k.code.name == name; });
    if (found == module->kernels.end()) {
      throw HostRefusal{fluid_gpu_failed, std::string("there is no kernel '") + name + "'"};
    }
    *kernel = &*found;
  });
}

void require_product(FluidGpu* gpu, const FluidGpuProduct& product) {
  refuse_while_recorded(gpu, "a product is prepared");
  if (const std::string fault = product_fault(product); !fault.empty()) throw misused(fault);
}

FluidGpuResult matmul_choices(FluidGpu* gpu, const FluidGpuProduct* product, int64_t workspace,
                              FluidGpuChoice* choices, int32_t* count) {
  return guarded("matmul_choices", gpu, [&] {
    require_product(gpu, *product);
    std::vector<FluidGpuChoice> found = host_choices(*product, workspace);
    if (!state().options.multiplies) found.clear();
    *count = std::min(*count, static_cast<int32_t>(found.size()));
    std::copy_n(found.begin(), *count, choices);
  });
}

FluidGpuResult multiplier_create(FluidGpu* gpu, const FluidGpuProduct* product,
                                 const FluidGpuChoice* choice, FluidGpuMultiplier** multiplier) {
  return guarded("multiplier_create", gpu, [&] {
    require_product(gpu, *product);
    if (!is_host_choice(*product, *choice)) throw misused("this is no choice for the product");
    create(multiplier);
    **multiplier = {gpu, *product, *choice};
  });
}

FluidGpuResult multiplier_destroy(FluidGpuMultiplier* multiplier) {
  return guarded("multiplier_destroy", nullptr, [&] { destroy(multiplier); });
}

/// A capture does not survive it.
HostRefusal misused_by(FluidGpuStream* stream, const std::string& why) {
  if (stream->capture) stream->capture->lost = true;
  return misused(why);
}

FluidGpuResult multiply(FluidGpuStream* stream, FluidGpuMultiplier* multiplier,
                        const FluidGpuFactors* factors) {
  FluidGpu* gpu = stream->gpu;
  return guarded("multiply", gpu, [&] {
    if (stream->capture && !multiplier->loaded) {
      throw misused_by(stream, "a product is recorded that was never computed");
    }
    const std::vector<HostTouched> touched =
        touched_by(multiplier->product, multiplier->choice, *factors);
    for (const HostTouched& t : touched) {
      const auto address = reinterpret_cast<uintptr_t>(t.address);
      if (address != 0 && address % FLUID_GPU_PRODUCT_ALIGNMENT == 0) continue;
      throw misused_by(stream, "an address of a product is missing or not aligned");
    }
    for (auto& work : host_product(multiplier->product, multiplier->choice, *factors)) {
      queue(stream, [gpu, touched, work = std::move(work)] {
        for (const HostTouched& t : touched) require(gpu, t.address, t.bytes);
        work();
      });
    }
    multiplier->loaded |= !stream->capture;
  });
}

}  // namespace

namespace fluid::testing {

const FluidGpuTable& host_gpu_table() {
  static const FluidGpuTable table = {.version = FLUID_GPU_TABLE_VERSION,
                                      .error = error,
                                      .versions = versions,
                                      .device_count = device_count,
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
                                      .fill = fill,
                                      .launch = launch,
                                      .event_create = event_create,
                                      .event_destroy = event_destroy,
                                      .event_record = event_record,
                                      .stream_wait = stream_wait,
                                      .event_query = event_query,
                                      .event_synchronize = event_synchronize,
                                      .event_milliseconds = event_milliseconds,
                                      .capture_begin = capture_begin,
                                      .capture_end = capture_end,
                                      .graph_launch = graph_launch,
                                      .graph_destroy = graph_destroy,
                                      .assemble = assemble,
                                      .image_release = image_release,
                                      .module_load = module_load,
                                      .module_unload = module_unload,
                                      .module_kernel = module_kernel,
                                      .matmul_choices = matmul_choices,
                                      .multiplier_create = multiplier_create,
                                      .multiplier_destroy = multiplier_destroy,
                                      .multiply = multiply,
                                      .identity = host_identity,
                                      .meeting = host_meeting,
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

void reset_host_gpu(const HostGpuOptions& options) { state() = {.options = options}; }

void fail_host_gpu(const std::string& name, FluidGpuResult result, int calls) {
  state().to_fail[name] = {result, calls};
}

std::string host_gpu_text(std::vector<HostKernel> kernels) {
  state().modules.push_back(std::move(kernels));
  return std::string(kTextBegins) + std::to_string(state().modules.size() - 1);
}

int host_gpu_objects() { return state().objects; }

FluidGpuResult host_gpu_call(const char* name, FluidGpu* gpu, const std::function<void()>& call) {
  return guarded(name, gpu, call);
}

int host_device(const FluidGpu* gpu) { return gpu->device; }

void count_host_object(int more) { state().objects += more; }

void finish_host_work(FluidGpu* gpu) {
  if (gpu->failure.empty()) gpu->scheduler.run_all();
}

void queue_together(FluidGpuStream* stream, std::span<std::byte> data, std::function<void()> run,
                    std::function<bool(const HostWork*)> others) {
  FluidGpu* gpu = stream->gpu;
  const auto reach = [gpu, data] {
    require(gpu, data.data(), static_cast<int64_t>(data.size()));
    return HostGpuMemory::Opened(gpu->memory);
  };
  gpu->scheduler.add(
      *stream,
      [reach, run = std::move(run)] {
        const HostGpuMemory::Opened opened = reach();
        run();
      },
      [reach, others = std::move(others)](const HostWork* self) {
        const HostGpuMemory::Opened opened = reach();
        return others(self);
      });
}

}  // namespace fluid::testing
