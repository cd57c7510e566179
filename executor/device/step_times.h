#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

namespace fluid {

/// Current time in nanoseconds, on a monotonic clock that all processes of a machine share.
inline int64_t clock_ns() {
  using std::chrono::steady_clock, std::chrono::nanoseconds;
  return std::chrono::duration_cast<nanoseconds>(steady_clock::now().time_since_epoch()).count();
}

struct TimeSpan {
  int64_t begin = 0, end = 0;  ///< times from clock_ns()
  int64_t ns() const { return end - begin; }
};

/// Times of the phases of one call. A phase that did not occur has begin = end = 0.
struct CallTimes {
  TimeSpan wait;        ///< waiting for the collectives whose results the call reads
  TimeSpan call;        ///< running the call; for a collective, only enqueueing
  TimeSpan collective;  ///< running the collective, concurrently with the following calls
};

/// Times of one run of an executable, for a whole step or one micro-batch.
struct RunTimes {
  TimeSpan feeds;  ///< copying the feeds into their slot
  /// Waiting, after the last call, for collectives whose results no call reads.
  TimeSpan final_wait;
  std::vector<CallTimes> calls;
};

struct StepTimes {
  TimeSpan step;
  std::vector<RunTimes> runs;
};

}  // namespace fluid
