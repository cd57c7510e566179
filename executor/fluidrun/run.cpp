#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "executor/executor.h"
#include "executor/fluidrun/command.h"
#include "executor/fluidrun/flags.h"
#include "executor/fluidrun/help.h"
#include "executor/fluidrun/inputs.h"
#include "executor/fluidrun/tensor_io.h"
#include "frontend/files/npy.h"
#include "ir/error.h"

namespace fluid {
namespace {

struct RunFlags {
  std::string program;
  ParamsFlags params;
  std::vector<std::string> inputs, outputs, expected;
  double tolerance = 1e-5;
  uint64_t seed = 0;
  PlaceFlags place;
};

std::vector<NamedFile> files_of(const std::vector<std::string>& texts, const std::string& flag) {
  std::vector<NamedFile> files;
  for (const std::string& text : texts) files.push_back(parse_named_file(text, flag));
  return files;
}

/// Computes the number of samples in `column`, the data of `feed`, from the first batch dimension
/// whose size does not depend on kLength. Returns nullopt if `feed` has no such dimension.
std::optional<int64_t> samples_in(const ir::Op& feed, const Tensor& column) {
  const Shape& shape = feed.results[0].type.shape;
  for (size_t d = 0; d < shape.size() && d < column.shape().size(); ++d) {
    if (shape[d].batch && !shape[d].has_length() && shape[d].size > 0)
      return column.shape()[d] / shape[d].size;
  }
  return std::nullopt;
}

/// The batch that the --input flags define. The first feed with a batch dimension determines the
/// batch size; without such a feed, the batch size is 1.
Batch batch_of(const Program& program, const RunFlags& flags) {
  Batch batch;
  for (const std::string& input : flags.inputs) {
    const size_t equals = input.find('=');
    if (equals == std::string::npos || equals == 0) {
      throw UserError("--input " + input + ": write NAME=...");
    }
    const std::string name = input.substr(0, equals), value = input.substr(equals + 1);
    if (batch.find(name) != nullptr) throw UserError("--input " + name + " is given twice");
    batch.columns.emplace_back(name, value.starts_with('@')
                                         ? read_npy(value.substr(1))
                                         : parse_tensor(value, "--input " + input));
  }
  const std::vector<const ir::Op*> feeds = feeds_of(program.ir());
  if (batch.columns.empty() && !feeds.empty()) {
    throw UserError("run needs --input: the program has a feed '" + feeds.front()->symbol + "'");
  }
  batch.size = 1;
  for (const ir::Op* feed : feeds) {
    const Tensor* column = batch.find(feed->symbol);
    const auto samples = column == nullptr ? std::nullopt : samples_in(*feed, *column);
    if (!samples) continue;
    batch.size = *samples;
    break;
  }
  if (batch.size == 0) throw UserError("--input holds no sample: a batch has at least one");
  return batch;
}

/// Throws UserError if the shapes differ, or for the first element of `got` that differs from
/// `want` by more than the tolerance.
void check_equal(const std::string& name, const Tensor& got, const Tensor& want, double tolerance) {
  if (got.shape() != want.shape()) {
    throw UserError("output '" + name + "' is " + got.str() + ", expected " + want.str());
  }
  for (int64_t i = 0; i < got.numel(); ++i) {
    if (elements_match(got, want, i, tolerance)) continue;
    throw UserError(fmt::format("output '{}' element {} is {}, expected {}", name, i,
                                element_text(got, i), element_text(want, i)));
  }
}

void print(const OutputView& output) {
  constexpr int64_t kMaxElements = 16;
  std::string text;
  for (int64_t i = 0; i < std::min(output.value.numel(), kMaxElements); ++i) {
    text += " " + element_text(output.value, i);
  }
  fmt::print("{} {}{}{}\n", output.name, output.value.str(), text,
             output.value.numel() > kMaxElements ? " ..." : "");
}

int run(const RunFlags& flags) {
  const Program program = open_program(flags.program, flags.params);
  const std::vector<NamedFile> written = files_of(flags.outputs, "--output"),
                               expected = files_of(flags.expected, "--expected");
  for (const auto& [name, path] : written) format_of(path);
  const Batch batch = batch_of(program, flags);
  Executor executor(program, place_of(flags.place), executor_options(flags.place, flags.seed));
  std::vector<std::string> feeds;
  for (const auto& [name, tensor] : batch.columns) feeds.push_back(name);
  load_parameters(program, flags.params, executor);
  executor.prepare(
      {.predict = {batch.size}, .predict_feeds = feeds, .lengths = executor.lengths_of(batch)});
  const OutputViews outputs = executor.predict(batch);
  for (const auto& [name, path] : written)
    outputs[name];  // an unknown name throws here, before any file is written
  for (const auto& [name, path] : written) write_output(path, name, outputs[name]);
  for (const auto& [name, path] : expected) {
    check_equal(name, outputs[name], read_npy(path), flags.tolerance);
  }
  if (written.empty() && expected.empty()) {
    for (const OutputView& o : outputs) print(o);
  }
  print_untrained_note(executor, flags.params);
  return 0;
}

}  // namespace

void add_run(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("run", "Run a program once on given inputs");
  const auto flags = std::make_shared<RunFlags>();
  add_program_argument(*command, flags->program);
  begin_group(*command, kDataGroup);
  command
      ->add_option("--input", flags->inputs,
                   "value of a feed: x=4xf32=1,2,3,4 or x=@FILE.npy; may repeat")
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false);
  command
      ->add_option("--output", flags->outputs,
                   "write an output: y=@FILE.npy or y=@FILE.csv; may repeat")
      ->type_name("NAME=@FILE")
      ->allow_extra_args(false);
  command
      ->add_option("--expected", flags->expected,
                   "fail unless an output equals this file: y=@FILE.npy; may repeat")
      ->type_name("NAME=@FILE")
      ->allow_extra_args(false);
  command
      ->add_option("--tolerance", flags->tolerance,
                   "tolerance of --expected for floats: |got - want| <= tolerance * max(1, |want|)")
      ->check(CLI::Validator(CLI::NonNegativeNumber).description(""))
      ->type_name("NUMBER")
      ->capture_default_str();
  add_params_flags(*command, flags->params);
  add_seed_flag(*command, flags->seed);
  add_place_flags(*command, flags->place);
  add_memory_flag(*command, flags->place);
  command->footer("Examples:\n  fluidrun run net.fluid --input x=1x2xf32=1,2 --expected y=@y.npy");
  command->callback([&action, flags] { action = [flags] { return run(*flags); }; });
}

}  // namespace fluid
