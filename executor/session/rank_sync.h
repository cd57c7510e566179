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

// The following functions are collective. All ranks must pass the same variables in the same order.

/// Collective. Broadcasts rank 0's values of `variables` to all ranks. Skips sharded variables.
void broadcast_variables(Session& session, const std::vector<Variable>& variables);

/// Collective. Returns the value of `variable`. If the variable is sharded, gathers its value on
/// rank 0, and returns nullopt on the other ranks.
std::optional<Tensor> gather_variable(Session& session, const ProcessGroup& group,
                                      const Variable& variable);

/// Collective. Scatters the values of all sharded variables from rank 0. On rank 0,
/// `full_value(name)` returns the unsharded value of variable `name`. On other ranks, `full_value`
/// is empty.
void scatter_sharded_variables(Session& session, const ProcessGroup& group,
                               const std::function<Tensor(const std::string&)>& full_value);

/// Collective. Merges the tuning records of all ranks; for a key that several ranks hold, the
/// lowest rank's entry wins.
std::map<std::string, std::string> merge_tuning_records(
    const ProcessGroup& group, const std::map<std::string, std::string>& own);

/// Keeps tuning choices, such as the algorithms of a library, equal on all ranks.
class TuningSync {
 public:
  /// Collective. Merges the tuning choices of all ranks; for a key that several ranks hold, the
  /// lowest rank's choice wins. Must be called before the first step, after all ranks have prepared
  /// that step.
  void merge_choices(const ProcessGroup& group, Session& session);

  /// Not collective. Writes new choices to the key-value store as proposals; the first proposal for
  /// a key wins on every rank. Must be called after preparing a step that other ranks might not
  /// prepare. Does nothing before the first step.
  void propose_choices(const ProcessGroup& group, Session& session);

  /// Not collective. Adopts all choices that other ranks have proposed, even for steps that this
  /// rank never prepares. Must be called before writing a checkpoint, so that the checkpoint holds
  /// the choices of all ranks.
  void poll_choices(const ProcessGroup& group, Session& session);

 private:
  std::map<std::string, std::string> agreed_;  ///< tuning choices that are equal on all ranks
  int64_t proposals_read_ = 0;  ///< number of proposals that this rank has read from the store
};

}  // namespace fluid
