#include "executor/gpu_driver/gpu.h"

#include <fmt/format.h>

#include "executor/device/bytes_text.h"
#include "executor/device/out_of_memory.h"
#include "executor/gpu_driver/backend.h"

namespace fluid {
namespace {

/// Returns an owning handle of the object that `create(&object)` creates. `gpu`: the GPU of the
/// call, or null if no GPU is open.
template <class Owned, class T, class Create>
Owned create_handle(const FluidGpuTable& table, FluidGpu* gpu, Create&& create) {
  T* object = nullptr;
  check_gpu(table, create(&object), gpu);
  return Owned(table, object);
}

std::string text(int64_t bytes) { return bytes_text(static_cast<double>(bytes)); }

constexpr const char* kLittleOnGpu =
    "take a smaller batch, micro-batches or mixed precision, or free GPU memory";
constexpr const char* kLittleOnHost = "take a smaller batch, or free host memory";

OutOfMemory out_of_memory_error(const FluidGpuTable& table, FluidGpu* gpu,
                                GpuMemory::Location location, int64_t bytes) {
  if (location == GpuMemory::Location::gpu) {
    return {fmt::format("the GPU has no {} in one contiguous block", text(bytes)),
            out_of_memory_advice(table, gpu)};
  }
  return {fmt::format("the host has no {} of pinned memory for a GPU", text(bytes)), kLittleOnHost};
}

}  // namespace

std::string out_of_memory_advice(const FluidGpuTable& table, FluidGpu* gpu) {
  int64_t free = 0, total = 0;
  if (table.memory_info(gpu, &free, &total) != fluid_gpu_ok) return kLittleOnGpu;
  return fmt::format("{} of {} are free; {}", text(free), text(total), kLittleOnGpu);
}

void check_gpu(const FluidGpuTable& table, FluidGpuResult result, FluidGpu* gpu) {
  if (result == fluid_gpu_ok) return;
  const std::string said = table.error();
  if (result != fluid_gpu_out_of_memory) throw GpuError(result, said);
  throw OutOfMemory(said, gpu == nullptr ? kNoContextAdvice : out_of_memory_advice(table, gpu));
}

GpuMemory::GpuMemory(const FluidGpuTable& table, FluidGpu* gpu, Location location, int64_t bytes,
                     int64_t* allocated_bytes)
    : table_(&table),
      gpu_(gpu),
      location_(location),
      bytes_(bytes),
      allocated_bytes_(allocated_bytes) {
  void* address = nullptr;
  const auto take = location == Location::gpu ? table.allocate : table.allocate_host;
  const FluidGpuResult result = take(gpu, bytes, &address);
  if (result == fluid_gpu_out_of_memory) throw out_of_memory_error(table, gpu, location, bytes);
  check_gpu(table, result, gpu);
  data_ = static_cast<std::byte*>(address);
  *allocated_bytes_ += bytes_;
}

GpuMemory::~GpuMemory() {
  if (allocated_bytes_ != nullptr) *allocated_bytes_ -= bytes_;
  if (data_ == nullptr) return;
  (location_ == Location::gpu ? table_->release : table_->release_host)(gpu_, data_);
}

void GpuMemory::swap(GpuMemory& other) {
  std::swap(table_, other.table_);
  std::swap(gpu_, other.gpu_);
  std::swap(location_, other.location_);
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  std::swap(allocated_bytes_, other.allocated_bytes_);
}

Gpu::Gpu(const FluidGpuTable& table, int device)
    : table_(table),
      gpu_(create_handle<decltype(gpu_), FluidGpu>(
          table, nullptr, [&](FluidGpu** gpu) { return table.open(device, gpu); })) {
  FluidGpuDescription description{};
  check(table.describe(device, &description));
  multiprocessors_ = description.multiprocessors;
}

std::pair<int64_t, int64_t> Gpu::memory_info() const {
  int64_t free = 0, total = 0;
  check(table_.memory_info(gpu_.get(), &free, &total));
  return {free, total};
}

GpuStream Gpu::create_stream() const {
  return create_handle<GpuStream, FluidGpuStream>(table_, gpu_.get(), [&](FluidGpuStream** stream) {
    return table_.stream_create(gpu_.get(), stream);
  });
}

GpuEvent Gpu::create_event(FluidGpuEventUse use) const {
  return create_handle<GpuEvent, FluidGpuEvent>(table_, gpu_.get(), [&](FluidGpuEvent** event) {
    return table_.event_create(gpu_.get(), use, event);
  });
}

std::string Gpu::assemble(std::string_view ptx) const {
  void* image = nullptr;
  size_t bytes = 0;
  check(table_.assemble(gpu_.get(), ptx.data(), ptx.size(), &image, &bytes));
  std::string code(static_cast<const char*>(image), bytes);
  table_.free_cubin(image);
  return code;
}

GpuModule Gpu::load_module(std::string_view cubin) const {
  return create_handle<GpuModule, FluidGpuModule>(table_, gpu_.get(), [&](FluidGpuModule** module) {
    return table_.module_load(gpu_.get(), cubin.data(), cubin.size(), module);
  });
}

FluidGpuKernel* Gpu::kernel(const GpuModule& module, const char* name) const {
  FluidGpuKernel* kernel = nullptr;
  check(table_.module_kernel(module.get(), name, &kernel));
  return kernel;
}

void Gpu::copy(const GpuStream& stream, void* to, const void* from, int64_t bytes) const {
  check(table_.copy(stream.get(), to, from, bytes));
}

void Gpu::fill(const GpuStream& stream, void* to, uint8_t value, int64_t bytes) const {
  check(table_.fill(stream.get(), to, value, bytes));
}

void Gpu::launch(const GpuStream& stream, FluidGpuKernel* kernel, int64_t grid, int64_t block,
                 std::span<void* const> arguments) const {
  const FluidGpuLaunch launch{kernel, grid, block, arguments.data(),
                              static_cast<int32_t>(arguments.size())};
  check(table_.launch(stream.get(), &launch));
}

void Gpu::synchronize(const GpuStream& stream) const {
  check(table_.stream_synchronize(stream.get()));
}

void Gpu::record(const GpuEvent& event, const GpuStream& stream) const {
  check(table_.event_record(event.get(), stream.get()));
}

void Gpu::wait(const GpuStream& stream, const GpuEvent& event) const {
  check(table_.stream_wait(stream.get(), event.get()));
}

bool Gpu::is_done(const GpuEvent& event) const {
  const FluidGpuResult result = table_.event_query(event.get());
  if (result == fluid_gpu_not_ready) return false;
  check(result);
  return true;
}

void Gpu::synchronize(const GpuEvent& event) const { check(table_.event_synchronize(event.get())); }

float Gpu::milliseconds(const GpuEvent& from, const GpuEvent& to) const {
  float milliseconds = 0;
  check(table_.event_milliseconds(from.get(), to.get(), &milliseconds));
  return milliseconds;
}

void Gpu::begin_capture(const GpuStream& stream) const {
  check(table_.capture_begin(stream.get()));
}

GpuGraph Gpu::end_capture(const GpuStream& stream) const {
  return create_handle<GpuGraph, FluidGpuGraph>(table_, gpu_.get(), [&](FluidGpuGraph** graph) {
    return table_.capture_end(stream.get(), graph);
  });
}

GpuGraph Gpu::capture(const GpuStream& stream, const std::function<void()>& queue) const {
  begin_capture(stream);
  try {
    queue();
  } catch (...) {
    FluidGpuGraph* lost = nullptr;
    if (table_.capture_end(stream.get(), &lost) == fluid_gpu_ok) table_.graph_destroy(lost);
    throw;
  }
  return end_capture(stream);
}

void Gpu::launch(const GpuGraph& graph, const GpuStream& stream) const {
  check(table_.graph_launch(graph.get(), stream.get()));
}

std::vector<FluidGpuAlgorithm> Gpu::algorithms(const GpuTask& task, int64_t workspace,
                                               int max_count) const {
  std::vector<FluidGpuAlgorithm> found(static_cast<size_t>(max_count));
  int32_t count = max_count;
  const auto find = [&](const auto& query, const auto& of) {
    check(query(gpu_.get(), &of, workspace, found.data(), &count));
  };
  if (const auto* matmul = std::get_if<FluidGpuMatmul>(&task)) {
    find(table_.matmul_algorithms, *matmul);
  } else {
    find(table_.convolution_algorithms, std::get<FluidGpuConvolution>(task));
  }
  found.resize(static_cast<size_t>(count));
  return found;
}

GpuPlan Gpu::create_plan(const GpuTask& task, const FluidGpuAlgorithm& algorithm) const {
  FluidGpuPlan* gpu_plan = nullptr;
  const auto made = [&](const auto& create, const auto& of) {
    return create(gpu_.get(), &of, &algorithm, &gpu_plan);
  };
  const auto* matmul = std::get_if<FluidGpuMatmul>(&task);
  const FluidGpuResult result =
      matmul != nullptr ? made(table_.matmul_plan_create, *matmul)
                        : made(table_.convolution_plan_create, std::get<FluidGpuConvolution>(task));
  if (result == fluid_gpu_invalid_usage) return {};
  check(result);
  return {table_, gpu_plan};
}

void Gpu::execute_plan(const GpuStream& stream, const GpuPlan& gpu_plan,
                       const FluidGpuOperands& operands) const {
  check(table_.plan_execute(stream.get(), gpu_plan.get(), &operands));
}

}  // namespace fluid
