#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "executor/comm/process_group.h"
#include "executor/session/session.h"

namespace fluid {

/// What devices decide by timing, as which of a library's algorithms to take, where all ranks must
/// take the same.
class SharedDecisions {
 public:
  /// With the first step, which all ranks have prepared: each takes those of the lowest rank that
  /// has decided the same. A call of all group.
  void begin(const ProcessGroup& group, Session& session);

  /// Of what is prepared after the first step ranks may each prepare something else: what one of
  /// them decides first holds for all that come to decide the same. A rank calls it by itself; so
  /// before the first step it does nothing.
  void share(const ProcessGroup& group, Session& session);

  /// Takes what other ranks have decided that prepared steps which this one may never have: all of
  /// it is in a checkpoint, so that each finds its own there, whoever writes it. A rank calls it by
  /// itself.
  void hear(const ProcessGroup& group, Session& session);

 private:
  std::map<std::string, std::string> known_;  ///< that all ranks share
  int64_t proposals_heard_ = 0;               ///< of those decided after the first step
};

}  // namespace fluid
