#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>

#include "executor/host/target_description.h"

namespace fluid {

/// Returns the description of this machine's CPU for `threads` compute threads. By $FLUID_MACHINE:
/// - Not set: measure_host() runs once for each CPU model, number of cores and list of instruction
///   sets. The result is kept in the file machine-HASH.json of `cache_dir`, and all processes use
///   it. Processes that need it at the same time wait for the one that measures. If `cache_dir` is
///   empty or not writable, nothing is measured: the result is describe_host(), so that all
///   processes without a cache use the same rates, too.
/// - A path: the description in this file, from `fluidrun devices --json`. Throws UserError if the
///   file cannot be read, is malformed, or describes a CPU with other instruction sets.
/// - Empty: describe_host().
TargetDescription machine_description(int threads, const std::string& cache_dir);

/// Measures again, and replaces the file that machine_description() reads. Throws UserError if
/// `cache_dir` is empty or not writable.
void measure_machine_again(const std::string& cache_dir);

/// Sets the process-wide listener, which receives one line of text after a measurement, and one if
/// its result cannot be kept. The listener may be called from any thread.
void set_machine_listener(std::function<void(const std::string&)> listener);

/// Key of the description in tuning records.
inline constexpr const char* kCpuRecord = "cpu";
/// The description as text for tuning records, the same for any number of threads.
std::string cpu_record(const TargetDescription& description);

/// Returns the description in `record`, for `threads` threads. Returns nullopt if the record has no
/// description, or that of a CPU of another model or with other instruction sets. Throws UserError
/// if the description is malformed.
std::optional<TargetDescription> recorded_description(
    const std::map<std::string, std::string>& record, int threads);

}  // namespace fluid
