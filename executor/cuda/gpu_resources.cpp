#include "executor/cuda/gpu_resources.h"

#include <algorithm>
#include <ranges>
#include <utility>

namespace fluid::cuda {

void GpuResources::add(void* resource, ReleaseResource release_resource) {
  const std::lock_guard lock(mutex_);
  resources_.push_back({resource, release_resource});
}

cudaError_t GpuResources::release_resource(void* resource) {
  ReleaseResource release_resource = nullptr;
  {
    const std::lock_guard lock(mutex_);
    const auto found = std::ranges::find(resources_, resource, &Resource::resource);
    if (found == resources_.end()) return cudaErrorInvalidValue;
    release_resource = found->release_resource;
    resources_.erase(found);
  }
  return release_resource(resource);
}

cudaError_t GpuResources::release_all() {
  const std::lock_guard lock(mutex_);
  cudaError_t first = cudaSuccess;
  const std::vector<Resource> resources = std::exchange(resources_, {});
  for (const auto& [resource, release_resource] : std::views::reverse(resources)) {
    const cudaError_t error = release_resource(resource);
    if (first == cudaSuccess) first = error;
  }
  return first;
}

}  // namespace fluid::cuda
