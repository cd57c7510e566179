#pragma once

#include <cuda_runtime_api.h>

#include <mutex>
#include <vector>

namespace fluid::cuda {

/// What was taken from a GPU, each with the function that gives it back.
class Belongings {
 public:
  using GiveBack = cudaError_t (*)(void* what);

  void add(void* what, GiveBack give_back);
  /// cudaErrorInvalidValue for what is not here.
  cudaError_t give_back(void* what);
  /// All that is left, what was taken last first, as graphs hold what they were made of; the first
  /// error.
  cudaError_t give_all_back();

 private:
  struct Taken {
    void* what;
    GiveBack give_back;
  };
  std::mutex mutex_;
  std::vector<Taken> taken_;  ///< in order
};

}  // namespace fluid::cuda
