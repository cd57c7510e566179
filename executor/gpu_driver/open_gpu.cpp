#include "executor/gpu_driver/open_gpu.h"

#include <algorithm>

namespace fluid {

int64_t GpuLedger::hidden() const {
  return free_at_first_ - gpu_.memory_info().first - gpu_.held(GpuMemory::Where::gpu);
}

std::vector<std::pair<std::string, int64_t>> GpuLedger::owners() const {
  std::vector<std::pair<std::string, int64_t>> owners(taken_.begin(), taken_.end());
  int64_t others = hidden();
  for (const auto& [owner, bytes] : owners) others -= bytes;
  owners.emplace_back("context and other processes", total_ - free_at_first_);
  owners.emplace_back("streams, rounding", others);
  std::ranges::stable_sort(owners, std::ranges::greater(), [](const auto& o) { return o.second; });
  return owners;
}

}  // namespace fluid
