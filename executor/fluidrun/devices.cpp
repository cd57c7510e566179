#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>

#include "executor/cpu/cpu_target.h"
#include "executor/device/bytes_text.h"
#include "executor/fluidrun/command.h"
#include "executor/fluidrun/flags.h"
#include "executor/fluidrun/help.h"
#include "executor/fluidrun/inputs.h"
#include "executor/gpu_driver/backend.h"
#include "executor/gpu_driver/gpu_description.h"
#include "executor/host/host_cpu.h"
#include "executor/host/machine_file.h"
#include "ir/error.h"

namespace fluid {
namespace {

using Json = nlohmann::ordered_json;

struct DevicesFlags {
  bool json = false, measure = false;
  std::string cache_dir;  ///< directory of the kernel cache; empty: no cache
};

struct Gpu {
  FluidGpuDescription description{};
  std::string problem;  ///< reason why the GPU cannot run programs; "" if there is none
  bool is_described = false;
};

struct Machine {
  TargetDescription target;
  HostCpu cpu = host_cpu();
  const GpuBackend& backend = gpu_backend();
  std::vector<Gpu> gpus;
};

Gpu query_gpu(const GpuBackend& backend, int device) {
  try {
    const FluidGpuDescription gpu = describe_gpu(backend, device);
    return {gpu, unsupported_reason(gpu), true};
  } catch (const DeviceError& e) {
    return {.problem = e.what()};
  }
}

Machine query_machine(const std::string& cache_dir) {
  Machine machine{.target = machine_description(threads_of({}), cache_dir)};
  for (int device = 0; device < machine.backend.devices; ++device) {
    machine.gpus.push_back(query_gpu(machine.backend, device));
  }
  return machine;
}

/// Formats a version number of cuBLAS, cuDNN or NCCL: 91900 becomes "9.19.0".
std::string library_version(int64_t version) {
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

/// Formats the version of the NVIDIA driver and the CUDA version that the driver supports:
/// "580.95.05 for CUDA 13.0". Omits the driver version if the file in /sys does not exist.
std::string driver_version(int64_t cuda) {
  if (cuda == 0) return "none";
  std::ifstream module("/sys/module/nvidia/version");
  std::string version;
  module >> version;
  return fmt::format("{}{}for CUDA {}", version, version.empty() ? "" : " ", cuda_version(cuda));
}

std::vector<std::pair<std::string, std::string>> named_versions(const FluidGpuVersions& versions) {
  return {{"driver", driver_version(versions.driver)},
          {"CUDA", cuda_version(versions.runtime)},
          {"cuBLAS", library_version(versions.blas)},
          {"cuDNN", library_version(versions.dnn)},
          {"NCCL", library_version(versions.collectives)},
          {"nvJitLink", cuda_version(versions.linker)}};
}

/// Prints the rates on one core and on all cores: "f32_avx2 40 and 79, f32_sse 36 and 73".
void print_rates(const char* unit, const std::map<std::string, CoreRates>& rates) {
  std::vector<std::string> texts;
  for (const auto& [name, rate] : rates) {
    texts.push_back(fmt::format("{} {:g} and {:g}", name, rate.one, rate.all));
  }
  fmt::print("        {}: {}\n", unit, fmt::join(texts, ", "));
}

void print_cpu(const TargetDescription& target, const HostCpu& cpu) {
  const std::string cores = cpu.cores > 0 ? fmt::format(", {} cores", cpu.cores) : "";
  fmt::print("cpu     {}{}: {} threads, {}-bit vectors\n", cpu.name.empty() ? "CPU" : cpu.name,
             cores, target.threads, target.vector_bits);
  if (!cpu.features.empty()) fmt::print("        {}\n", fmt::join(cpu.features, " "));
  fmt::print("        {} on one core and on {}:\n",
             target.measured ? "rates, measured," : "rates, assumed,", target.cores);
  print_rates("Gop/s", target.gops);
  print_rates("GB/s of a copy", target.gbs);
}

void print_gpu(size_t device, const Gpu& gpu) {
  const FluidGpuDescription& d = gpu.description;
  if (gpu.is_described) {
    fmt::print("cuda:{}  {}, compute capability {}.{}, {} multiprocessors: {} of {} are free\n",
               device, d.name, d.major, d.minor, d.multiprocessors,
               bytes_text(static_cast<double>(d.free_memory)),
               bytes_text(static_cast<double>(d.memory)));
  }
  if (!gpu.problem.empty()) fmt::print("{}{}\n", gpu.is_described ? "        " : "", gpu.problem);
}

void print_gpus(const Machine& machine) {
  if (machine.gpus.empty()) {
    fmt::print("cuda    none: {}\n", machine.backend.unavailable_reason);
    return;
  }
  for (size_t i = 0; i < machine.gpus.size(); ++i) print_gpu(i, machine.gpus[i]);
  std::string versions;
  for (const auto& [name, version] : named_versions(machine.backend.versions)) {
    versions += fmt::format("{}{} {}", versions.empty() ? "" : ", ", name, version);
  }
  fmt::print("        {}\n", versions);
}

Json json_of(const Gpu& gpu) {
  Json json = gpu.is_described ? Json::parse(to_json(gpu.description)) : Json::object();
  if (!gpu.problem.empty()) json[kGpuProblem] = gpu.problem;
  return json;
}

Json json_of(const Machine& machine) {
  Json json = Json::parse(to_json(machine.target));
  Json& machine_json = json[kMachineEntry];
  machine_json = {{"cpu", machine.cpu.name},
                  {"cores", machine.cpu.cores},
                  {"features", machine.cpu.features},
                  {"gpus", Json::array()}};
  for (const Gpu& gpu : machine.gpus) machine_json["gpus"].push_back(json_of(gpu));
  if (machine.gpus.empty()) machine_json["no_gpus"] = machine.backend.unavailable_reason;
  if (machine.backend.table == nullptr) return json;
  for (const auto& [name, version] : named_versions(machine.backend.versions)) {
    machine_json["versions"][name] = version;
  }
  return json;
}

}  // namespace

void add_devices(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("devices", "List the CPU and the GPUs of this machine");
  command->footer(
      "Examples:\n"
      "  fluidrun devices --json > target.json\n\n"
      "Notes:\n"
      "  The CPU is measured once for all commands; the result lies in the cache directory. "
      "FLUID_MACHINE names another file, or, if empty, stands for assumed rates.\n"
      "  GPUs need libfluid_cuda.so: beside fluidrun, in lib, or at the path in "
      "FLUID_GPU_LIBRARY.\n"
      "  CUDA_VISIBLE_DEVICES selects the GPUs.");
  begin_group(*command, kDeviceGroup);
  const auto flags = std::make_shared<DevicesFlags>();
  command->add_flag("--json", flags->json, "print JSON, as `plan --target` reads it");
  command->add_flag("--measure", flags->measure,
                    "measure the CPU again, for example because other programs ran the first time");
  add_cache_flag(*command, flags->cache_dir);
  command->callback([&action, flags] {
    action = [flags] {
      if (flags->measure) measure_machine_again(flags->cache_dir);
      const Machine machine = query_machine(flags->cache_dir);
      if (flags->json) {
        fmt::print("{}\n", json_of(machine).dump(2));
      } else {
        print_cpu(machine.target, machine.cpu);
        print_gpus(machine);
      }
      return 0;
    };
  });
}

}  // namespace fluid
