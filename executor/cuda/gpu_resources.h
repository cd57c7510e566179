#pragma once

#include <cuda_runtime_api.h>

#include <mutex>
#include <vector>

namespace fluid::cuda {

/// The resources allocated on a GPU, each with the function that releases it. Thread-safe.
class GpuResources {
 public:
  using ReleaseResource = cudaError_t (*)(void* what);

  void add(void* what, ReleaseResource release_resource);
  /// Releases `what`. cudaErrorInvalidValue when it is not registered.
  cudaError_t release_resource(void* what);
  /// Releases all resources, latest first, because graphs hold the resources that they were built
  /// from. Returns the first error.
  cudaError_t release_all();

 private:
  struct Taken {
    void* what;
    ReleaseResource release_resource;
  };
  std::mutex mutex_;
  std::vector<Taken> taken_;  ///< in order of registration
};

}  // namespace fluid::cuda
