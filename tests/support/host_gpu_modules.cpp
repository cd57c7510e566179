#include "tests/support/host_gpu_modules.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <vector>

#include "ir/error.h"
#include "ir/number.h"
#include "tests/support/host_gpu_state.h"
#include "tests/support/ptx_machine.h"

using namespace fluid::testing;

struct FluidGpuKernel {
  HostKernel code;
};

struct FluidGpuModule {
  FluidGpu* gpu = nullptr;
  std::deque<FluidGpuKernel> kernels;
};

namespace fluid::testing {
namespace {

constexpr std::string_view kTextBegins = "host kernels ";

using Kernels = std::vector<HostKernel>;

/// Kernels that run their PTX.
Kernels read_ptx(std::string_view text, FluidGpu* gpu) {
  std::shared_ptr<const PtxMachine> machine;
  try {
    machine = std::make_shared<const PtxMachine>(text);
  } catch (const fluid::InternalError& e) {
    throw HostError{fluid_gpu_failed, e.what()};
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
                         machine->run(name, launch.grid, launch.block, arguments, find, {});
                       }});
  }
  return kernels;
}

/// Returns the kernels of host_gpu_text(), or of PTX.
Kernels kernels_of(std::string_view text, FluidGpu* gpu) {
  if (!text.starts_with(kTextBegins)) return read_ptx(text, gpu);
  const auto number = fluid::parse_number<size_t>(text.substr(kTextBegins.size()));
  if (number && *number < host_gpu_state().modules.size()) return host_gpu_state().modules[*number];
  throw HostError{fluid_gpu_failed, "this is no image of kernels"};
}

}  // namespace

void run_host_kernel(const FluidGpuLaunch& launch) { launch.kernel->code.run(launch); }

FluidGpuResult host_assemble(FluidGpu* gpu, const char* text, size_t length, void** image,
                             size_t* image_bytes) {
  return host_gpu_call("assemble", gpu, [&] {
    kernels_of({text, length}, gpu);
    *image = new char[length];
    std::memcpy(*image, text, length);
    *image_bytes = length;
    ++host_gpu_state().objects;
  });
}

void host_image_release(void* image) {
  delete[] static_cast<char*>(image);
  --host_gpu_state().objects;
}

FluidGpuResult host_module_load(FluidGpu* gpu, const void* image, size_t bytes,
                                FluidGpuModule** module) {
  return host_gpu_call("module_load", gpu, [&] {
    Kernels kernels = kernels_of({static_cast<const char*>(image), bytes}, gpu);
    create(module);
    (*module)->gpu = gpu;
    for (HostKernel& kernel : kernels) (*module)->kernels.push_back({std::move(kernel)});
  });
}

FluidGpuResult host_module_unload(FluidGpuModule* module) {
  return host_gpu_call("module_unload", nullptr, [&] {
    finish_host_work(module->gpu);
    destroy(module);
  });
}

FluidGpuResult host_module_kernel(FluidGpuModule* module, const char* name,
                                  FluidGpuKernel** kernel) {
  return host_gpu_call("module_kernel", module->gpu, [&] {
    const auto found = std::ranges::find_if(
        module->kernels, [&](const FluidGpuKernel& k) { return k.code.name == name; });
    if (found == module->kernels.end()) {
      throw HostError{fluid_gpu_failed, std::string("there is no kernel '") + name + "'"};
    }
    *kernel = &*found;
  });
}

std::string host_gpu_text(std::vector<HostKernel> kernels) {
  host_gpu_state().modules.push_back(std::move(kernels));
  return std::string(kTextBegins) + std::to_string(host_gpu_state().modules.size() - 1);
}

}  // namespace fluid::testing
