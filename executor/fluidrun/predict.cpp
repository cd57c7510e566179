#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <limits>
#include <memory>
#include <set>

#include "executor/executor.h"
#include "executor/fluidrun/command.h"
#include "executor/fluidrun/draw_image.h"
#include "executor/fluidrun/flags.h"
#include "executor/fluidrun/help.h"
#include "executor/fluidrun/inputs.h"
#include "executor/fluidrun/memory_report.h"
#include "executor/fluidrun/tensor_io.h"
#include "executor/launcher/print_to.h"
#include "executor/trainer/class_values.h"
#include "executor/trainer/inference.h"
#include "ir/error.h"
#include "ir/text.h"

namespace fluid {
namespace {

struct PredictFlags {
  std::string program, data;
  ParamsFlags params;
  std::vector<std::string> outputs;
  int64_t batch = 0, draw = 0;
  uint64_t seed = 0;
  ReadingFlags reading;
  PlaceFlags place;
  ProfileFlags profile;
};

/// Outputs to print for each sample, and the names of the classes.
struct PrintedRows {
  const std::vector<std::string>& outputs;
  const std::vector<std::string>& classes;  ///< names of the classes of a classifier; may be empty
};

/// Returns one sample of an output as text. If the sample has one element, the text is that
/// element. Otherwise the text is the index and the value of the largest element. If the elements
/// are scores of `classes`, the class name replaces the index.
std::string row_text(const Tensor& value, int64_t sample, const std::vector<std::string>& classes) {
  const int64_t width = value.numel() / value.shape().at(0);
  if (width == 1 && !is_float(value.dtype())) return element_text(value, sample);
  const int64_t best = largest_in_row(value, sample);
  const double score = clear_nan_sign(value.at(sample * width + best));
  if (width == 1) return fmt::format("{:.6g}", score);
  if (!are_scores(value, classes)) return fmt::format("{} ({:.4f})", best, score);
  const std::string& name = classes[static_cast<size_t>(best)];
  return fmt::format("{} ({:.4f})", ir::escape_control_characters(name), score);
}

/// Returns one sample of a column of scalars as text. The text of a class id is the class name.
std::string column_text(const SampleData& data, const std::string& name, const Tensor& column,
                        int64_t sample) {
  const std::vector<std::string> classes = data.classes(name);
  const bool is_class = !classes.empty() && !is_float(column.dtype());
  const int64_t id = is_class ? column.integer(sample) : -1;
  if (id < 0 || id >= std::ssize(classes)) return fmt::format("{:g}", column.at(sample));
  return ir::escape_control_characters(classes[static_cast<size_t>(id)]);
}

/// Names of the outputs that have one row per sample and depend only on `feeds`, the feeds that the
/// data provides. Throws UserError if there is no such output.
std::vector<std::string> computable_outputs(const Program& program, Executor& executor,
                                            const std::vector<std::string>& feeds) {
  const std::vector<std::string> left_out = executor.omitted_outputs(feeds);
  const auto is_left_out = [&](const std::string& name) {
    return std::ranges::find(left_out, name) != left_out.end();
  };
  for (const std::string& name : left_out) {
    print_to(stderr, "output '{}' is left out: it needs a feed that the data does not have\n",
             name);
  }
  std::vector<std::string> rows = per_sample_outputs(program);
  std::erase_if(rows, is_left_out);
  if (!rows.empty()) return rows;
  std::string all;
  for (const ir::Output& o : program.ir().main().outputs) {
    if (is_left_out(o.name)) continue;
    all += (all.empty() ? "'" : ", '") + o.name + "' " + o.value.type().str();
  }
  throw UserError("predict needs an output with one row a sample; there is " + all);
}

/// Prints sample `sample` of a batch. `index`: index of the sample in the data.
void print_sample(const Batch& batch, const OutputViews& outputs, const SampleData& data,
                  const PrintedRows& rows, int64_t sample, int64_t index, bool draw) {
  std::string line = std::to_string(data.source_index(index));
  for (const std::string& name : rows.outputs) {
    line += fmt::format("  {} {}", name, row_text(outputs[name], sample, rows.classes));
  }
  if (draw) {
    for (const auto& [name, tensor] : batch.columns) {
      if (is_image(tensor)) draw_image(tensor, sample);
    }
  }
  for (const auto& [name, tensor] : batch.columns) {
    if (tensor.shape().size() != 1) continue;
    line += fmt::format("  [{} {}]", name, column_text(data, name, tensor, sample));
  }
  fmt::print("{}\n", line);
}

/// The number of samples to print: the value of --draw if given, else 0 if --output is given, else
/// all samples.
int64_t printed_samples(const PredictFlags& flags, const Reader& reader) {
  const int64_t all = reader.samples().value_or(std::numeric_limits<int64_t>::max());
  if (flags.draw > 0) return std::min(flags.draw, all);
  return flags.outputs.empty() ? all : 0;
}

void predict_all(Executor& executor, Reader& reader, const PrintedRows& rows,
                 std::vector<OutputFile>& files, int64_t printed, bool draw) {
  int64_t done = 0;
  predict(executor, reader, [&](const Batch& batch, const OutputViews& outputs) {
    for (OutputFile& file : files) file.append(outputs, reader);
    for (int64_t i = 0; i < batch.size && done + i < printed; ++i) {
      const int64_t index = reader.sample_indices()[static_cast<size_t>(i)];
      print_sample(batch, outputs, reader.source(), rows, i, index, draw);
    }
    done += batch.size;
    return !files.empty() || done < printed;
  });
}

std::vector<OutputFile> output_files(const std::vector<std::string>& outputs) {
  std::vector<OutputFile> files(outputs.begin(), outputs.end());
  std::set<std::filesystem::path> paths;
  for (const OutputFile& file : files) {
    if (!paths.insert(std::filesystem::weakly_canonical(std::filesystem::absolute(file.path())))
             .second) {
      throw UserError("--output writes '" + file.path() + "' twice");
    }
  }
  return files;
}

int run(const PredictFlags& flags) {
  const ResidentMemory before = resident_memory();
  const Program program = open_program(flags.program, flags.params);
  std::vector<OutputFile> files = output_files(flags.outputs);
  Reader reader = open_predict_reader(program, flags.data, flags.batch, flags.reading,
                                      training_table(flags.params, flags.data));
  const ResidentMemory opened = resident_memory();
  ExecutorOptions options = executor_options(flags.place, flags.seed);
  options.find_sample = make_sample_finder({&reader});
  set_profile(options, flags.profile);
  Executor executor(program, place_of(flags.place), options);
  const std::vector<std::string> feeds = column_names(reader.source());
  const std::vector<std::string> rows = computable_outputs(program, executor, feeds);
  for (OutputFile& file : files) file.select_outputs(program, rows);
  load_parameters(program, flags.params, executor);
  const std::vector<std::string> classes =
      class_names(program.ir().main(), executor.column_table().get());
  for (OutputFile& file : files) file.set_class_names(classes);
  executor.prepare({.predict = reader.batch_sizes(),
                    .predict_feeds = feeds,
                    .lengths = lengths_of(executor, reader.source())});
  print_memory_report(executor, {&reader}, before, opened);
  predict_all(executor, reader, {rows, classes}, files, printed_samples(flags, reader),
              flags.draw > 0);
  for (const OutputFile& file : files) file.write();
  print_skipped_records(reader, flags.data);
  print_untrained_note(executor, flags.params);
  report_profile(executor, flags.profile);
  return 0;
}

}  // namespace

void add_predict(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("predict", "Compute outputs for each sample of the data");
  const auto flags = std::make_shared<PredictFlags>();
  add_program_argument(*command, flags->program);
  begin_group(*command, kDataGroup);
  command->add_option("--data", flags->data, "data to predict (default split: test)")
      ->type_name("SPEC")
      ->required();
  add_data_batch_flag(*command, flags->batch);
  add_reading_flags(*command, flags->reading);
  command->add_option("--draw", flags->draw, "print only the first N samples, with their images")
      ->check(validate_positive_integer)
      ->type_name("N");
  add_params_flags(*command, flags->params);
  add_seed_flag(*command, flags->seed);
  begin_group(*command, kFilesGroup);
  command
      ->add_option(
          "--output", flags->outputs,
          "write one row per sample to a file instead of printing. FILE.csv: all outputs with one "
          "row per sample. FILE.npy: the only such output. NAME=@FILE: one output. May repeat")
      ->type_name("[NAME=@]FILE")
      ->allow_extra_args(false);
  add_place_flags(*command, flags->place);
  add_memory_flag(*command, flags->place);
  add_profile_flags(*command, flags->profile);
  command->footer(
      "Examples:\n"
      "  fluidrun predict mnist_fluid --params mnist.safetensors --data digits --draw 3\n\n" +
      data_help());
  command->callback([&action, flags] {
    flags->reading.cache_dir = flags->place.cache_dir;
    action = [flags] { return run(*flags); };
  });
}

}  // namespace fluid
