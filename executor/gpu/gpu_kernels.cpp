#include "executor/gpu/gpu_kernels.h"

#include <fmt/format.h>

#include "codegen/backend.h"
#include "ir/error.h"
#include "ir/stopwatch.h"

namespace fluid {
namespace {

/// Entry name of a kernel in the PTX: a hash of the kernel without its name. Kernels that differ
/// only in name share an entry.
std::string entry_name(kir::Kernel kernel) {
  kernel.name.clear();
  return "k" + ObjectCache::hash_digits(kir::print(kernel));
}

}  // namespace

std::vector<LoadedKernel> GpuKernels::load(std::span<const kir::Kernel> kernels) {
  const Stopwatch watch;
  std::vector<std::string> names;
  NamedKernels missing;
  for (const kir::Kernel& kernel : kernels) {
    names.push_back(entry_name(kernel));
    if (loaded_.contains(names.back())) continue;
    missing.emplace(names.back(), kernel).first->second.name = names.back();
  }
  if (!missing.empty()) load_module(missing);
  std::vector<LoadedKernel> result;
  for (const std::string& name : names) result.push_back(loaded_.at(name));
  report_.compile_ms += watch.ms();
  return result;
}

/// Loads one module with all `kernels`. Reads the module's cubin from the disk cache. If the cubin
/// is not cached, compiles and caches the cubin.
void GpuKernels::load_module(const NamedKernels& kernels) {
  const std::string key = key_of(kernels);
  const auto count = static_cast<int>(kernels.size());
  if (const auto cubin = cache_.find(key)) {
    try {
      add_module(*cubin, kernels);
      report_.cache_hits += count;
      return;
    } catch (const DeviceError&) {
      // Compiles the kernels again, because the cached cubin cannot be loaded. If the GPU itself
      // fails, add_module() below throws.
    }
  }
  std::vector<kir::Kernel> ordered;
  for (const auto& [name, kernel] : kernels) ordered.push_back(kernel);
  const std::string code = gpu_->gpu.assemble(compile_ptx(ordered, arch_).ptx);
  add_module(code, kernels);
  cache_.store(key, code);
  cache_.evict_if_due();
  report_.kernels += count;
}

std::string GpuKernels::key_of(const NamedKernels& kernels) const {
  std::string content =
      fmt::format("{}, {}, assembler {}\n", arch_, emit::code_generator_version(), linker_version_);
  for (const auto& [name, kernel] : kernels) content += name + "\n";
  return "k" + ObjectCache::hash_digits(content);
}

void GpuKernels::add_module(const std::string& code, const NamedKernels& kernels) {
  gpu_->memory_tracker.measure("code of kernels", [&] {
    GpuModule module = gpu_->gpu.load_module(code);
    std::map<std::string, LoadedKernel> entries;
    for (const auto& [name, kernel] : kernels) {
      entries.emplace(
          name, LoadedKernel{launch_parameters(kernel), gpu_->gpu.kernel(module, name.c_str())});
    }
    modules_.push_back(std::move(module));
    loaded_.merge(entries);
  });
}

}  // namespace fluid
