#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "executor/comm/process_group.h"
#include "executor/session/session.h"

namespace fluid {

// send(), whole() and scatter() are collective. All ranks must pass the same variables in the same
// order.

/// Broadcasts rank 0's values of `variables`. Skips sharded variables.
void send(Session& session, const std::vector<Variable>& variables);

/// The value of `variable`. A sharded variable is gathered on rank 0; other ranks get nullopt.
std::optional<Tensor> whole(Session& session, const ProcessGroup& group, const Variable& variable);

/// Scatters the values of all sharded variables from rank 0. `whole` returns a variable's full
/// value by name on rank 0, and is empty on other ranks.
void scatter(Session& session, const ProcessGroup& group,
             const std::function<Tensor(const std::string&)>& whole);

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
  void poll_choices(const ProcessGroup& group, Session& session);

 private:
  std::map<std::string, std::string> known_;  ///< choices that are equal on all ranks
  int64_t proposals_read_ = 0;                ///< number of proposals read from the store
};

}  // namespace fluid
