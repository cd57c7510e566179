// `fluidrun merge`: folds low-rank adapters into the weights that they adapt.

#include <CLI/CLI.hpp>
#include <memory>
#include <optional>

#include "executor/executor.h"
#include "executor/fluidrun/command.h"
#include "executor/fluidrun/help.h"
#include "executor/fluidrun/inputs.h"
#include "frontend/files/byte_source.h"
#include "frontend/files/safetensors.h"
#include "ir/atomic_file.h"
#include "ir/error.h"

namespace fluid {
namespace {

struct MergeFlags {
  std::string program, save;
  ParamsFlags params;
};

/// Returns the dtype to which the program is converted: f64 if all float tensors in the file `path`
/// are f64, which the merged file keeps; nullopt: no conversion.
std::optional<DType> dtype_of_weights(const std::string& path) {
  bool has_floats = false;
  for (const TensorEntry& entry : parse_safetensors_header(FileBytes(path), path).entries) {
    if (!is_float(entry.dtype)) continue;
    if (entry.dtype != f64) return std::nullopt;
    has_floats = true;
  }
  return has_floats ? std::optional(f64) : std::nullopt;
}

int run(const MergeFlags& flags) {
  const std::string needs =
      "merge needs the weights, --params, and their adapters, --adapters; a checkpoint's "
      "parameters.safetensors holds both: give it with --adapters";
  if (flags.params.adapters.empty()) throw UserError(needs);
  check_writable(flags.save);
  const Program program = open_program(flags.program, flags.params);
  const std::string weights = weights_file(program, flags.params);
  if (weights.empty()) throw UserError(needs);
  Executor executor(program, cpu(), {.precision = {.dtype = dtype_of_weights(weights)}});
  load_parameters(program, flags.params, executor);
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
      "    --save merged.safetensors\n"
      "  fluidrun merge char_gpt --adapters run/last/parameters.safetensors --save "
      "merged.safetensors\n\n"
      "Notes:\n"
      "  The program without adapters loads the merged file, which is f64 if the weights are.");
  command->callback([&action, flags] { action = [flags] { return run(*flags); }; });
}

}  // namespace fluid
