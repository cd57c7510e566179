#include "executor/tuning/timeline.h"

#include <algorithm>

#include "ir/error.h"

namespace fluid {

double message_ms(const Message& message, const Link& link) {
  const auto world = static_cast<double>(link.world);
  const double part = static_cast<double>(message.bytes) / world / link.bytes_per_ms;
  return message.rounds * (world - 1) * (link.latency_ms + part);
}

Timeline timeline(std::span<const TimedCall> calls, const Link& link) {
  Timeline t;
  double now = 0, sent = 0;  // end of the last work on each of the two threads
  for (const TimedCall& call : calls) {
    check(call.awaited_collectives <= t.messages.size(), "a call waits for a later collective");
    if (call.awaited_collectives > 0)
      now = std::max(now, t.messages[call.awaited_collectives - 1].end);
    if (call.sent) {
      const double ms = message_ms(*call.sent, link), begin = std::max(now, sent);
      sent = begin + ms;
      t.messages.push_back({.complete = now, .begin = begin, .end = sent});
      t.communicating += ms;
    }
    now += call.ms;
    t.computing += call.ms;
  }
  t.step = std::max(now, sent);
  return t;
}

}  // namespace fluid
