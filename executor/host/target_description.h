#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "ir/type.h"

namespace fluid {

/// A rate of a CPU, in 1e9 operations/s or 1e9 bytes/s. `one`: rate of a core while the other cores
/// are idle. `all`: total rate of all cores.
struct CoreRates {
  double one = 0, all = 0;
  bool operator==(const CoreRates&) const = default;
};

/// Describes a CPU for the cost model.
struct TargetDescription {
  std::string name = "cpu";
  std::string cpu = "unknown";  ///< model of the CPU
  int threads = 1;              ///< number of compute threads
  int cores = 1;                ///< number of cores that CoreRates::all covers
  bool measured = false;        ///< whether the rates were measured, not assumed
  int vector_bits = 256;
  int64_t l1_bytes = 32 << 10;  ///< bytes of L1 data cache per core
  int64_t l2_bytes = 1 << 20;   ///< bytes of L2 cache per core
  int64_t l3_bytes = 1 << 20;   ///< bytes of the shared L3 cache; l2_bytes if there is no L3
  /// Peak arithmetic rates; a multiply-add is two operations. The keys are the names of the loops
  /// in peak_loops.h, such as "f32_avx2". At least one key starts with "f32_".
  std::map<std::string, CoreRates> gops = {{"f32_avx2", {60, 60}}};
  /// Copy bandwidths, counting bytes read and bytes written, by level: "l1", "l2", "l3" (may be
  /// absent) and "memory".
  std::map<std::string, CoreRates> gbs = {
      {"l1", {60, 60}}, {"l2", {60, 60}}, {"l3", {12, 12}}, {"memory", {12, 12}}};

  /// Returns a copy with `threads` set to `count`.
  TargetDescription with_threads(int count) const;
  /// Peak operations/s of `threads` threads in a float `dtype`, with the fastest instruction set.
  /// f64 runs at half the f32 rate. A half-precision dtype without native instructions runs at the
  /// f32 rate.
  double ops_per_second(DType dtype) const;
  /// Returns the key in `gbs` of the fastest level that holds a working set of `bytes` bytes. Each
  /// of the `threads` threads uses an equal part of the working set.
  std::string_view memory_level(double bytes) const;
  /// Copy bandwidth in bytes/s of `threads` threads in memory_level(bytes).
  double bytes_per_second(double bytes) const;
  /// Whether this CPU and `other` have the same vector width and instruction sets.
  bool has_same_isa(const TargetDescription& other) const;
};

/// Describes this machine's CPU: its model, caches and instruction sets. The rates are not
/// measured: they assume 1.8 GHz, which is typical under full vector load, and scale with the
/// number of threads.
TargetDescription describe_host(int threads);

/// to_json() and target_from_json() convert to and from the JSON of `fluidrun devices --json`.
/// target_from_json() throws UserError if an entry is unknown, missing or malformed; the message
/// names the file and the entry. target_from_json() ignores the entry kMachineEntry, which holds
/// further information for display.
inline constexpr const char* kMachineEntry = "machine";
std::string to_json(const TargetDescription& description);
TargetDescription target_from_json(const std::string& text, const std::string& file);

}  // namespace fluid
