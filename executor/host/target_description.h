#pragma once

#include <cstdint>
#include <string>

namespace fluid {

/// The description of a CPU for the cost model. Rates and bandwidths are per thread.
struct TargetDescription {
  std::string name = "cpu";
  int threads = 1;
  int vector_bits = 256;
  int64_t l2_bytes = 1 << 20;  ///< per core
  double gflops_f32 = 60;      ///< a multiply-add counts as two operations
  double memory_gbs = 12;      ///< read bandwidth of memory
  double cache_gbs = 60;       ///< read bandwidth of the caches
  bool bf16 = false;           ///< has bf16 dot products
};

/// Describes this machine as the operating system reports it. Rates follow from the vector width.
TargetDescription describe_host(int threads);
/// Converts a description to and from the JSON of `fluidrun devices --json`. Throws UserError
/// naming the file and the entry for an unknown, missing or malformed entry. The entry
/// kMachineEntry holds further information for people and is ignored.
inline constexpr const char* kMachineEntry = "machine";
std::string to_json(const TargetDescription& description);
TargetDescription target_from_json(const std::string& text, const std::string& file);

}  // namespace fluid
