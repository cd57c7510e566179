#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>

#include "executor/host/target_description.h"

namespace fluid {

/// Returns the description of this machine's CPU for `threads` compute threads. The source depends
/// on the environment variable FLUID_MACHINE:
/// - Not set: measure_host() runs once for each CPU model, number of cores and list of instruction
///   sets. Its result is cached in the file machine-HASH.json of `cache_dir`, which all processes
///   use. While one process measures, the others wait. If `cache_dir` is empty or not writable, the
///   result is describe_host() without a measurement, so that all processes use the same rates.
/// - A path: the description in this file, from `fluidrun devices --json`. Throws UserError if the
///   file cannot be read, is malformed, or describes a CPU with other instruction sets.
/// - Empty: describe_host().
TargetDescription machine_description(int threads, const std::string& cache_dir);

/// Measures the CPU again, and replaces the file that machine_description() reads. Throws UserError
/// if `cache_dir` is empty or not writable.
void measure_machine_again(const std::string& cache_dir);

/// Sets the process-wide callback that receives a one-line message when the CPU has been measured
/// or cannot be measured. The callback may run on any thread.
void set_machine_listener(std::function<void(const std::string&)> listener);

/// Key of the CPU description in tuning records.
inline constexpr const char* kCpuRecord = "cpu";
/// Returns the description as text for tuning records. The text is the same for all thread counts.
std::string cpu_tuning_record(const TargetDescription& description);

/// Returns the CPU description in the tuning record `record`, for `threads` threads. Returns
/// nullopt if there is none, or if this machine's CPU has another model or other instruction sets.
/// Throws UserError if the description is malformed.
std::optional<TargetDescription> recorded_description(
    const std::map<std::string, std::string>& record, int threads);

}  // namespace fluid
