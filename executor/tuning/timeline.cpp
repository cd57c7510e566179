#include "executor/tuning/timeline.h"

#include <algorithm>

#include "ir/error.h"

namespace fluid {

double collective_ms(const CollectiveTraffic& traffic, const Link& link) {
  const auto world = static_cast<double>(link.world);
  const double part = static_cast<double>(traffic.bytes) / world / link.bytes_per_ms;
  return traffic.ring_passes * (world - 1) * (link.latency_ms + part);
}

Timeline simulate_timeline(std::span<const TimedCall> calls, const Link& link) {
  Timeline t;
  // Times in ms at which the compute thread and the communication thread become idle.
  double compute_idle = 0, communication_idle = 0;
  for (const TimedCall& call : calls) {
    check(call.awaited_collectives <= t.collectives.size(), "a call waits for a later collective");
    if (call.awaited_collectives > 0)
      compute_idle = std::max(compute_idle, t.collectives[call.awaited_collectives - 1].end);
    if (call.started_collective) {
      const double ms = collective_ms(*call.started_collective, link),
                   begin = std::max(compute_idle, communication_idle);
      communication_idle = begin + ms;
      t.collectives.push_back({.ready = compute_idle, .begin = begin, .end = communication_idle});
      t.communicating += ms;
    }
    compute_idle += call.ms;
    t.computing += call.ms;
  }
  t.step = std::max(compute_idle, communication_idle);
  return t;
}

}  // namespace fluid
