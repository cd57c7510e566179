#pragma once

#include <cuda_runtime_api.h>

#include <mutex>
#include <unordered_map>

namespace fluid::cuda {

/// What was taken from a GPU, each with the function that gives it back.
class Belongings {
 public:
  using GiveBack = cudaError_t (*)(void* what);

  void add(void* what, GiveBack give_back);
  /// cudaErrorInvalidValue for what is not here.
  cudaError_t give_back(void* what);
  /// All that is left; the first error.
  cudaError_t give_all_back();

 private:
  std::mutex mutex_;
  std::unordered_map<void*, GiveBack> taken_;
};

}  // namespace fluid::cuda
