#include "tests/support/gpu_runner.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "executor/gpu/gpu_kernels.h"
#include "executor/gpu/gpu_target.h"
#include "executor/gpu_driver/backend.h"

namespace fluid::testing {
namespace {

std::string architecture(const FluidGpuDescription& gpu) { return GpuTarget(gpu).arch(); }

}  // namespace

struct GpuRunner::Impl {
  Impl()
      : gpu(std::make_shared<const OpenGpu>(require_supported_gpu(gpu_backend(), 0), 0)),
        kernels(gpu, architecture(describe_gpu(gpu_backend(), 0)), gpu_backend().versions.linker,
                ObjectCache("", 0)) {}

  std::shared_ptr<const OpenGpu> gpu;
  GpuKernels kernels;
};

GpuRunner::GpuRunner() : impl_(std::make_unique<Impl>()) {}
GpuRunner::~GpuRunner() = default;

GpuRunner& GpuRunner::first_gpu() {
  static GpuRunner runner;
  return runner;
}

void GpuRunner::run(std::span<const kir::Kernel> passes, std::span<void* const> buffers,
                    int64_t batch) {
  const Gpu& gpu = impl_->gpu->gpu;
  const GpuStream& stream = impl_->gpu->stream;
  std::vector<int64_t> sizes;  // bytes
  std::vector<GpuMemory> here, there;
  std::vector<std::byte*> addresses;
  for (size_t i = 0; i < buffers.size(); ++i) {
    const kir::Buffer& b = passes.front().buffers.at(i);
    sizes.push_back(b.elements.at(batch) * size_of(b.dtype));
    const int64_t readable = (sizes[i] / kGpuAlignment + 1) * kGpuAlignment;
    here.push_back(gpu.allocate_host(readable));
    there.push_back(gpu.allocate(readable));
    addresses.push_back(there[i].data());
    std::memcpy(here[i].data(), buffers[i], static_cast<size_t>(sizes[i]));
    gpu.copy(stream, there[i].data(), here[i].data(), sizes[i]);
  }
  std::vector<void*> arguments;
  for (std::byte*& address : addresses) arguments.push_back(&address);
  arguments.push_back(&batch);
  for (const LoadedKernel& pass : impl_->kernels.load(passes)) {
    const int64_t groups = pass.launch.grid_size(batch, gpu.multiprocessors());
    if (groups > 0) gpu.launch(stream, pass.entry, groups, pass.launch.threads, arguments);
  }
  for (size_t i = 0; i < buffers.size(); ++i) {
    gpu.copy(stream, here[i].data(), there[i].data(), sizes[i]);
  }
  gpu.synchronize(stream);
  for (size_t i = 0; i < buffers.size(); ++i) {
    std::memcpy(buffers[i], here[i].data(), static_cast<size_t>(sizes[i]));
  }
}

}  // namespace fluid::testing
