#include "executor/places/place_machine.h"

#include <fmt/format.h>
#include <unistd.h>

#include "codegen/compiler.h"
#include "executor/cpu/cpu_target.h"
#include "executor/device/bytes_text.h"
#include "executor/gpu/gpu_target.h"
#include "executor/gpu_driver/backend.h"
#include "executor/gpu_libraries/algorithm_record.h"
#include "executor/host/machine_file.h"
#include "executor/host/parallel.h"

namespace fluid {
namespace {

FluidGpuDescription usable(Place place) {
  require_supported_gpu(gpu_backend(), place.index);
  return describe_gpu(gpu_backend(), place.index);
}

}  // namespace

std::unique_ptr<Target> target_of(Place place, int threads, const GpuLibraryOptions& libraries,
                                  const std::string& cache_dir, bool tune) {
  if (place.kind == Place::Kind::cuda) {
    const FluidGpuDescription gpu = usable(place);
    const AlgorithmRecord record({.machine = gpu_fingerprint(gpu, gpu_backend().versions),
                                  .workspace = libraries.max_workspace()},
                                 {cache_dir, CompilerOptions().cache_limit});
    return std::make_unique<GpuTarget>(
        gpu, libraries, [record](const GpuTask& task) { return record.rejection_reason(task); });
  }
  TargetDescription cpu = machine_description(thread_count(threads), cache_dir);
  std::unique_ptr<KernelTuner> tuner;
  if (tune) {
    tuner = std::make_unique<KernelTuner>(
        cpu, KernelTuner::Settings{.measures = true, .cache_dir = cache_dir});
  }
  return std::make_unique<CpuTarget>(std::move(cpu), std::move(tuner));
}

std::string describe_machine(Place place, int threads, const std::string& cache_dir) {
  if (place.kind == Place::Kind::cpu) {
    return to_json(machine_description(thread_count(threads), cache_dir));
  }
  const FluidGpuDescription gpu = usable(place);
  const FluidGpuVersions& v = gpu_backend().versions;
  return fmt::format("{} {}.{} {} {} {} {} {} {} {}", gpu.name, gpu.major, gpu.minor, gpu.clock_khz,
                     gpu.memory, v.driver, v.runtime, v.blas, v.dnn, v.linker);
}

MemoryLimit memory_limit_of(Place place) {
  const auto text = [](int64_t bytes) { return bytes_text(static_cast<double>(bytes)); };
  if (place.kind == Place::Kind::cuda) {
    const FluidGpuDescription gpu = usable(place);
    return {gpu.memory, fmt::format("{} has {}, of which {} are free", place.str(),
                                    text(gpu.memory), text(gpu.free_memory))};
  }
  const int64_t bytes = int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE);
  return {bytes, "this machine has " + text(bytes)};
}

}  // namespace fluid
