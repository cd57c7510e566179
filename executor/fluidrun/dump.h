#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "executor/executor.h"
#include "executor/trainer/fit_options.h"

namespace CLI {
class App;
}

namespace fluid {

/// Values of --dump, --dump-steps and --dump-dir.
struct DumpFlags {
  std::string names;  ///< comma-separated; empty: nothing is written
  std::string directory = "dump";
  int64_t steps = 1;  ///< number of steps, from the first one
};
/// `command` must have --checkpoint-dir, which --dump excludes: a program that computes more has
/// other checkpoints.
void add_dump_flags(CLI::App& command, DumpFlags& flags);

/// Writes values of training steps as .npy files.
class StepDump {
 public:
  /// Makes `program` compute the values: an output, a parameter or state, "PARAMETER.grad", a layer
  /// or a named value. Throws UserError, which suggests names, for another name.
  StepDump(Program& program, const DumpFlags& flags);

  /// Writes DIRECTORY/step-<n>.<name>.npy for each name; half-precision values as f32. Writes no
  /// gradient for a step whose update was skipped, or of a recipe that does not train the
  /// parameter.
  void write(const StepEvent& step, Executor& executor) const;

 private:
  /// A value to write.
  struct Item {
    std::string name;
    std::string source;  ///< name of the output or variable
    bool is_output = false;
    std::set<std::string> recipes = {};  ///< recipes with this gradient; empty: not a gradient
  };
  Item item_of(Program& program, const std::string& name) const;

  DumpFlags flags_;
  std::vector<Item> items_;
};

}  // namespace fluid
