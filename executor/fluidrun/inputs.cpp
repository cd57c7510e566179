#include "executor/fluidrun/inputs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <limits>
#include <set>

#include "executor/fluidrun/flags.h"
#include "executor/fluidrun/help.h"
#include "executor/launcher/print_to.h"
#include "executor/session/batch_length.h"
#include "executor/session/feeds.h"
#include "frontend/files/byte_source.h"
#include "frontend/files/safetensors.h"
#include "frontend/lora.h"
#include "frontend/readers/spec.h"
#include "frontend/readers/stage_spec.h"
#include "ir/error.h"
#include "ir/length.h"
#include "ops/source_kind.h"
#include "passes/set_length.h"

namespace fluid {
namespace {

namespace fs = std::filesystem;

/// The directory of the example programs: `examples` beside fluidrun in a build tree or a bundle,
/// share/fluid/examples in an installed tree.
fs::path examples_dir() {
  const fs::path program = fs::read_symlink("/proc/self/exe").parent_path();
  const fs::path installed = program.parent_path() / "share" / "fluid" / "examples";
  return fs::is_directory(installed) ? installed : program / "examples";
}

std::vector<std::string> example_names() {
  std::vector<std::string> names;
  if (!fs::is_directory(examples_dir())) return names;
  for (const auto& entry : fs::directory_iterator(examples_dir())) {
    if (entry.path().extension() == ".fluid") names.push_back(entry.path().stem().string());
  }
  return names;
}

/// Drops data columns whose names match no feed, and prints a note for each dropped column. With
/// `must_feed_all`, also prints a note for each feed that no column matches.
void drop_unused_columns(DataSource& source, const Program& program, const std::string& spec,
                         bool must_feed_all) {
  const SampleData& data = source.data();
  std::vector<std::string> feeds, missing_feeds, unused;
  for (const ir::Op* feed : feeds_of(program.ir())) {
    feeds.push_back(feed->symbol);
    if (data.find(feed->symbol) == nullptr) missing_feeds.push_back(feed->symbol);
  }
  std::vector<ColumnSelection> kept;
  for (size_t c = 0; c < data.columns().size(); ++c) {
    const std::string& name = data.columns()[c].name;
    if (std::ranges::find(feeds, name) == feeds.end()) {
      unused.push_back(name);
    } else {
      kept.push_back({c, name});
    }
  }
  if (kept.empty()) {
    throw UserError(fmt::format("data '{}' has columns {}, but the program's feeds are {}", spec,
                                fmt::join(unused, ", "), fmt::join(feeds, ", ")));
  }
  if (!unused.empty()) {
    source.transform(
        [&](SampleSourcePtr all) { return select_columns(std::move(all), std::move(kept)); });
  }
  if (unused.size() == 1 && missing_feeds.size() == 1) {
    print_to(stderr,
             "data '{0}': column '{1}' is not used, no feed has its name; add {1}={2} to the data "
             "to feed it to '{2}'\n",
             spec, unused[0], missing_feeds[0]);
    return;
  }
  for (const std::string& name : unused) {
    print_to(stderr, "data '{}': column '{}' is not used, no feed has its name{}\n", spec, name,
             did_you_mean(name, missing_feeds));
  }
  if (!must_feed_all) return;
  for (const std::string& feed : missing_feeds) {
    print_to(stderr, "data '{}': no column is fed to '{}'; write {}\n", spec, feed, source.usage);
  }
}

/// The feeds that an op of the program reads.
std::set<const ir::Op*> used_feeds(const Program& program) {
  std::set<const ir::Op*> feeds;
  for (const auto& op : program.ir().main().ops) {
    for (const Value& v : op->operands) {
      if (source_kind(*v.op()) == SourceKind::feed) feeds.insert(v.op());
    }
  }
  return feeds;
}

/// Throws UserError for a column of `data` whose type does not match the feed of its name. The step
/// checks each batch, but is compiled before.
void check_column_types(const Program& program, const SampleData& data, const std::string& spec) {
  const Batch sample = data.sample_types();
  const int64_t length = length_of(program, data);
  for (const ir::Op* op : used_feeds(program)) {
    const Tensor* column = sample.find(op->symbol);
    if (column == nullptr) continue;
    const Type type = op->results.at(0).type;
    Feed feed = {.name = op->symbol, .declared_dtype = type.dtype, .type = type};
    feed.type.shape = type.shape.at_length(length);
    if (matches_feed(feed, *column, sample.size)) continue;
    Type given{column->dtype(), Shape(column->shape().begin(), column->shape().end()), {}};
    given.shape.front() = kBatch;
    throw UserError(fmt::format("data '{}': column '{}' is {}, but the feed of this name is {}",
                                spec, op->symbol, given.str(), type.str()));
  }
}

/// Returns the number of samples; INT64_MAX for a stream.
int64_t samples_of(const DataSource& data) {
  return data.stream != nullptr ? std::numeric_limits<int64_t>::max() : data.source->samples();
}

/// Prints to stderr which stages of `data` change samples at random. `flag`: the flag that names
/// the data.
void print_random_stages(const char* flag, const DataSource& data) {
  if (data.random_stages.empty()) return;
  print_to(stderr,
           "{}: the random stage{} the samples; deterministic stages, such as resize and "
           "center_crop, give results that depend on no seed\n",
           flag,
           data.random_stages.size() == 1
               ? fmt::format(" {} changes", data.random_stages.front())
               : fmt::format("s {} change", fmt::join(data.random_stages, ", ")));
}

/// Opens the data `spec`, and encodes its columns with the column table in `training`, if any.
/// Prints a note to stderr if the table is from a file and applies to the data. Sets `learned` as
/// open_reader() does.
DataSource open_with_table(const std::string& spec, const std::string& split,
                           const ReadingFlags& reading, const World& world,
                           const TrainingTable& training, std::optional<LearnedTable>* learned,
                           std::stop_token stop = {}) {
  OpenOptions options = {.bad_records = bad_records_of(reading, split == "train"),
                         .training_table = training.table,
                         .first_pass = {.rank = world.rank, .world = world.size},
                         .cache_dir = reading.cache_dir,
                         .training_table_file = training.later_file,
                         .on_learned_table =
                             [&](const LearnedTable& table) {
                               if (world.rank == 0 && table.of_earlier_training) {
                                 print_to(stderr,
                                          "data '{}': there is no table {}: columns are read as in "
                                          "training, by the table {}\n",
                                          spec, table.file, training.origin());
                               }
                               if (learned != nullptr) {
                                 *learned = table;
                               } else if (world.rank == 0 && !table.of_earlier_training) {
                                 print_absent_table(table);
                               }
                             },
                         .stop = std::move(stop)};
  DataSource source = open_data(spec, split, options);
  const bool is_from_file = training.table != nullptr && !training.file.empty();
  if (is_from_file && uses_training_table(spec, *training.table)) {
    print_to(stderr, "data '{}': columns are read as in training, by the table in {}\n", spec,
             training.file);
  }
  return source;
}

/// Throws UserError if the file of --params holds adapters without the weights, unless
/// --params-partial is given.
void check_holds_weights(const LoadReport& report, const ParamsFlags& flags) {
  if (report.kept.empty() || flags.partial) return;
  throw UserError(fmt::format(
      "{}: the file holds adapters without '{}': give the weights with --params, and this file "
      "with --adapters",
      flags.path, report.kept.front()));
}

void print_unread(const char* flag, const std::string& instead) {
  print_to(stderr, "{} is not read: {} is\n", flag, instead);
}

}  // namespace

Program open_program(const std::string& name) {
  const fs::path path(name);
  const bool is_name = path.filename() == name && !path.has_extension();
  const fs::path example = examples_dir() / (name + ".fluid");
  const bool is_example = is_name && fs::exists(example);
  if (fs::exists(path) && !(is_example && fs::is_directory(path))) return Program::load(name);
  if (is_example) return Program::load(example.string());
  throw UserError("no program '" + name + "'" + did_you_mean(name, example_names()));
}

void add_program_argument(CLI::App& command, std::string& name) {
  begin_group(command, kFilesGroup);
  command.add_option("program", name, "a .fluid or .fir file, or the name of an example")
      ->type_name("")
      ->required();
}

void add_params_flags(CLI::App& command, ParamsFlags& flags) {
  begin_group(command, kFilesGroup);
  CLI::Option* params =
      command
          .add_option("--params", flags.path, "load the parameters from this file (safetensors)")
          ->type_name("FILE");
  command
      .add_option("--params-layout", flags.layout,
                  "names and layouts in --params: pytorch, such as fc.weight [out, in], converted "
                  "on load; fluid, such as fc.w [in, out]. Required for square linear weights in "
                  "files not written by Fluid")
      ->check([](const std::string& text) {
        const bool known = text == "pytorch" || text == "fluid";
        return known ? "" : "must be pytorch or fluid, not " + text;
      })
      ->type_name("pytorch|fluid")
      ->needs(params);
  command
      .add_option("--params-map", flags.maps,
                  "rename tensors of --params: 'backbone.(*)=$1'; an empty NAME drops them. Maps "
                  "apply in order; repeatable")
      ->allow_extra_args(false)
      ->type_name("PATTERN=NAME")
      ->needs(params);
  command
      .add_flag("--params-partial", flags.partial,
                "load the tensors of --params that fit, and report the others")
      ->needs(params);
  command
      .add_option("--adapters", flags.adapters,
                  "add the low-rank adapters of this file, which train --lora saved")
      ->type_name("FILE");
}

Program open_program(const std::string& name, const ParamsFlags& flags) {
  Program program = open_program(name);
  if (!flags.adapters.empty()) lora_from_file(program, flags.adapters, Loc());
  return program;
}

LoadOptions ParamsFlags::load_options() const {
  return {.layout = layout == "pytorch" ? ParamsLayout::pytorch
                    : layout == "fluid" ? ParamsLayout::fluid
                                        : ParamsLayout::unspecified,
          .maps = maps,
          .partial = partial};
}

std::string weights_file(const Program& program, const ParamsFlags& flags) {
  if (flags.adapters.empty()) return flags.path;
  std::set<std::string> held;
  for (const TensorEntry& entry :
       parse_safetensors_header(FileBytes(flags.adapters), flags.adapters).entries) {
    held.insert(entry.name);
  }
  const bool holds_all = std::ranges::all_of(program.ir().main().ops, [&](const auto& op) {
    const bool is_weight =
        is_variable(*op) && !is_lora_adapter(*op) && !is_cache(*op) && op->symbol != kRandomState;
    return !is_weight || held.contains(op->symbol);
  });
  return holds_all ? flags.adapters : flags.path;
}

void load_parameters(const Program& program, const ParamsFlags& flags, bool prints, LoadFile load) {
  const std::string weights = weights_file(program, flags);
  if (!flags.path.empty() && weights == flags.path) {
    const LoadReport report = load(flags.path, flags.load_options());
    check_holds_weights(report, flags);
    if (prints && (flags.partial || !flags.maps.empty())) {
      print_to(stderr, "{}: {}", flags.path, report.text());
    }
  } else if (!flags.path.empty() && prints) {
    print_unread("--params", weights);
  }
  if (flags.adapters.empty()) return;
  load(flags.adapters, {});
  if (weights.empty() && prints) print_untrained_weights();
}

void load_parameters(const Program& program, const ParamsFlags& flags, Executor& executor) {
  load_parameters(program, flags, /*prints=*/true,
                  [&](const std::string& path, const LoadOptions& options) {
                    return executor.load(path, options);
                  });
}

void print_untrained_weights() {
  print_to(stderr, "without --params: the frozen weights are untrained, as initialised\n");
}

void print_unread_files(const ParamsFlags& flags, const std::string& instead) {
  if (!flags.path.empty()) print_unread("--params", instead);
  if (!flags.adapters.empty()) print_unread("--adapters", instead);
}

void print_untrained_note(const Executor& executor, const ParamsFlags& flags) {
  if (!flags.path.empty() || !flags.adapters.empty() || executor.parameters().empty()) return;
  print_to(stderr, "without --params: the parameters are untrained, as initialised\n");
}

std::vector<const ir::Op*> feeds_of(const ir::Program& program) {
  std::vector<const ir::Op*> feeds;
  for (const auto& op : program.main().ops) {
    if (source_kind(*op) == SourceKind::feed) feeds.push_back(op.get());
  }
  return feeds;
}

TrainingTable training_table(const ParamsFlags& flags, const std::string& spec) {
  if (!has_table(spec)) return {};
  for (const std::string& path : {flags.adapters, flags.path}) {
    if (path.empty()) continue;
    if (ColumnTablePtr table = read_column_table_metadata(path)) return {std::move(table), path};
  }
  return {};
}

Reader open_predict_reader(const Program& program, const std::string& spec, int64_t batch,
                           const ReadingFlags& reading, const TrainingTable& training) {
  DataSource source = open_with_table(spec, "test", reading, {}, training, nullptr);
  print_random_stages("--data", source);
  drop_unused_columns(source, program, spec, /*must_feed_all=*/false);
  const bool full = batch == 0 && source.full_batch && source.stream == nullptr;
  if (batch == 0) batch = full ? source.source->samples() : kDefaultBatch;
  return source.reader({.batch = batch,
                        .workers = reading.workers,
                        .bad_records = bad_records_of(reading, /*trains=*/false)});
}

Reader open_reader(const Program& program, const std::string& spec, const std::string& split,
                   int64_t batch, std::optional<uint64_t> shuffle_seed, bool drop_last,
                   const ReadingFlags& reading, const World& world, const TrainingTable& training,
                   std::optional<LearnedTable>* learned, std::stop_token stop) {
  DataSource source =
      open_with_table(spec, split, reading, world, training, learned, std::move(stop));
  if (split != "train" && world.rank == 0) {
    print_random_stages(split == "val" ? "--val" : "--data", source);
  }
  drop_unused_columns(source, program, spec, /*must_feed_all=*/true);
  check_column_types(program, source.data(), spec);
  const int64_t samples = samples_of(source);
  const int64_t all = samples / world.size + (samples % world.size > 0);
  if (batch == 0) batch = source.full_batch && source.stream == nullptr ? all : kDefaultBatch;
  const bool can_shuffle = source.stream != nullptr ? source.shuffle_buffer > 0 : batch < all;
  const bool shuffle = source.shuffle.value_or(shuffle_seed.has_value() && can_shuffle);
  if (!shuffle) {
    shuffle_seed.reset();
  } else if (!shuffle_seed) {
    shuffle_seed = 0;
  }
  return source.reader({.batch = batch,
                        .shuffle_seed = shuffle_seed,
                        .drop_last = source.drop_last.value_or(drop_last),
                        .rank = world.rank,
                        .world = world.size,
                        .workers = reading.workers,
                        .bad_records = bad_records_of(reading, split == "train"),
                        .shuffle_buffer = shuffle ? source.shuffle_buffer : 0});
}

void add_data_batch_flag(CLI::App& command, int64_t& batch) {
  begin_group(command, kDataGroup);
  command
      .add_option("--batch", batch,
                  fmt::format("samples per step and rank (default: {}, or all samples if the data "
                              "asks for full batches)",
                              kDefaultBatch))
      ->check(validate_positive_integer)
      ->type_name("N");
}

void add_batch_flag(CLI::App& command, int64_t& batch) {
  begin_group(command, kDataGroup);
  command.add_option("--batch", batch, "samples per step and rank")
      ->check(validate_positive_integer)
      ->type_name("N")
      ->capture_default_str();
}

void add_length_flag(CLI::App& command, std::optional<int64_t>& length) {
  begin_group(command, kDataGroup);
  command
      .add_option("--length", length,
                  "length of the sequences, for a program with the dimension L (kLength)")
      ->check(validate_positive_integer)
      ->type_name("N");
}

void check_length_flag(const Program& program, std::optional<int64_t> length) {
  const bool has_length = ir::has_length(program.ir());
  if (has_length && !length) {
    throw UserError("program '" + program.ir().name + "' has the dimension L: give --length N");
  }
  if (!has_length && length) {
    throw UserError(
        fmt::format("--length {}: program '{}' has no dimension L", *length, program.ir().name));
  }
}

void apply_length_flag(Program& program, std::optional<int64_t> length) {
  check_length_flag(program, length);
  if (length) set_sequence_length(program.ir(), *length);
}

int64_t length_of(const Program& program, const SampleData& data) {
  const BatchLength length(program.ir());
  return length.is_used() ? length.of(data.sample_types()) : 0;
}

void add_seed_flag(CLI::App& command, uint64_t& seed) {
  begin_group(command, kFilesGroup);
  command.add_option("--seed", seed, "seed of the initial parameters, without --params")
      ->check(validate_nonnegative_integer)
      ->type_name("N")
      ->capture_default_str();
}

void add_micro_batches_flag(CLI::App& command, int64_t& micro_batches) {
  begin_group(command, kMemoryGroup);
  command
      .add_option("--micro-batches", micro_batches,
                  "split a training step's batch into this many micro-batches, to save memory")
      ->check(validate_positive_integer)
      ->type_name("N")
      ->capture_default_str();
}

std::string data_help() {
  std::string text = "Data SPEC:\n";
  for (const DataKind& kind : data_kinds()) text += "  " + kind.usage + ": " + kind.doc + "\n";
  return text +
         "  options of every kind, as ?option=value&...: split=train|test, shuffle=0|1, "
         "drop_last=0|1, limit=N, COLUMN=FEED\n"
         "  options of csv, npy, npz, safetensors, jsonl, pipe, folder, tar, mnist and cifar10: "
         "val=0.2&seed=1 holds out a fifth of the training rows for split=test, which --val, eval "
         "and predict read; split=COLUMN: a column holds train, val or test; split=COLUMN:VALUE: "
         "the rows with VALUE are for validation (neither with mnist and cifar10)\n"
         "  stages change the images, one after the other: SPEC|STAGE|STAGE\n" +
         stages_help();
}

}  // namespace fluid
