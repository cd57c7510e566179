#include <elf.h>

#include <cstring>

#include "executor/cuda/functions.h"
#include "executor/cuda/objects.h"

namespace fluid::cuda {
namespace {

/// Whether the section headers and program headers of an ELF image are within its size. CUDA's load
/// functions take no size, and would read past the end of a truncated image.
bool is_complete_image(const void* image, size_t bytes) {
  Elf64_Ehdr header;
  if (bytes < sizeof header) return false;
  std::memcpy(&header, image, sizeof header);
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return false;
  const size_t sections = size_t{header.e_shnum} * header.e_shentsize;
  const size_t segments = size_t{header.e_phnum} * header.e_phentsize;
  return header.e_shoff <= bytes && sections <= bytes - header.e_shoff && header.e_phoff <= bytes &&
         segments <= bytes - header.e_phoff;
}

}  // namespace

FluidGpuResult module_load(FluidGpu* gpu, const void* image, size_t bytes,
                           FluidGpuModule** module) {
  if (!is_complete_image(image, bytes)) {
    return set_error(fluid_gpu_invalid_usage,
                     "loading a module: the image is truncated or invalid");
  }
  return make_object<cudaLibraryUnload>(
      gpu, module, "loading a module", [&](cudaLibrary_t* handle) {
        return cudaLibraryLoadData(handle, image, nullptr, nullptr, 0, nullptr, nullptr, 0);
      });
}

FluidGpuResult module_unload(FluidGpuModule* module) {
  FluidGpu* gpu = module->gpu;
  return run_outside_capture(gpu, "unloading a module", [&] {
    // Waits for queued work, because kernels of the module may still be running.
    const cudaError_t waited = wait_for_streams(gpu);
    const cudaError_t unloaded = gpu->gpu_resources.release_resource(module);
    return waited != cudaSuccess ? waited : unloaded;
  });
}

FluidGpuResult module_kernel(FluidGpuModule* module, const char* name, FluidGpuKernel** kernel) {
  return run_on(module->gpu, "finding a kernel", [&] {
    cudaKernel_t found = nullptr;
    const cudaError_t error = cudaLibraryGetKernel(&found, module->handle, name);
    if (error != cudaSuccess) return error;
    *kernel = reinterpret_cast<FluidGpuKernel*>(found);
    // Load the kernel now. A load at the first launch would fail during stream capture.
    cudaFuncAttributes loaded;
    return cudaFuncGetAttributes(&loaded, found);
  });
}

}  // namespace fluid::cuda
