// `fluidrun merge`: folds low-rank adapters into the weights that they adapt.

#include <CLI/CLI.hpp>
#include <memory>

#include "executor/executor.h"
#include "executor/fluidrun/command.h"
#include "executor/fluidrun/help.h"
#include "executor/fluidrun/inputs.h"
#include "ir/atomic_file.h"
#include "ir/error.h"

namespace fluid {
namespace {

struct MergeFlags {
  std::string program, save;
  ParamsFlags params;
};

int run(const MergeFlags& flags) {
  if (flags.params.path.empty() || flags.params.adapters.empty()) {
    throw UserError("merge needs the weights, --params, and their adapters, --adapters");
  }
  check_writable(flags.save);
  const Program program = open_program(flags.program, flags.params);
  Executor executor(program, cpu());
  load_parameters(executor, flags.params);
  executor.save(flags.save, {.merge_adapters = true});
  return 0;
}

}  // namespace

void add_merge(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("merge", "Fold low-rank adapters into the weights");
  const auto flags = std::make_shared<MergeFlags>();
  add_program_argument(*command, flags->program);
  add_params_flags(*command, flags->params);
  command->add_option("--save", flags->save, "write the merged parameters to this file")
      ->type_name("FILE")
      ->required();
  command->footer(
      "Examples:\n"
      "  fluidrun merge char_gpt --params base.safetensors --adapters lora.safetensors \\\n"
      "    --save merged.safetensors\n\n"
      "Notes:\n"
      "  The program without adapters loads the merged file.");
  command->callback([&action, flags] { action = [flags] { return run(*flags); }; });
}

}  // namespace fluid
