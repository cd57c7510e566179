#pragma once

#include <cstdint>
#include <string>

#include "executor/fluidrun/dump.h"
#include "executor/fluidrun/flags.h"
#include "executor/fluidrun/inputs.h"
#include "executor/fluidrun/optimizer_flags.h"
#include "executor/fluidrun/parameter_flags.h"
#include "executor/fluidrun/schedule_flags.h"
#include "executor/fluidrun/update_flags.h"
#include "executor/trainer/tensorboard.h"

namespace fluid {

/// Values of the flags of `fluidrun train`.
struct TrainFlags {
  std::string program, data, val, recipes, save, log_json, history, tensorboard;
  std::vector<std::string> recipe_options;
  std::string find_lr = "false";  ///< path of the plot; "true": no plot, "false": no --find-lr
  ParamsFlags params;
  int64_t epochs = 1, batch = 0, micro_batches = 1, max_steps = 0, log_every = 0;
  uint64_t seed = 0;
  int64_t overfit = 0;  ///< number of samples of --overfit; 0: not given
  ReadingFlags reading;
  OptimizerFlags optimizer;
  UpdateFlags update;
  ScheduleFlags schedule;
  ParameterFlags parameters;
  bool drop_last = false, verify_plan = false, check_finite = false, dry_run = false;
  BestEpochFlags best;
  CheckpointFlags checkpoint;
  WorldFlags world;
  PlaceFlags place;
  ProfileFlags profile;
  DumpFlags dump;
  TensorBoardOptions tensorboard_options;

  bool finds_lr() const { return find_lr != "false"; }
  /// The file that --find-lr writes; empty: none.
  std::string find_lr_file() const { return finds_lr() && find_lr != "true" ? find_lr : ""; }
};

void add_train_flags(CLI::App& command, TrainFlags& flags);

/// Throws UserError for a file of --find-lr that is neither .svg nor .csv, and for too few
/// --max-steps.
void check_find_lr_flags(const TrainFlags& flags);
/// Resets the flags that read or write files of a training run. Used for --dry-run.
void reset_file_flags(TrainFlags& flags);
/// Limits --overfit to --max-steps steps (default: 1000), unless --epochs is given.
void set_overfit_steps(TrainFlags& flags, bool has_epochs);

}  // namespace fluid
