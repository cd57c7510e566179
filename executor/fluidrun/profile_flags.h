#pragma once

#include <string>

#include "executor/executor.h"

namespace CLI {
class App;
}

namespace fluid {

/// --profile, for commands that run steps.
struct ProfileFlags {
  std::string file = "false";  ///< of the trace; "true": the table alone, "false": neither
  ProfileOptions options;
  bool asked() const { return file != "false"; }
  bool traced() const { return asked() && file != "true"; }
};
void add_profile_flags(CLI::App& command, ProfileFlags& flags);

/// Lets an executor record its steps, if that is asked for. Throws UserError when the trace could
/// not be written.
void set_profile(ExecutorOptions& options, const ProfileFlags& flags);
/// Writes the trace, and on rank 0 prints the table.
void report_profile(const Executor& executor, const ProfileFlags& flags, const World& world = {});

}  // namespace fluid
