#pragma once

#include <cstdint>
#include <span>

namespace fluid {

/// A microbenchmark: a loop of independent multiply-adds that use one instruction set. Measures the
/// peak rate of a core.
struct PeakLoop {
  /// dtype of the factors, then the instruction set: "f32_avx2", "bf16_amx". The names are the keys
  /// of TargetDescription::gops.
  const char* name;
  int64_t ops;           ///< operations per iteration; a multiply-add is two operations
  double ops_per_cycle;  ///< theoretical peak of a typical core
  void (*run)(int64_t iterations);
};

/// Returns the loops whose instruction sets the CPU supports. Empty on architectures other than
/// x86-64. If the CPU has AMX, requests permission from the operating system to use it.
std::span<const PeakLoop> peak_loops();

}  // namespace fluid
