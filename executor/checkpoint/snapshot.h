#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "executor/checkpoint/parameter_metadata.h"
#include "executor/device/variables.h"
#include "ir/graph.h"
#include "ir/tensor.h"

namespace fluid {

class Session;

struct SnapshotVariable {
  std::string name;
  VariableKind kind = VariableKind::control;
  Tensor value;
};

/// The complete state of an executor, from which training can resume. Variables are named as in the
/// recorded program and stored in row-major layout.
struct Snapshot {
  std::string program;        ///< the program's name
  uint64_t program_hash = 0;  ///< program_hash() of the recorded program
  uint64_t model_hash = 0;    ///< model_hash() of the recorded program
  /// Options that affect results, such as "seed" and "amp": option name -> value as text. The
  /// options include the attributes of the `train` op, such as "lr" and "optimizer".
  std::map<std::string, std::string> options;
  /// Result of Device::tuning_record(). A resumed run passes this record as
  /// ExecutorOptions::tuning_record, selects the same kernels, and so computes the same bits.
  std::map<std::string, std::string> tuning_record;
  ParameterMetadata metadata;               ///< of the file that holds the parameters
  std::vector<SnapshotVariable> variables;  ///< all variables except caches and scratch variables

  const SnapshotVariable* find(std::string_view name) const;  ///< null if there is no such variable
};

/// Returns a copy of `recorded` without source locations.
std::unique_ptr<ir::Program> strip_locations(const ir::Program& recorded);

/// Returns the XXH3 hash of the recorded program's text. The text omits the `train` ops, the
/// parameters' training settings, kept gradients, outputs with kDumpPrefix, source locations and op
/// ids: ids depend on the order of calls such as lora().
uint64_t program_hash(const ir::Program& recorded);

/// Returns program_hash() of the program without weight penalties (l1, l2) and with equal
/// initialisers for all parameters. Programs with equal model hashes compute the same predictions.
uint64_t model_hash(const ir::Program& recorded);

/// Takes a snapshot of the variables, sorted by name. `value` returns a variable's value, or
/// nullopt to omit the variable. `unused`: result of restore_snapshot(), saved too.
Snapshot take_snapshot(Session& session, std::map<std::string, std::string> options,
                       const std::function<std::optional<Tensor>(const Variable&)>& value,
                       const std::vector<SnapshotVariable>& unused);

/// Sets the session's variables from the snapshot `from`, and frees each value in `from` after
/// copying it. Float dtypes are converted. A sharded variable gets this rank's shard. A control
/// variable that the snapshot lacks keeps its value. The run counter of the random state is
/// restored; its seed is not.
///
/// Returns the control variables of the snapshot that the session does not use: those of a recipe
/// whose parameters are all frozen now, or of loss scaling. Later snapshots must contain them,
/// because a later run may train the recipe again.
///
/// Throws UserError, and changes nothing, when `from` belongs to another program or its optimizer
/// states do not match the session's. `where` names the snapshot in messages.
std::vector<SnapshotVariable> restore_snapshot(Session& session, Snapshot& from,
                                               const std::string& where);

}  // namespace fluid
