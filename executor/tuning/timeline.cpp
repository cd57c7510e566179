#include "executor/tuning/timeline.h"

#include <algorithm>

#include "ir/error.h"

namespace fluid {

double collective_ms(const CollectiveTraffic& traffic, const Link& link) {
  const auto world = static_cast<double>(link.world);
  const double part = static_cast<double>(traffic.bytes) / world / link.bytes_per_ms;
  return traffic.rounds * (world - 1) * (link.latency_ms + part);
}

Timeline timeline(std::span<const TimedCall> calls, const Link& link) {
  Timeline t;
  // Times in ms at which the compute thread and the communication thread become idle.
  double now = 0, sent = 0;
  for (const TimedCall& call : calls) {
    check(call.awaited_collectives <= t.collectives.size(), "a call waits for a later collective");
    if (call.awaited_collectives > 0)
      now = std::max(now, t.collectives[call.awaited_collectives - 1].end);
    if (call.sent) {
      const double ms = collective_ms(*call.sent, link), begin = std::max(now, sent);
      sent = begin + ms;
      t.collectives.push_back({.ready = now, .begin = begin, .end = sent});
      t.communicating += ms;
    }
    now += call.ms;
    t.computing += call.ms;
  }
  t.step = std::max(now, sent);
  return t;
}

}  // namespace fluid
