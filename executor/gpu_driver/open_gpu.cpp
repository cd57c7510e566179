#include "executor/gpu_driver/open_gpu.h"

#include <algorithm>

namespace fluid {

int64_t GpuMemoryTracker::untracked_bytes() const {
  return initial_free_bytes_ - gpu_.memory_info().first -
         gpu_.allocated_bytes(GpuMemory::Location::gpu);
}

std::vector<std::pair<std::string, int64_t>> GpuMemoryTracker::bytes_by_owner() const {
  std::vector<std::pair<std::string, int64_t>> owners(bytes_by_owner_.begin(),
                                                      bytes_by_owner_.end());
  int64_t others = untracked_bytes();
  for (const auto& [owner, bytes] : owners) others -= bytes;
  owners.emplace_back("context and other processes", total_bytes_ - initial_free_bytes_);
  owners.emplace_back("streams, rounding", others);
  std::ranges::stable_sort(owners, std::ranges::greater(), [](const auto& o) { return o.second; });
  return owners;
}

}  // namespace fluid
