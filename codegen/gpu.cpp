#include "codegen/gpu.h"

#include <algorithm>

#include "codegen/backend.h"
#include "codegen/emit_threads.h"
#include "ir/error.h"

namespace fluid {
namespace {

// Minimum number of threads of a CUDA block. A block can hold several small thread groups.
constexpr int64_t kMinThreads = 128;
// Maximum index of an element on a GPU. Less than INT32_MAX, because the last vector of a loop may
// extend past the end of a buffer.
constexpr int64_t kIndexLimit = INT32_MAX - 0xffff;
// Maximum number of threads of a grid per multiprocessor: twice what sm_80 to sm_100 run at a time.
constexpr int64_t kMaxThreadsPerMultiprocessor = 2 * 2048;

int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

}  // namespace

int64_t threads_per_block(int64_t thread_group_size) {
  return thread_group_size <= emit::kWarp ? kMinThreads : thread_group_size;
}

int64_t max_batch(std::span<const kir::Buffer> buffers) {
  int64_t most = kIndexLimit;
  for (const kir::Buffer& b : buffers) {
    if (b.elements.batch && b.elements.size > 0)
      most = std::min(most, kIndexLimit / b.elements.size);
  }
  return most;
}

int64_t GpuLaunch::grid_size(int64_t batch, int64_t multiprocessors) const {
  const int64_t thread_groups = threads / thread_group_size;
  const int64_t grid = divide_up(kir::evaluate(blocks, batch), thread_groups);
  const int64_t most =
      std::max<int64_t>(kMaxThreadsPerMultiprocessor * multiprocessors / threads, 1);
  return grid == 0 ? 0 : divide_up(grid, divide_up(grid, most));
}

std::vector<kir::Kernel> split_off_finish(kir::Kernel kernel) {
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

GpuLaunch launch_parameters(const kir::Kernel& kernel) {
  const int64_t shared = kernel.thread_group_size > emit::kWarp ? emit::kSharedWords * 8 : 0;
  return {kernel.name, threads_per_block(kernel.thread_group_size), shared, kernel.blocks,
          kernel.thread_group_size};
}

GpuProgram compile_ptx(std::span<const kir::Kernel> kernels, const std::string& arch) {
  GpuProgram program;
  std::vector<emit::NamedKernel> named;
  for (const kir::Kernel& k : kernels) {
    named.push_back({&k, k.name});
    program.launches.push_back(launch_parameters(k));
  }
  if (!kernels.empty()) program.buffers = kernels.front().buffers;
  program.max_batch = max_batch(program.buffers);
  program.ptx = emit::Backend(emit::gpu_target_spec(arch))
                    .compile(named, emit::Backend::OutputKind::assembly);
  return program;
}

}  // namespace fluid
