#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "executor/executor.h"
#include "executor/options/world.h"
#include "frontend/program.h"
#include "frontend/readers/reader.h"

namespace CLI {
class App;
}

namespace fluid {

// The inputs of subcommands: programs, parameters, data.

/// Loads a program by its path, or an example by its name without the extension; examples lie in
/// `examples` beside fluidrun. Throws UserError with a near miss for an unknown name.
Program open_program(const std::string& name);
/// Adds the positional "program".
void add_program_argument(CLI::App& command, std::string& name);

/// The feeds of a program, in the order of recording.
std::vector<const ir::Op*> feeds_of(const ir::Program& program);

/// Adds --params and --params-layout.
void add_params(CLI::App& command, std::string& path, std::string& layout);
/// The layout called `name`; ParamsLayout::unsaid for "".
ParamsLayout layout_of(const std::string& name);
/// Loads the safetensors file `path`, unless `path` is empty. `layout`: see layout_of().
void load_parameters(Executor& executor, const std::string& path, const std::string& layout);
/// Prints a note to stderr when `path` is empty: the parameters are untrained.
void note_initial_parameters(const Executor& executor, const std::string& path);

/// Samples per step when neither --batch nor the data gives a number.
inline constexpr int64_t kDefaultBatch = 100;

/// Opens a data SPEC with `batch` samples per step and rank; 0: all samples when the data asks for
/// full batches, else kDefaultBatch. `shuffle_seed` shuffles unless one step holds all samples.
/// Options in the SPEC take precedence. Drops columns that have no feed of their name. Prints a
/// note to stderr about dropped columns, and about feeds without a column. Throws UserError when no
/// column is left.
Reader open_reader(const Program& program, const std::string& spec, const std::string& split,
                   int64_t batch, std::optional<uint64_t> shuffle_seed, bool drop_last,
                   const World& world = {});
/// Opens a data SPEC for `predict`: in the data's order, and without a note for absent feeds.
Reader open_in_order(const Program& program, const std::string& spec, int64_t batch);

/// Adds --batch for subcommands that read data; 0 when it is absent.
void add_batch(CLI::App& command, int64_t& batch);
/// Adds --batch for subcommands without data.
void add_planned_batch(CLI::App& command, int64_t& batch);
/// Adds --micro-batches, in the memory group.
void add_micro_batches(CLI::App& command, int64_t& micro_batches);
/// Adds --seed of the initial values for subcommands that do not train.
void add_seed(CLI::App& command, uint64_t& seed);

/// The section of --help that lists the kinds of data.
std::string data_help();

}  // namespace fluid
