#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace fluid {

/// The network between equal ranks in a ring. Each rank sends and receives at the same time.
struct Link {
  int64_t world = 1;        ///< number of ranks
  double bytes_per_ms = 1;  ///< send bandwidth per rank
  double latency_ms = 0;    ///< per message, in addition to its bytes
};

/// A collective's data.
struct Message {
  int64_t bytes = 0;
  /// Passes around the ring: an all-reduce takes two, reduce-scatter and all-gather one each.
  int rounds = 2;
};

/// Time of a collective without contention. A pass of N ranks takes N - 1 messages of bytes / N
/// each (Patarasuk and Yuan, Bandwidth optimal all-reduce algorithms for clusters of workstations,
/// 2009).
double message_ms(const Message& message, const Link& link);

/// A call of a step.
struct TimedCall {
  double ms = 0;                     ///< on the compute thread
  std::optional<Message> sent = {};  ///< the collective that the call starts
  /// Number of collectives, from the first on, that must complete before the call.
  size_t awaited_collectives = 0;
};

/// Times of a collective, in ms from the start of the step.
struct MessageTimes {
  double complete = 0;  ///< its input is computed
  double begin = 0;     ///< the collectives before it are done
  double end = 0;
};

/// Predicted times of a step on one of several equally fast ranks.
struct Timeline {
  double computing = 0;      ///< ms of all computation, without waiting
  double communicating = 0;  ///< ms of all collectives
  double step = 0;           ///< ms
  std::vector<MessageTimes> messages;

  /// Time that communication adds to the step.
  double exposed() const { return step - computing; }
  /// Fraction of the communication that overlaps with computation; 1 without collectives.
  double overlap() const { return communicating > 0 ? 1 - exposed() / communicating : 1; }
};

/// Simulates `calls` in order, with collectives one at a time on a second thread. The step ends
/// when both threads are done.
Timeline timeline(std::span<const TimedCall> calls, const Link& link);

}  // namespace fluid
