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
#include "ir/error.h"

namespace fluid {
namespace {

using Json = nlohmann::ordered_json;

struct Gpu {
  FluidGpuDescription description{};
  std::string problem;  ///< why programs cannot run on it; "" when they can
  bool answers = false;
};

struct Machine {
  TargetDescription target = describe_host(threads_of({}));
  HostCpu cpu = host_cpu();
  const GpuBackend& backend = gpu_backend();
  std::vector<Gpu> gpus;
};

Gpu gpu_at(const GpuBackend& backend, int device) {
  try {
    const FluidGpuDescription gpu = describe_gpu(backend, device);
    return {gpu, unsupported(gpu), true};
  } catch (const DeviceError& e) {
    return {.problem = e.what()};
  }
}

Machine this_machine() {
  Machine machine;
  for (int device = 0; device < machine.backend.devices; ++device) {
    machine.gpus.push_back(gpu_at(machine.backend, device));
  }
  return machine;
}

/// "9.19.0" for 91900, the encoding of cuBLAS, cuDNN and NCCL.
std::string library_version(int64_t version) {
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

/// "580.95.05 for CUDA 13.0", or "for CUDA 13.0" when Linux does not tell the driver's version.
std::string driver_version(int64_t cuda) {
  if (cuda == 0) return "none";
  std::ifstream module("/sys/module/nvidia/version");
  std::string version;
  module >> version;
  return fmt::format("{}{}for CUDA {}", version, version.empty() ? "" : " ", cuda_version(cuda));
}

std::vector<std::pair<std::string, std::string>> named(const FluidGpuVersions& versions) {
  return {{"driver", driver_version(versions.driver)},
          {"CUDA", cuda_version(versions.runtime)},
          {"cuBLAS", library_version(versions.blas)},
          {"cuDNN", library_version(versions.dnn)},
          {"NCCL", library_version(versions.collectives)},
          {"nvJitLink", cuda_version(versions.linker)}};
}

void print_cpu(const TargetDescription& target, const HostCpu& cpu) {
  const std::string cores = cpu.cores > 0 ? fmt::format(", {} cores", cpu.cores) : "";
  fmt::print(
      "cpu     {}{}: {} threads, {}-bit vectors{}, {:.0f} GFLOP/s and {:.0f} GB/s a thread\n",
      cpu.name.empty() ? "CPU" : cpu.name, cores, target.threads, target.vector_bits,
      target.bf16 ? ", bf16" : "", target.gflops_f32, target.memory_gbs);
  if (!cpu.features.empty()) fmt::print("        {}\n", fmt::join(cpu.features, " "));
}

void print_gpu(size_t device, const Gpu& gpu) {
  const FluidGpuDescription& d = gpu.description;
  if (gpu.answers) {
    fmt::print("cuda:{}  {}, compute capability {}.{}, {} multiprocessors: {} of {} are free\n",
               device, d.name, d.major, d.minor, d.multiprocessors,
               bytes_text(static_cast<double>(d.free_memory)),
               bytes_text(static_cast<double>(d.memory)));
  }
  if (!gpu.problem.empty()) fmt::print("{}{}\n", gpu.answers ? "        " : "", gpu.problem);
}

void print_gpus(const Machine& machine) {
  if (machine.gpus.empty()) {
    fmt::print("cuda    none: {}\n", machine.backend.absence);
    return;
  }
  for (size_t i = 0; i < machine.gpus.size(); ++i) print_gpu(i, machine.gpus[i]);
  std::string versions;
  for (const auto& [name, version] : named(machine.backend.versions)) {
    versions += fmt::format("{}{} {}", versions.empty() ? "" : ", ", name, version);
  }
  fmt::print("        {}\n", versions);
}

Json json_of(const Gpu& gpu) {
  Json json = gpu.answers ? Json::parse(to_json(gpu.description)) : Json::object();
  if (!gpu.problem.empty()) json[kGpuProblem] = gpu.problem;
  return json;
}

Json json_of(const Machine& machine) {
  Json json = Json::parse(to_json(machine.target));
  Json& rest = json[kMachineEntry];
  rest = {{"cpu", machine.cpu.name},
          {"cores", machine.cpu.cores},
          {"features", machine.cpu.features},
          {"gpus", Json::array()}};
  for (const Gpu& gpu : machine.gpus) rest["gpus"].push_back(json_of(gpu));
  if (machine.gpus.empty()) rest["no_gpus"] = machine.backend.absence;
  if (machine.backend.table == nullptr) return json;
  for (const auto& [name, version] : named(machine.backend.versions)) {
    rest["versions"][name] = version;
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
      "  libfluid_cuda.so drives the GPUs; it lies beside fluidrun, or FLUID_GPU_LIBRARY names "
      "it.\n"
      "  CUDA_VISIBLE_DEVICES selects the GPUs.");
  begin_group(*command, kDeviceGroup);
  const auto json = std::make_shared<bool>(false);
  command->add_flag("--json", *json, "print JSON, as `plan --target` reads it");
  command->callback([&action, json] {
    action = [json] {
      const Machine machine = this_machine();
      if (*json) {
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
