#pragma once

#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "executor/executor.h"
#include "executor/fluidrun/reading_flags.h"
#include "executor/options/world.h"
#include "frontend/program.h"
#include "frontend/readers/reader.h"
#include "ir/function_ref.h"

namespace CLI {
class App;
}

namespace fluid {

// Functions that open the inputs of subcommands: programs, parameters and data.

/// Loads a program file by its path, or an example by its name. Throws UserError for an unknown
/// name, and suggests a similar name.
Program open_program(const std::string& name);
/// Adds the positional argument "program".
void add_program_argument(CLI::App& command, std::string& name);

/// The feed ops of a program, in program order.
std::vector<const ir::Op*> feeds_of(const ir::Program& program);

/// Values of the flags that load parameters.
struct ParamsFlags {
  std::string path;               ///< --params; empty: not given
  std::string layout;             ///< --params-layout: "pytorch", "fluid" or empty
  std::vector<std::string> maps;  ///< --params-map
  bool partial = false;           ///< --params-partial
  std::string adapters;           ///< --adapters; empty: not given
  LoadOptions load_options() const;
};
/// Adds --params, --params-layout, --params-map, --params-partial and --adapters.
void add_params_flags(CLI::App& command, ParamsFlags& flags);
/// Opens a program. If --adapters is given, adds the adapters in its file to the program.
Program open_program(const std::string& name, const ParamsFlags& flags);
/// Returns the file that load_parameters() reads the weights from: --params, or --adapters if that
/// file holds all variables of the program beside adapters, as a checkpoint's does; empty: none.
std::string weights_file(const Program& program, const ParamsFlags& flags);
/// Loads the files of --params and --adapters, if given, by calls of `load`, which loads a file as
/// Executor::load() does. Throws UserError if the file of --params holds adapters without the
/// weights, unless --params-partial is given. With `prints`, prints to stderr which flag is not
/// read, the report of --params-map and --params-partial, and that weights beside adapters are
/// untrained.
using LoadFile = FunctionRef<LoadReport(const std::string& path, const LoadOptions& options)>;
void load_parameters(const Program& program, const ParamsFlags& flags, bool prints, LoadFile load);
void load_parameters(const Program& program, const ParamsFlags& flags, Executor& executor);
/// Prints to stderr that the weights beside adapters are untrained.
void print_untrained_weights();
/// Prints to stderr which of --params and --adapters are not read, because the file `instead` is.
void print_unread_files(const ParamsFlags& flags, const std::string& instead);
/// If neither --params nor --adapters is given, prints to stderr that the parameters are untrained.
void print_untrained_note(const Executor& executor, const ParamsFlags& flags);

/// The column table of the training data (encodings and statistics of its columns). open_data()
/// applies the table to other data, such as validation data.
struct TrainingTable {
  ColumnTablePtr table = nullptr;  ///< null: no table
  std::string file = {};           ///< file of a loaded table; empty for a table of opened data
  std::string later_file = {};     ///< file to which training writes `table` later; empty: none

  /// For messages: "in FILE", or "of --data".
  std::string origin() const { return file.empty() ? "of --data" : "in " + file; }
};
/// Returns the column table in the file of --adapters, or else of --params. The table is null if
/// neither file contains a table, or if data of the kind in `spec` needs none.
TrainingTable training_table(const ParamsFlags& flags, const std::string& spec);

/// Batch size if neither --batch nor the data reader gives a batch size.
inline constexpr int64_t kDefaultBatch = 100;

/// Opens the data described by `spec`, with `batch` samples per step and rank. If `batch` is 0,
/// uses all samples if the data asks for full batches, else kDefaultBatch. Shuffles with
/// `shuffle_seed`, unless one step reads all samples. Options in `spec` override the arguments.
/// Drops columns whose names match no feed. With --on-bad-record skip, replaces bad records of
/// split "train" by other samples, and leaves out bad records of other splits. Prints notes to
/// stderr about dropped columns, about feeds that no column matches, about the use of a table from
/// a file, and about random stages of other splits than "train". Throws UserError if no column
/// remains. Sets `*learned` to a table that is used because the FILE of option table=FILE is
/// absent; the caller may write it. If `learned` is null, prints that FILE is absent. `stop`: see
/// OpenOptions::stop.
Reader open_reader(const Program& program, const std::string& spec, const std::string& split,
                   int64_t batch, std::optional<uint64_t> shuffle_seed, bool drop_last,
                   const ReadingFlags& reading, const World& world = {},
                   const TrainingTable& training = {},
                   std::optional<LearnedTable>* learned = nullptr, std::stop_token stop = {});
/// Opens the data described by `spec` for `predict`. Does not shuffle. Prints no notes about feeds
/// that no column matches.
Reader open_predict_reader(const Program& program, const std::string& spec, int64_t batch,
                           const ReadingFlags& reading, const TrainingTable& training);

/// Adds --batch to a subcommand that reads data. `batch` stays 0 if the flag is not given.
void add_data_batch_flag(CLI::App& command, int64_t& batch);
/// Adds --batch to a subcommand that reads no data.
void add_batch_flag(CLI::App& command, int64_t& batch);
/// Adds --length to a subcommand that reads no data.
void add_length_flag(CLI::App& command, std::optional<int64_t>& length);
/// Throws UserError if the program has the dimension kLength but `length`, the value of --length,
/// is missing, or vice versa.
void check_length_flag(const Program& program, std::optional<int64_t> length);
/// Checks the value of --length and substitutes it for the dimension kLength of `program`.
void apply_length_flag(Program& program, std::optional<int64_t> length);
/// The length of the sequences in `data`, or 0 if the program has no dimension kLength.
int64_t length_of(const Program& program, const SampleData& data);
/// Adds --micro-batches to the --help group "Memory" of a subcommand.
void add_micro_batches_flag(CLI::App& command, int64_t& micro_batches);
/// Adds --seed, the seed of the initial parameters, to a subcommand that does not train.
void add_seed_flag(CLI::App& command, uint64_t& seed);

/// The section "Data" of --help, which lists the kinds of data.
std::string data_help();

}  // namespace fluid
