#include "tests/support/emulated_gpu.h"

#include <cstring>

#include "tests/support/gpu_emulator.h"
#include "tests/support/host_gpu.h"

namespace fluid::testing {
namespace {

GpuEmulator& emulator() {
  static GpuEmulator emulator;
  return emulator;
}

int64_t argument(const FluidGpuLaunch& launch, int32_t i) {
  int64_t value = 0;
  std::memcpy(&value, launch.arguments[i], sizeof value);
  return value;
}

/// One pass; its arguments are the addresses of buffers, then the batch.
void run(const kir::Kernel& pass, const FluidGpuLaunch& launch) {
  std::vector<void*> buffers;
  for (int32_t i = 0; i + 1 < launch.argument_count; ++i) {
    buffers.push_back(reinterpret_cast<void*>(argument(launch, i)));
  }
  emulator().run({&pass, 1}, buffers, argument(launch, launch.argument_count - 1), launch.groups);
}

}  // namespace

GpuProgram compile_emulated(std::span<const kir::Kernel> passes, const std::string&) {
  GpuProgram program;
  std::vector<HostKernel> kernels;
  for (const kir::Kernel& pass : passes) {
    kernels.push_back({pass.name, [pass](const FluidGpuLaunch& launch) { run(pass, launch); }});
    program.launches.push_back({pass.name, threads_of(pass.team), 0, pass.blocks, pass.team});
  }
  program.buffers = passes.front().buffers;
  program.most_samples = most_samples(program.buffers);
  program.ptx = host_gpu_text(std::move(kernels));
  return program;
}

}  // namespace fluid::testing
