#pragma once

#include <cuda_runtime_api.h>

#include <mutex>
#include <vector>

namespace fluid::cuda {

/// Registry of the resources of an open GPU, each with its release function. Thread-safe.
class GpuResources {
 public:
  using ReleaseResource = cudaError_t (*)(void* resource);

  void add(void* resource, ReleaseResource release_resource);
  /// Releases `resource`. Returns cudaErrorInvalidValue when `resource` is not registered.
  cudaError_t release_resource(void* resource);
  /// Releases all resources in reverse order of registration, because a CUDA graph refers to
  /// resources that were registered before the graph. Returns the first error.
  cudaError_t release_all();

 private:
  struct Resource {
    void* resource;
    ReleaseResource release_resource;
  };
  std::mutex mutex_;
  std::vector<Resource> resources_;  ///< in order of registration
};

}  // namespace fluid::cuda
