#include "codegen/gpu.h"

#include <algorithm>

#include "codegen/backend.h"
#include "codegen/emit_threads.h"
#include "ir/error.h"

namespace fluid {
namespace {

constexpr int64_t kMinThreads = 128;  // fewest threads of a CUDA block; small teams share a block
// Leaves room for a block's last partial vector.
constexpr int64_t kIndexLimit = INT32_MAX - 0xffff;

}  // namespace

int64_t threads_of(int64_t team) { return team <= emit::kWarp ? kMinThreads : team; }

int64_t max_batch(std::span<const kir::Buffer> buffers) {
  int64_t most = kIndexLimit;
  for (const kir::Buffer& b : buffers) {
    if (b.elements.batch && b.elements.size > 0)
      most = std::min(most, kIndexLimit / b.elements.size);
  }
  return most;
}

int64_t GpuLaunch::groups(int64_t batch) const {
  const int64_t teams = threads / team;
  return (kir::evaluate(blocks, batch) + teams - 1) / teams;
}

std::vector<kir::Kernel> passes_of(kir::Kernel kernel) {
  if (kernel.finish.empty()) return {std::move(kernel)};
  kir::Kernel last = kernel;
  last.name += "_finish";
  last.blocks = Expr::index(1);
  last.block_var = -1;
  last.body = std::move(last.finish);
  last.finish.clear();
  last.flops_per_block = 0;
  kernel.finish.clear();
  return {std::move(kernel), std::move(last)};
}

GpuLaunch launch_of(const kir::Kernel& pass) {
  const int64_t shared = pass.team > emit::kWarp ? emit::kSharedWords * 8 : 0;
  return {pass.name, threads_of(pass.team), shared, pass.blocks, pass.team};
}

GpuProgram compile_ptx(std::span<const kir::Kernel> passes, const std::string& arch) {
  GpuProgram program;
  std::vector<emit::NamedKernel> named;
  for (const kir::Kernel& k : passes) {
    named.push_back({&k, k.name});
    program.launches.push_back(launch_of(k));
  }
  if (!passes.empty()) program.buffers = passes.front().buffers;
  program.max_batch = max_batch(program.buffers);
  program.ptx =
      emit::Backend(emit::gpu_machine(arch)).compile(named, emit::Backend::Form::assembly);
  return program;
}

}  // namespace fluid
