#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

namespace fluid {

/// Now, in nanoseconds of a clock that all processes of a machine share.
inline int64_t clock_ns() {
  using std::chrono::steady_clock, std::chrono::nanoseconds;
  return std::chrono::duration_cast<nanoseconds>(steady_clock::now().time_since_epoch()).count();
}

struct TimeSpan {
  int64_t begin = 0, end = 0;  ///< as clock_ns()
  int64_t ns() const { return end - begin; }
};

/// A call of an executable's list in one run; what did not happen has a span of 0.
struct CallTimes {
  TimeSpan wait;      ///< for the results of exchanges with other processes that it reads
  TimeSpan call;      ///< of an exchange: to hand it over
  TimeSpan exchange;  ///< on the thread that communicates, beside the calls that follow
};

/// A run of an executable: a step, or one slice of its batch.
struct RunTimes {
  TimeSpan feeds;      ///< copied to their slot
  TimeSpan last_wait;  ///< for exchanges that nobody reads
  std::vector<CallTimes> calls;
};

struct StepTimes {
  TimeSpan step;
  std::vector<RunTimes> runs;
};

}  // namespace fluid
