#include <CLI/CLI.hpp>
#include <memory>

#include "executor/fluidrun/command.h"
#include "executor/fluidrun/data_flags.h"
#include "executor/fluidrun/training.h"
#include "ir/atomic_file.h"

namespace fluid {

void add_train(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("train", "Train a program on data");
  const auto flags = std::make_shared<TrainFlags>();
  add_program_argument(*command, flags->program);
  command->add_option("--data", flags->data, "the training data")->required();
  command->add_option("--val", flags->val, "data to evaluate after each epoch");
  command->add_option("--epochs", flags->epochs, "times through the data")
      ->check(must_be_count)
      ->capture_default_str();
  add_batch(*command, flags->batch);
  add_micro_batches(*command, flags->micro_batches);
  command->add_option("--lr", flags->lr, "learning rate, instead of the program's")
      ->check(must_be_positive);
  command->add_option("--seed", flags->seed, "of initial values, dropout and shuffling")
      ->check(must_be_natural)
      ->capture_default_str();
  command->add_option("--max-steps", flags->max_steps, "stop after so many steps")
      ->check(must_be_count);
  command->add_option("--params", flags->params, "start from these parameters (safetensors)");
  add_params_layout(*command, flags->params_layout);
  command->add_option("--save", flags->save, "write the parameters here (safetensors)");
  command->add_option(
      "--log-json", flags->log_json,
      "write a JSON object a line here: of each step, validation and epoch, as it is made");
  add_best_flags(*command, flags->best);
  add_checkpoint_flags(*command, flags->checkpoint);
  add_world_flags(*command, flags->world);
  command->add_flag("--drop-last", flags->drop_last, "leave out a smaller last batch");
  command->add_flag("--check-finite", flags->check_finite,
                    "run a step that overflows again, and name the first op that does");
  command->add_flag("--verify-plan", flags->verify_plan, "poison dead memory to check the plan");
  add_place_flags(*command, flags->place);
  add_loss_scale_flags(*command, flags->place.amp.loss_scale);
  add_memory_flag(*command, flags->place);
  add_profile_flags(*command, flags->profile);
  command->footer(
      "Several processes train together where `fluidrun launch`, torchrun or Slurm starts them.\n"
      "Ctrl-C, SIGTERM and SIGHUP finish the step, save and end with exit code 130, 143 and 129; "
      "a\n"
      "second one ends at once. SIGUSR1 saves and goes on.\n"
      "Example: fluidrun train mnist_fluid --data digits --val digits --epochs 6 "
      "--batch 100 --save mnist.safetensors\n\n" +
      data_help());
  command->callback([&action, flags] {
    action = [flags] {
      for (const std::string& path : {flags->save, flags->best.save}) {
        if (!path.empty()) check_writable(path);  // before all that takes long
      }
      return train(*flags);
    };
  });
}

}  // namespace fluid
