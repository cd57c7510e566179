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
  std::string names;  ///< comma-separated names or patterns of values; empty: no files
  std::string directory = "dump";
  int64_t steps = 1;  ///< number of training steps of this run to dump
};
/// Adds the options --dump, --dump-steps and --dump-dir to `command`.
void add_dump_flags(CLI::App& command, DumpFlags& flags);

/// Writes values of training steps as .npy files.
class StepDump {
 public:
  /// Makes `program` compute the values in `flags.names`. A name is an output, a parameter or
  /// state, "PARAMETER.grad", a feed, a layer or a named value. Throws UserError for an unknown
  /// name, and for a pattern that matches none, and suggests similar names.
  StepDump(Program& program, const DumpFlags& flags);

  /// `steps_before`: number of training steps before this run; 0 unless this run resumes a
  /// checkpoint.
  void begin(int64_t steps_before) { steps_before_ = steps_before; }
  /// Writes DIRECTORY/step-<n>.<name>.npy for each name. Converts half-precision values to f32.
  /// Omits the gradients of skipped updates, and of parameters that the recipe of the step does not
  /// train.
  void write(const StepEvent& step, Executor& executor) const;

 private:
  /// A value that write() writes to a file.
  struct DumpedValue {
    std::string name;
    std::string source;  ///< name of the output or variable
    bool is_output = false;
    /// Names of the recipes that compute the gradient; empty if the value is not a gradient.
    std::set<std::string> recipes = {};
  };
  DumpedValue dumped_value(Program& program, const std::string& name) const;

  DumpFlags flags_;
  std::vector<DumpedValue> values_;
  int64_t steps_before_ = 0;
};

}  // namespace fluid
