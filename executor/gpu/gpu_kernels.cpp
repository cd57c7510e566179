#include "executor/gpu/gpu_kernels.h"

#include <fmt/format.h>

#include "codegen/backend.h"
#include "ir/stopwatch.h"

namespace fluid {
namespace {

/// Passes that differ in nothing but their name share code.
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

void GpuKernels::load_module(const Named& passes) {
  const std::string code = machine_code(passes);
  gpu_->ledger.measured("code of kernels", [&] {
    modules_.push_back(gpu_->gpu.module(code));
    for (const auto& [name, pass] : passes) {
      FluidGpuKernel* entry = gpu_->gpu.kernel(modules_.back(), name.c_str());
      loaded_.emplace(name, LoadedPass{launch_of(pass), entry});
    }
  });
}

/// From the disk, where it was made before for such a GPU by such tools.
std::string GpuKernels::machine_code(const Named& passes) {
  std::string content =
      fmt::format("{}, {}, assembler {}\n", arch_, emit::code_version(), assembler_);
  std::vector<kir::Kernel> kernels;
  for (const auto& [name, pass] : passes) {
    content += name + "\n";
    kernels.push_back(pass);
  }
  const std::string key = "k" + ObjectCache::key_of(content);
  const auto count = static_cast<int>(passes.size());
  if (const auto kept = cache_.find(key)) {
    report_.from_cache += count;
    return *kept;
  }
  std::string code = gpu_->gpu.assemble(compile_ptx(kernels, arch_).ptx);
  cache_.put(key, code);
  cache_.evict();
  report_.kernels += count;
  return code;
}

}  // namespace fluid
