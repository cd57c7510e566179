#include "executor/gpu/gpu_kernels.h"

#include <fmt/format.h>

#include "codegen/backend.h"
#include "ir/error.h"
#include "ir/stopwatch.h"

namespace fluid {
namespace {

/// The entry's name is a hash of the kernel without its name, so equal kernels share code.
std::string entry_name(kir::Kernel pass) {
  pass.name.clear();
  return "k" + ObjectCache::key_of(kir::print(pass));
}

}  // namespace

std::vector<LoadedPass> GpuKernels::load(std::span<const kir::Kernel> passes) {
  const Stopwatch watch;
  std::vector<std::string> names;
  Named missing;
  for (const kir::Kernel& pass : passes) {
    names.push_back(entry_name(pass));
    if (loaded_.contains(names.back())) continue;
    missing.emplace(names.back(), pass).first->second.name = names.back();
  }
  if (!missing.empty()) load_module(missing);
  std::vector<LoadedPass> result;
  for (const std::string& name : names) result.push_back(loaded_.at(name));
  report_.compile_ms += watch.ms();
  return result;
}

/// Loads the module of the kernels `passes` from the cache on disk, or compiles and stores it.
void GpuKernels::load_module(const Named& passes) {
  const std::string key = key_of(passes);
  const auto count = static_cast<int>(passes.size());
  if (const auto kept = cache_.find(key)) {
    try {
      add_module(*kept, passes);
      report_.from_cache += count;
      return;
    } catch (const DeviceError&) {
      // The cached module is unusable: compile again. A failing GPU will report its error there.
    }
  }
  std::vector<kir::Kernel> kernels;
  for (const auto& [name, pass] : passes) kernels.push_back(pass);
  const std::string code = gpu_->gpu.assemble(compile_ptx(kernels, arch_).ptx);
  add_module(code, passes);
  cache_.put(key, code);
  cache_.evict();
  report_.kernels += count;
}

std::string GpuKernels::key_of(const Named& passes) const {
  std::string content =
      fmt::format("{}, {}, assembler {}\n", arch_, emit::code_version(), assembler_);
  for (const auto& [name, pass] : passes) content += name + "\n";
  return "k" + ObjectCache::key_of(content);
}

void GpuKernels::add_module(const std::string& code, const Named& passes) {
  gpu_->ledger.measured("code of kernels", [&] {
    GpuModule module = gpu_->gpu.module(code);
    std::map<std::string, LoadedPass> entries;
    for (const auto& [name, pass] : passes) {
      entries.emplace(name, LoadedPass{launch_of(pass), gpu_->gpu.kernel(module, name.c_str())});
    }
    modules_.push_back(std::move(module));
    loaded_.merge(entries);
  });
}

}  // namespace fluid
