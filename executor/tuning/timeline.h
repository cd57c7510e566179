#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace fluid {

/// How equal processes reach each other, in a ring: each sends to the next while it receives.
struct Link {
  int64_t world = 1;        ///< processes
  double bytes_per_ms = 1;  ///< that one of them sends
  double latency_ms = 0;    ///< of a message, besides its bytes
};

/// What a process hands to its communication thread.
struct Message {
  int64_t bytes = 0;
  int rounds = 2;  ///< of the ring: an all-reduce takes two, to add up and to pass on
};

/// The time that a message takes alone. A round of N processes is N - 1 messages of bytes / N each
/// (Patarasuk and Yuan, Bandwidth optimal all-reduce algorithms for clusters of workstations,
/// 2009).
double message_ms(const Message& message, const Link& link);

/// A call of a step.
struct TimedCall {
  double ms = 0;                     ///< of the thread that computes
  std::optional<Message> sent = {};  ///< what it starts to exchange
  size_t awaits = 0;  ///< messages, counted from the first, that must be there before it
};

/// When what happens to a message, in ms from the start of the step.
struct MessageTimes {
  double complete = 0;  ///< its values are computed
  double begin = 0;     ///< the messages before it are done
  double end = 0;
};

/// A step of one of several processes that all take the same time.
struct Timeline {
  double computing = 0;  ///< ms, as communicating: each alone
  double communicating = 0;
  double step = 0;
  std::vector<MessageTimes> messages;

  /// What the step takes longer for the messages.
  double exposed() const { return step - computing; }
  /// Which part of communicating costs nothing, as computing goes on; 1 without messages.
  double overlap() const { return communicating > 0 ? 1 - exposed() / communicating : 1; }
};

/// What becomes of `calls`, made one after the other, where messages go in their order, one at a
/// time, beside the calls that do not wait for them. The step ends when all is done.
Timeline timeline(std::span<const TimedCall> calls, const Link& link);

}  // namespace fluid
