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

/// One variable of a snapshot.
struct Kept {
  std::string name;
  VariableKind kind = VariableKind::control;
  Tensor value;
};

/// All that an executor's training goes on from, under the recorded program's names, in plain
/// layout.
struct Snapshot {
  std::string program;        ///< its name
  uint64_t program_hash = 0;  ///< of what it computes: without its recipe and the lines it is from
  /// What changes results besides, as text: "seed", "amp", and the recipe's "lr", "optimizer".
  std::map<std::string, std::string> options;
  /// What was chosen by timing, for ExecutorOptions: with it results are the same bits.
  std::map<std::string, std::string> decisions;
  std::vector<Kept> variables;  ///< all but scratch

  const Kept* find(std::string_view name) const;  ///< null when absent
};

/// A copy that does not know where it was recorded.
std::unique_ptr<ir::Program> without_lines(const ir::Program& recorded);

/// The XXH3 hash of the recorded program's text, without `train` and source lines.
uint64_t program_hash(const ir::Program& recorded);

/// Asks `value` for the values, in the order of their names, and leaves out those it has none of.
Snapshot take_snapshot(Session& session, std::map<std::string, std::string> options,
                       const std::function<std::optional<Tensor>(const Variable&)>& value);

/// Sets the variables that a training step has from `from`, whose path or other name is `where` in
/// messages. Floats are converted. A control variable that is missing there keeps its value; one
/// that is not known here is left. Of the random state only the run counter is taken: the seed is
/// this session's. Of a variable that processes share the session takes its part. Throws UserError,
/// with nothing changed, when `from` is of another program, or lacks an optimizer's state or has
/// one too many.
/// Each value is dropped once it is set.
void restore_snapshot(Session& session, Snapshot& from, const std::string& where);

}  // namespace fluid
