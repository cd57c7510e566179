#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "frontend/program.h"

namespace CLI {
class App;
}

namespace fluid {

/// Values of the flags for clipping gradients, averaging parameters and lookahead.
struct UpdateFlags {
  std::optional<double> clip_value, clip_norm, clip_global_norm;  ///< 0: no clipping
  double ema = 0, lookahead_alpha = 0;
  int64_t swa = 0, swa_every = 0, lookahead = 0;
};
void add_update_flags(CLI::App& command, UpdateFlags& flags);

/// Changes the program's recipe as the flags specify. `recipe`: the name of one of several recipes.
/// Throws UserError if flags are given for a program of several recipes, but no `recipe`.
void set_update(Program& program, const UpdateFlags& flags, const std::string& recipe = "");

}  // namespace fluid
