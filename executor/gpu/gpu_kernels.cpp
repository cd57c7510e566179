#include "executor/gpu/gpu_kernels.h"

#include "ir/stopwatch.h"

namespace fluid {

std::shared_ptr<const LoadedKernels> GpuKernels::load(const KernelMemo::Passes& passes) {
  std::shared_ptr<const LoadedKernels>& known = loaded_[&passes];
  if (known) return known;
  const Stopwatch watch;
  auto loaded = std::make_shared<LoadedKernels>();
  loaded->program = compile_(passes, arch_);
  loaded->module = gpu_->gpu.module(loaded->program.ptx);
  for (const GpuLaunch& launch : loaded->program.launches) {
    loaded->entries.push_back(gpu_->gpu.kernel(loaded->module, launch.entry.c_str()));
  }
  milliseconds_ += watch.ms();
  return known = std::move(loaded);
}

}  // namespace fluid
