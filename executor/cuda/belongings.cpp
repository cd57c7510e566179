#include "executor/cuda/belongings.h"

#include <utility>

namespace fluid::cuda {

void Belongings::add(void* what, GiveBack give_back) {
  const std::lock_guard lock(mutex_);
  taken_.emplace(what, give_back);
}

cudaError_t Belongings::give_back(void* what) {
  GiveBack give_back = nullptr;
  {
    const std::lock_guard lock(mutex_);
    const auto found = taken_.find(what);
    if (found == taken_.end()) return cudaErrorInvalidValue;
    give_back = found->second;
    taken_.erase(found);
  }
  return give_back(what);
}

cudaError_t Belongings::give_all_back() {
  const std::lock_guard lock(mutex_);
  cudaError_t first = cudaSuccess;
  for (const auto& [what, give_back] : std::exchange(taken_, {})) {
    const cudaError_t error = give_back(what);
    if (first == cudaSuccess) first = error;
  }
  return first;
}

}  // namespace fluid::cuda
