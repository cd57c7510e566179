#pragma once

#include <cstdint>
#include <span>

namespace fluid {

/// A loop of independent multiply-adds by the instructions of one instruction set, to measure the
/// peak rate of a core.
struct PeakLoop {
  /// dtype of the factors and instruction set, such as "f32_avx2" and "bf16_amx". The names are the
  /// keys of TargetDescription::gops.
  const char* name;
  int64_t ops;           ///< operations per iteration; a multiply-add is two operations
  double ops_per_cycle;  ///< theoretical peak of a typical core
  void (*run)(int64_t iterations);
};

/// The loops that this process can run on every core. Empty on other architectures than x86-64.
/// Asks the system for permission to use AMX, where the CPU has it.
std::span<const PeakLoop> peak_loops();

}  // namespace fluid
