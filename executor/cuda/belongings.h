#pragma once

#include <cuda_runtime_api.h>

#include <mutex>
#include <vector>

namespace fluid::cuda {

/// The resources allocated on a GPU, each with the function that releases it. Thread-safe.
class GpuResources {
 public:
  using GiveBack = cudaError_t (*)(void* what);

  void add(void* what, GiveBack give_back);
  /// Releases `what`. cudaErrorInvalidValue when it is not registered.
  cudaError_t give_back(void* what);
  /// Releases all resources, latest first, because graphs hold the resources that they were built
  /// from. Returns the first error.
  cudaError_t release_all();

 private:
  struct Taken {
    void* what;
    GiveBack give_back;
  };
  std::mutex mutex_;
  std::vector<Taken> taken_;  ///< in order of registration
};

}  // namespace fluid::cuda
