#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "executor/executor.h"
#include "executor/fluidrun/amp_flags.h"
#include "frontend/program.h"
#include "ir/type.h"
#include "passes/options.h"
#include "passes/target.h"

namespace CLI {
class App;
}

namespace fluid {

// Checks for options: "" or what is wrong. CLI11's own conversions read 010 as 8, wrap -1 and take
// what is too large as the largest.
std::string must_be_positive(const std::string& text);  ///< a number above 0
std::string must_be_count(const std::string& text);     ///< an integer above 0
std::string must_be_natural(const std::string& text);   ///< an integer of at least 0

/// What every subcommand that runs or compiles a program asks for.
struct PlaceFlags {
  std::string place = "auto";
  int threads = 0;
  std::string dtype;  ///< "f64", or empty: as recorded
  AmpFlags amp;
  std::string cache_dir;  ///< of compiled kernels; empty: none are kept
  std::string memory;     ///< "8GiB", or empty: as much as the machine has
  std::string workspace;  ///< of a GPU's libraries; empty: as much as they have by default
  bool tf32 = false, no_tune = false, no_prefetch = false;
};
void add_place_flags(CLI::App& command, PlaceFlags& flags);
/// --memory, for commands that run steps.
void add_memory_flag(CLI::App& command, PlaceFlags& flags);
/// Throws UserError for another dtype than f32 or f64.
std::optional<DType> dtype_of(const PlaceFlags& flags);

/// How an executor is to run, by the flags and the seed of initial values.
ExecutorOptions executor_options(const PlaceFlags& flags, uint64_t seed = 0);

/// The same of a command that trains, in steps of `batch` samples.
ExecutorOptions training_options(const PlaceFlags& flags, uint64_t seed, int64_t batch);

/// The pipeline of this name: "train", "eval", "predict", or "init", which initialises variables
/// and is no step. Throws UserError for another name.
Mode mode_named(const std::string& name);
/// The same of a step: refuses "init".
Mode step_named(const std::string& name);

/// The place that the flags name, as the passes see it.
std::unique_ptr<Target> target_of(Place place, const PlaceFlags& flags);

/// --threads, or as many as an executor would take.
int threads_of(const PlaceFlags& flags);

/// --place, of the process with this rank on its host. `cpu_only`: what is asked for is done on the
/// CPU alone, so that auto is that.
Place place_of(const PlaceFlags& flags, bool cpu_only = false, int local_rank = 0);

/// A program by its path, or by the name (without an extension) of an example that lies in
/// `examples` next to fluidrun; a directory of that name is no program. Throws UserError with a
/// near miss when there is none.
Program open_program(const std::string& name);
/// A subcommand's program argument.
void add_program_argument(CLI::App& command, std::string& name);

/// --params-layout, of commands that have --params.
void add_params_layout(CLI::App& command, std::string& layout);
/// The layout that --params-layout names; empty: unsaid.
ParamsLayout layout_of(const std::string& name);
/// Sets the parameters from the safetensors file `path`, if there is one. `layout` is that of
/// --params-layout, or empty.
void load_parameters(Executor& executor, const std::string& path, const std::string& layout);
/// Says on stderr that without --params it came from initial values.
void note_initial_parameters(const Executor& executor, const std::string& path);

/// The feeds of a program, in the order in which they were recorded.
std::vector<const ir::Op*> feeds_of(const ir::Program& program);

/// "8GiB", "500MB", "1024" in bytes. Throws UserError.
int64_t parse_bytes(const std::string& text);

}  // namespace fluid
