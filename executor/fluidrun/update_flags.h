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

/// Applies the flags to the recipe named `recipe`, or to the only recipe if `recipe` is empty.
/// Throws UserError if flags are given, `recipe` is empty, and the program has several recipes.
void set_update(Program& program, const UpdateFlags& flags, const std::string& recipe = "");

}  // namespace fluid
