#pragma once

#include <cstdint>

#include "executor/host/target_description.h"

namespace fluid {

/// Measures the rates of this machine's CPU on one core and on all cores that the process may use,
/// rounded to two significant digits. Each rate is the best of several short rounds, because other
/// programs may disturb a round. Takes about a second and up to 512 MiB of memory. Throws
/// OutOfMemory, and std::system_error if a thread cannot be started.
TargetDescription measure_host();

/// Measures the copy bandwidth of `threads` threads, in bytes read plus bytes written per second.
/// Copies within the fastest memory level (a cache or main memory) that holds `bytes` bytes. Throws
/// as measure_host() does.
double copy_bandwidth(double bytes, int threads);

int usable_cores();  ///< number of CPUs that this process may use

/// Rounds to two significant digits, so that measurements of equal machines agree.
double rounded_rate(double rate);

}  // namespace fluid
