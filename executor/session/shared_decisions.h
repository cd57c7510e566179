#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "executor/comm/process_group.h"
#include "executor/session/session.h"

namespace fluid {

/// Keeps tuning choices, such as a library's algorithms, equal on all ranks.
class TuningSync {
 public:
  /// Collective; call it before the first step, which all ranks have prepared. Merges the ranks'
  /// choices. For a key that several ranks hold, the lowest rank's choice wins.
  void begin(const ProcessGroup& group, Session& session);

  /// Not collective; call it after preparing steps later than the first. Ranks may prepare
  /// different steps, so each new choice is proposed to the store, and the first proposal for a key
  /// wins on every rank. Does nothing before the first step.
  void share(const ProcessGroup& group, Session& session);

  /// Not collective. Adopts choices that other ranks proposed, also for steps that this rank never
  /// prepares. A checkpoint then holds the choices of all ranks, whichever rank writes it.
  void hear(const ProcessGroup& group, Session& session);

 private:
  std::map<std::string, std::string> known_;  ///< choices that are equal on all ranks
  int64_t proposals_read_ = 0;                ///< number of proposals read from the store
};

}  // namespace fluid
