#include "executor/cuda/gpu_resources.h"

#include <algorithm>
#include <ranges>
#include <utility>

namespace fluid::cuda {

void GpuResources::add(void* what, ReleaseResource release_resource) {
  const std::lock_guard lock(mutex_);
  taken_.push_back({what, release_resource});
}

cudaError_t GpuResources::release_resource(void* what) {
  ReleaseResource release_resource = nullptr;
  {
    const std::lock_guard lock(mutex_);
    const auto found = std::ranges::find(taken_, what, &Taken::what);
    if (found == taken_.end()) return cudaErrorInvalidValue;
    release_resource = found->release_resource;
    taken_.erase(found);
  }
  return release_resource(what);
}

cudaError_t GpuResources::release_all() {
  const std::lock_guard lock(mutex_);
  cudaError_t first = cudaSuccess;
  const std::vector<Taken> taken = std::exchange(taken_, {});
  for (const auto& [what, release_resource] : std::views::reverse(taken)) {
    const cudaError_t error = release_resource(what);
    if (first == cudaSuccess) first = error;
  }
  return first;
}

}  // namespace fluid::cuda
