// `fluidrun quantize`: quantizes a trained program to 8-bit integers.

#include "executor/quantization/quantize.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "executor/fluidrun/command.h"
#include "executor/fluidrun/flags.h"
#include "executor/fluidrun/help.h"
#include "executor/fluidrun/inputs.h"
#include "executor/trainer/inference.h"
#include "ir/atomic_file.h"
#include "ir/error.h"

namespace fluid {
namespace {

struct QuantizeFlags {
  std::string program, data, output, save;
  ParamsFlags params;
  std::vector<std::string> keep;
  bool weight_only = false;
  int64_t batch = 0, calibration_batches = 16;
  ReadingFlags reading;
};

Reader open_split(const Program& program, const QuantizeFlags& flags, const std::string& split) {
  return open_reader(program, flags.data, split, flags.batch, {}, false, flags.reading, {},
                     training_table(flags.params, flags.data));
}

void check_flags(const QuantizeFlags& flags) {
  if (flags.params.path.empty()) throw UserError("quantize needs the trained weights, --params");
  if (!flags.weight_only && flags.data.empty()) {
    throw UserError(
        "quantize needs --data, to measure the ranges of activations, or --weight-only");
  }
  if (flags.output == flags.save) {
    throw UserError("quantize: --output and --save-params name the same file, " + flags.output);
  }
  check_writable(flags.output);
  check_writable(flags.save);
}

void print_sizes(const QuantizedProgram& quantized) {
  int64_t in_f32 = 0;
  for (const auto& [name, value] : quantized.values) {
    if (value.dtype() == f32) in_f32 += value.bytes();
  }
  fmt::print("weights  {} in i8\n", quantized.weights.size());
  fmt::print(
      "bytes    {} -> {} ({:.2f} of f32); {} are still f32\n", quantized.bytes_before,
      quantized.bytes_after,
      static_cast<double>(quantized.bytes_after) / static_cast<double>(quantized.bytes_before),
      in_f32);
}

/// Prints the scalar outputs of both programs over the test data.
void print_comparison(Executor& f32_executor, const Program& program, Executor& int8_executor,
                      const Program& quantized, Reader& reader) {
  const NamedScalars before = evaluate(f32_executor, reader, program);
  const NamedScalars after = evaluate(int8_executor, reader, quantized);
  fmt::print("{:<16} {:>12} {:>12}\n", "output", "f32", "int8");
  for (size_t i = 0; i < before.size(); ++i)
    fmt::print("{:<16} {:>12.6g} {:>12.6g}\n", before[i].first, before[i].second, after[i].second);
}

int run(const QuantizeFlags& flags) {
  check_flags(flags);
  const Program program = open_program(flags.program, flags.params);
  Executor executor(program, cpu());
  load_parameters(program, flags.params, executor);
  QuantizeOptions options{.keep = flags.keep, .calibration_batches = flags.calibration_batches};
  std::optional<Reader> calibration;
  if (!flags.weight_only) {
    calibration.emplace(open_split(program, flags, "train"));
    options.calibration = &*calibration;
  }
  std::optional<Reader> test;
  if (!flags.data.empty()) test.emplace(open_split(program, flags, "test"));
  const QuantizedProgram quantized = quantize(executor, program, options);
  quantized.program.save(flags.output);
  Executor int8_executor(quantized.program, cpu());
  set_parameters(int8_executor, quantized);
  int8_executor.set_column_table(executor.column_table());
  int8_executor.save(flags.save);
  print_sizes(quantized);
  if (test) print_comparison(executor, program, int8_executor, quantized.program, *test);
  return 0;
}

}  // namespace

void add_quantize(CLI::App& app, Action& action) {
  CLI::App* command =
      app.add_subcommand("quantize", "Quantize a trained program to 8-bit integers");
  const auto flags = std::make_shared<QuantizeFlags>();
  add_program_argument(*command, flags->program);
  begin_group(*command, kDataGroup);
  command
      ->add_option("--data", flags->data,
                   "data whose split train gives the ranges of activations; prints the outputs in "
                   "f32 and in 8-bit integers over its split test")
      ->type_name("SPEC");
  CLI::Option* batches = command->add_option("--calibration-batches", flags->calibration_batches,
                                             "number of batches that the ranges are measured on");
  batches->check(validate_positive_integer)->type_name("N")->capture_default_str();
  add_data_batch_flag(*command, flags->batch);
  add_reading_flags(*command, flags->reading);
  add_params_flags(*command, flags->params);
  command
      ->add_flag("--weight-only", flags->weight_only,
                 "quantize the weights of linear layers alone; products stay f32")
      ->excludes(batches);
  command
      ->add_option("--keep", flags->keep,
                   "keep the weights in f32 whose name or layer the pattern matches. May repeat")
      ->type_name("PATTERN")
      ->allow_extra_args(false);
  begin_group(*command, kFilesGroup);
  command->add_option("-o,--output", flags->output, "write the quantized program to this file")
      ->type_name("FILE")
      ->required();
  command->add_option("--save-params", flags->save, "write its parameters to this file")
      ->type_name("FILE")
      ->required();
  command->footer(
      "Examples:\n"
      "  fluidrun quantize mnist_fluid --params mnist.safetensors --data digits \\\n"
      "    -o int8.fluid --save-params int8.safetensors\n"
      "  fluidrun predict int8.fluid --params int8.safetensors --data digits\n\n" +
      data_help());
  command->callback([&action, flags] { action = [flags] { return run(*flags); }; });
}

}  // namespace fluid
