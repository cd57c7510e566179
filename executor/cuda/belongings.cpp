#include "executor/cuda/belongings.h"

#include <algorithm>
#include <ranges>
#include <utility>

namespace fluid::cuda {

void GpuResources::add(void* what, GiveBack give_back) {
  const std::lock_guard lock(mutex_);
  taken_.push_back({what, give_back});
}

cudaError_t GpuResources::give_back(void* what) {
  GiveBack give_back = nullptr;
  {
    const std::lock_guard lock(mutex_);
    const auto found = std::ranges::find(taken_, what, &Taken::what);
    if (found == taken_.end()) return cudaErrorInvalidValue;
    give_back = found->give_back;
    taken_.erase(found);
  }
  return give_back(what);
}

cudaError_t GpuResources::release_all() {
  const std::lock_guard lock(mutex_);
  cudaError_t first = cudaSuccess;
  const std::vector<Taken> taken = std::exchange(taken_, {});
  for (const auto& [what, give_back] : std::views::reverse(taken)) {
    const cudaError_t error = give_back(what);
    if (first == cudaSuccess) first = error;
  }
  return first;
}

}  // namespace fluid::cuda
