#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "executor/device/variables.h"
#include "ir/graph.h"
#include "ir/tensor.h"

namespace fluid {

class Session;

/// A variable of a snapshot.
struct Kept {
  std::string name;
  VariableKind kind = VariableKind::control;
  Tensor value;
};

/// The complete state from which training resumes. Variables have the names of the recorded program
/// and plain layouts.
struct Snapshot {
  std::string program;        ///< the program's name
  uint64_t program_hash = 0;  ///< see program_hash()
  /// Other options that affect results, as text: "seed", "amp", and the recipe's "lr", "optimizer".
  std::map<std::string, std::string> options;
  /// Tuning choices made by timing, for ExecutorOptions::decisions. With the same choices, the
  /// resumed run computes the same bits.
  std::map<std::string, std::string> decisions;
  std::vector<Kept> variables;  ///< all variables but those of kind scratch

  const Kept* find(std::string_view name) const;  ///< null when absent
};

/// A copy of `recorded` without source locations.
std::unique_ptr<ir::Program> strip_locations(const ir::Program& recorded);

/// The XXH3 hash of the recorded program's text, without `train` and source lines.
uint64_t program_hash(const ir::Program& recorded);

/// Takes a snapshot of the variables, sorted by name. `value` returns a variable's value, or
/// nullopt to omit the variable.
Snapshot take_snapshot(Session& session, std::map<std::string, std::string> options,
                       const std::function<std::optional<Tensor>(const Variable&)>& value);

/// Sets the session's variables from `from`, whose path is `where` in messages. Converts floats. A
/// control variable missing from the snapshot keeps its value; unknown ones are ignored. Takes only
/// the run counter of the random state, not the seed. A sharded variable gets this rank's shard.
///
/// Throws UserError, with nothing changed, when `from` is of another program or its optimizer
/// states do not match. Frees each value once it is set.
void restore_snapshot(Session& session, Snapshot& from, const std::string& where);

}  // namespace fluid
