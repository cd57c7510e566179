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
  int64_t begin = 0, end = 0;  ///< clock_ns() times
  int64_t ns() const { return end - begin; }
};

/// Times of one call of an executable's list. A phase that did not occur has a span of 0.
struct CallTimes {
  TimeSpan wait;      ///< waiting for the collectives whose results the call reads
  TimeSpan call;      ///< running the call; for a collective: queueing it
  TimeSpan exchange;  ///< running the collective, concurrently with the following calls
};

/// Times of one run of an executable: a whole step, or one micro-batch.
struct RunTimes {
  TimeSpan feeds;      ///< copying the feeds into their slot
  TimeSpan last_wait;  ///< waiting for collectives whose results no call reads
  std::vector<CallTimes> calls;
};

struct StepTimes {
  TimeSpan step;
  std::vector<RunTimes> runs;
};

}  // namespace fluid
