#pragma once

#include <cstdint>
#include <string>

namespace fluid {

/// Describes a CPU for the cost model. Rates and bandwidths are per thread.
struct TargetDescription {
  std::string name = "cpu";
  int threads = 1;
  int vector_bits = 256;
  int64_t l2_bytes = 1 << 20;  ///< bytes of L2 cache per core
  double gflops_f32 = 60;      ///< peak GFLOP/s in f32; a multiply-add is two operations
  double memory_gbs = 12;      ///< read bandwidth of memory in GB/s
  double cache_gbs = 60;       ///< read bandwidth of the caches in GB/s
  bool bf16 = false;           ///< whether the CPU has bf16 dot-product instructions
};

/// Describes this machine's CPU: its instruction-set extensions and L2 size. Derives the FLOP/s
/// from the vector width.
TargetDescription describe_host(int threads);
/// to_json() and target_from_json() convert to and from the JSON of `fluidrun devices --json`.
/// target_from_json() throws UserError if an entry is unknown, missing or malformed; the message
/// names the file and the entry. target_from_json() ignores the entry kMachineEntry, which holds
/// further information for display.
inline constexpr const char* kMachineEntry = "machine";
std::string to_json(const TargetDescription& description);
TargetDescription target_from_json(const std::string& text, const std::string& file);

}  // namespace fluid
