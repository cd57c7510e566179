#include "executor/fluidrun/train_flags.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "executor/fluidrun/help.h"
#include "executor/fluidrun/recipe_flags.h"
#include "executor/fluidrun/recipe_option.h"
#include "executor/fluidrun/tensor_io.h"
#include "executor/trainer/learning_rate_finder.h"
#include "ir/error.h"

namespace fluid {
namespace {

constexpr int64_t kOverfitSteps = 1000;

/// Flags that change nothing in a learning rate range test, besides those of schedules.
constexpr const char* kFlagsWithoutFindLr[] = {"--best",
                                               "--checkpoint-dir",
                                               "--checkpoint-every",
                                               "--dry-run",
                                               "--dump",
                                               "--dump-dir",
                                               "--dump-steps",
                                               "--ema",
                                               "--epochs",
                                               "--history",
                                               "--keep",
                                               "--log-every",
                                               "--log-json",
                                               "--lr",
                                               "--overfit",
                                               "--patience",
                                               "--profile",
                                               "--profile-steps",
                                               "--profile-warmup",
                                               "--resume",
                                               "--save",
                                               "--save-best",
                                               "--swa",
                                               "--swa-every",
                                               "--tensorboard",
                                               "--tensorboard-histograms",
                                               "--tensorboard-images",
                                               "--tensorboard-parameters",
                                               "--val"};

void add_find_lr_flag(CLI::App& command, TrainFlags& flags) {
  CLI::Option* find_lr = add_file_flag(
      command, "--find-lr", flags.find_lr,
      "instead of training, run a learning rate range test of 100 steps (or --max-steps), from "
      "1e-7 to 10, and suggest a rate; --find-lr=FILE.svg draws the curve, FILE.csv lists it");
  for (const char* other : kFlagsWithoutFindLr) find_lr->excludes(command.get_option(other));
  for (CLI::Option* other : command.get_options()) {
    if (other->get_group() == kScheduleGroup) find_lr->excludes(other);
  }
}

void add_training_flags(CLI::App& command, TrainFlags& flags) {
  begin_group(command, kTrainingGroup);
  add_recipes_flag(command, flags.recipes);
  add_recipe_option_flag(command, flags.recipe_options);
  command.add_option("--epochs", flags.epochs, "passes over the training data")
      ->check(validate_positive_integer)
      ->type_name("N")
      ->capture_default_str();
  command.add_option("--max-steps", flags.max_steps, "stop after this many steps")
      ->check(validate_positive_integer)
      ->type_name("N");
  command
      .add_option("--log-every", flags.log_every,
                  "print the progress after each N steps, instead of a progress bar")
      ->check(validate_positive_integer)
      ->type_name("N");
  command.add_option("--seed", flags.seed, "seed of the initial parameters, dropout and shuffling")
      ->check(validate_nonnegative_integer)
      ->type_name("N")
      ->capture_default_str();
  command.add_flag("--dry-run", flags.dry_run,
                   "instead of training, run a few steps of each size, and print their times, the "
                   "memory and the time of an epoch; writes no file");
  add_best_epoch_flags(command, flags.best);
}

void add_overfit_flag(CLI::App& command, TrainFlags& flags) {
  begin_group(command, kTrainingGroup);
  CLI::Option* overfit =
      command
          .add_option("--overfit", flags.overfit,
                      "train on the first N samples alone, until the loss is small; the exit code "
                      "tells whether the program can learn them")
          ->check(validate_positive_integer)
          ->type_name("N");
  for (const char* other : {"--val", "--best", "--patience", "--save-best", "--checkpoint-dir",
                            "--checkpoint-every", "--keep", "--resume"}) {
    overfit->excludes(command.get_option(other));
  }
}

void add_file_flags(CLI::App& command, TrainFlags& flags) {
  add_params_flags(command, flags.params);
  command
      .add_option("--save", flags.save,
                  "write the parameters to this file at the end (safetensors)")
      ->type_name("FILE");
  command
      .add_option(
          "--log-json", flags.log_json,
          "write one JSON object per line to this file: for each step, validation and epoch")
      ->type_name("FILE");
  command
      .add_option("--history", flags.history,
                  "write a line for each epoch to this CSV file: outputs on the training and "
                  "validation data, times")
      ->type_name("FILE");
  CLI::Option* tensorboard =
      command
          .add_option("--tensorboard", flags.tensorboard,
                      "write a TensorBoard event file to this directory: outputs of steps and "
                      "epochs, learning rate, loss scale, the program")
          ->type_name("DIR");
  CLI::Option* histograms =
      command
          .add_option("--tensorboard-histograms", flags.tensorboard_options.histograms_every,
                      "add histograms of parameters and gradients after each N steps")
          ->check(validate_positive_integer)
          ->type_name("N")
          ->needs(tensorboard);
  command
      .add_option("--tensorboard-parameters", flags.tensorboard_options.histograms_of,
                  "parameters or layers of which histograms are added (default: all)")
      ->type_name("PATTERN")
      ->needs(histograms);
  command
      .add_option("--tensorboard-images", flags.tensorboard_options.images,
                  "add the first N samples of each epoch that are images, as they are fed, and the "
                  "outputs for them that are images")
      ->check(validate_positive_integer)
      ->type_name("N")
      ->needs(tensorboard);
  add_checkpoint_flags(command, flags.checkpoint);
}

}  // namespace

void add_train_flags(CLI::App& command, TrainFlags& flags) {
  add_program_argument(command, flags.program);
  begin_group(command, kDataGroup);
  command.add_option("--data", flags.data, "training data")->type_name("SPEC")->required();
  command.add_option("--val", flags.val, "validation data, evaluated after each epoch")
      ->type_name("SPEC");
  add_data_batch_flag(command, flags.batch);
  add_reading_flags(command, flags.reading);
  command.add_flag("--drop-last", flags.drop_last,
                   "drop the last batch of an epoch if it is smaller");
  add_training_flags(command, flags);
  add_optimizer_flags(command, flags.optimizer);
  add_update_flags(command, flags.update);
  add_schedule_flags(command, flags.schedule);
  add_parameter_flags(command, flags.parameters);
  add_file_flags(command, flags);
  add_overfit_flag(command, flags);
  add_world_flags(command, flags.world);
  add_place_flags(command, flags.place);
  add_loss_scale_flags(command, flags.place.amp.loss_scale);
  add_memory_flag(command, flags.place);
  add_micro_batches_flag(command, flags.micro_batches);
  begin_group(command, kDebuggingGroup);
  command.add_flag("--check-finite", flags.check_finite,
                   "rerun a step with a non-finite loss or overflowed f16 gradients, and name the "
                   "first op that produces a non-finite value");
  command.add_flag("--verify-plan", flags.verify_plan,
                   "on the CPU, fill dead memory with NaN to check the memory plan");
  add_profile_flags(command, flags.profile);
  add_dump_flags(command, flags.dump);
  add_find_lr_flag(command, flags);
}

void check_find_lr_flags(const TrainFlags& flags) {
  const std::string file = flags.find_lr_file();
  if (!file.empty()) check_extension(file, {".svg", ".csv"}, "the curve is");
  if (flags.max_steps == 0 || flags.max_steps >= kFewestLearningRates) return;
  throw UserError(fmt::format("--find-lr needs {} steps or more: --max-steps is {}",
                              kFewestLearningRates, flags.max_steps));
}

void reset_file_flags(TrainFlags& flags) {
  for (std::string* path :
       {&flags.save, &flags.best.save, &flags.log_json, &flags.history, &flags.tensorboard}) {
    path->clear();
  }
  flags.checkpoint = {};
  flags.profile = {};
  flags.dump = {};
}

void set_overfit_steps(TrainFlags& flags, bool has_epochs) {
  if (has_epochs) return;
  if (flags.max_steps == 0) flags.max_steps = kOverfitSteps;
  flags.epochs = flags.max_steps;
}

}  // namespace fluid
