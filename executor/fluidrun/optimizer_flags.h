#pragma once

#include <string>

#include "executor/fluidrun/setting_flags.h"
#include "frontend/program.h"

namespace fluid {

/// Values of the flags that choose an optimizer. Each setting of an optimizer has a flag:
/// --weight-decay sets `weight_decay`.
struct OptimizerFlags {
  std::string name;    ///< --optimizer; empty: the program's optimizer
  std::string output;  ///< --minimize; empty: "loss"
  double lr = 0;       ///< --lr; 0: not given
  SettingFlags settings;
};
void add_optimizer_flags(CLI::App& command, OptimizerFlags& flags);
/// Whether a flag is given.
bool changes_optimizer(const OptimizerFlags& flags);

/// Replaces the optimizer of the program's recipe, or changes its hyperparameters, as the flags
/// specify. Keeps the learning rate schedule, gradient clipping and parameter averages. A program
/// without a recipe gets one that minimizes the output `output`. `recipe`: the name of the recipe;
/// empty: the only recipe. Throws UserError if a flag is invalid for the program. The error message
/// names the flag.
void set_optimizer(Program& program, const OptimizerFlags& flags, const std::string& recipe = "");

/// Throws UserError if --lr is given, but the schedule of the recipe `recipe` replaces the learning
/// rate. Called after set_schedule().
void check_lr_is_used(Program& program, const OptimizerFlags& flags,
                      const std::string& recipe = "");

}  // namespace fluid
