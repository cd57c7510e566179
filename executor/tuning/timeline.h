#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace fluid {

/// Network model: a ring of equal ranks with full-duplex links.
struct Link {
  int64_t world = 1;        ///< number of ranks
  double bytes_per_ms = 1;  ///< send bandwidth per rank
  double latency_ms = 0;    ///< latency per message
};

/// The traffic of one collective around the ring.
struct CollectiveTraffic {
  int64_t bytes = 0;
  /// Number of passes around the ring: 2 for an all-reduce, 1 for a reduce-scatter or all-gather.
  int ring_passes = 2;
};

/// Returns the time of a ring collective without contention. A pass over N ranks takes N - 1
/// messages of bytes / N each (Patarasuk and Yuan, Bandwidth optimal all-reduce algorithms for
/// clusters of workstations, 2009).
double collective_ms(const CollectiveTraffic& traffic, const Link& link);

/// A kernel call of a step, with its measured time.
struct TimedCall {
  double ms = 0;  ///< duration on the compute thread
  /// The collective that the call starts, if any.
  std::optional<CollectiveTraffic> started_collective = {};
  /// Number of collectives that must complete before the call: the first `awaited_collectives` of
  /// the step.
  size_t awaited_collectives = 0;
};

/// Times of a collective, in ms since the start of the step.
struct CollectiveTimes {
  double ready = 0;  ///< when the input of the collective is ready
  double begin = 0;  ///< when the collective starts: after all earlier collectives
  double end = 0;
};

/// Predicted times of a step on one of several equally fast ranks, in ms.
struct Timeline {
  double computing = 0;      ///< total time of computation, without waits
  double communicating = 0;  ///< total time of collectives
  double step = 0;           ///< duration of the step
  std::vector<CollectiveTimes> collectives;

  /// Returns the part of the communication time that does not overlap with computation.
  double exposed_ms() const { return step - computing; }
  /// Returns the fraction of the communication time that overlaps with computation; 1 if there are
  /// no collectives.
  double overlap_fraction() const {
    return communicating > 0 ? 1 - exposed_ms() / communicating : 1;
  }
};

/// Simulates a step with two threads: one runs `calls` in order, the other runs the collectives one
/// at a time. The step ends when both threads are idle.
Timeline simulate_timeline(std::span<const TimedCall> calls, const Link& link);

}  // namespace fluid
