#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "executor/executor.h"
#include "executor/fluidrun/amp.h"
#include "executor/trainer/checkpointing_options.h"
#include "executor/trainer/fit_options.h"
#include "ir/type.h"
#include "passes/options.h"
#include "passes/target.h"

namespace CLI {
class App;
}

namespace fluid {

// Validators for options: "", or why the text is invalid. CLI11's own conversions read 010 as 8,
// wrap -1 and saturate large numbers.
std::string must_be_positive(const std::string& text);  ///< a number above 0
std::string must_be_count(const std::string& text);     ///< an integer above 0
std::string must_be_natural(const std::string& text);   ///< an integer of at least 0

/// "8GiB", "500MB", "1024" in bytes. Throws UserError.
int64_t parse_bytes(const std::string& text);

/// Options of every subcommand that compiles a program.
struct PlaceFlags {
  std::string place = "auto";
  int threads = 0;    ///< of the CPU; 0: one per core
  std::string dtype;  ///< "f64", "f32", or empty: dtypes as recorded
  AmpFlags amp;
  std::string cache_dir;  ///< of compiled kernels; empty: no cache
  std::string memory;     ///< "8GiB"; empty: no limit
  std::string workspace;  ///< of a GPU's libraries; empty: their default
  bool tf32 = false, no_tune = false, no_prefetch = false;
};
void add_place_flags(CLI::App& command, PlaceFlags& flags);
/// Adds --memory, for subcommands that run steps.
void add_memory_flag(CLI::App& command, PlaceFlags& flags);
/// Throws UserError unless --dtype is f32, f64 or absent.
std::optional<DType> dtype_of(const PlaceFlags& flags);

/// The executor's options. `seed` initialises the variables.
ExecutorOptions executor_options(const PlaceFlags& flags, uint64_t seed = 0);
/// The executor's options for training steps of `batch` samples; accepts --amp auto.
ExecutorOptions training_options(const PlaceFlags& flags, uint64_t seed, int64_t batch);

/// The mode of the pipeline "train", "eval", "predict" or "init". Throws UserError for another
/// name.
Mode mode_named(const std::string& name);
/// The mode of a step: as mode_named(), without "init".
Mode step_named(const std::string& name);

/// The compile target of `place`.
std::unique_ptr<Target> target_of(Place place, const PlaceFlags& flags);

/// --threads, or the executor's default.
int threads_of(const PlaceFlags& flags);

/// The place that --place names, for the process of this local rank. With `cpu_only`, auto means
/// the CPU.
Place place_of(const PlaceFlags& flags, bool cpu_only = false, int local_rank = 0);

/// --profile and its details, for subcommands that run steps.
struct ProfileFlags {
  std::string file = "false";  ///< of the trace; "true": the table only, "false": no profile
  ProfileOptions options;
  bool asked() const { return file != "false"; }
  bool traced() const { return asked() && file != "true"; }
};
void add_profile_flags(CLI::App& command, ProfileFlags& flags);
/// Turns on profiling when --profile is given. Throws UserError when the trace's path is not
/// writable.
void set_profile(ExecutorOptions& options, const ProfileFlags& flags);
/// Writes the trace of this rank. Rank 0 prints the table.
void report_profile(const Executor& executor, const ProfileFlags& flags, const World& world = {});

/// Options of the collectives in a training step.
struct CollectiveFlags {
  std::string first = "1MiB", others = "25MiB";  ///< bytes of a bucket
  std::string dtype;                             ///< "bf16", "f16"; empty: the gradients' dtype
  int zero = 0;                                  ///< stage of ZeRO: 0 or 1
  bool sync_bn = false;
};
void add_collective_flags(CLI::App& command, CollectiveFlags& flags);
/// Throws UserError for malformed flags.
void set_collectives(ExecutorOptions& options, const CollectiveFlags& flags);

/// Options of a process that trains in a world started by `fluidrun launch`, torchrun or Slurm.
struct WorldFlags {
  double first_timeout = 300;      ///< seconds, until the first step
  double timeout = 60;             ///< seconds, afterwards
  bool force_collectives = false;  ///< see ExecutorOptions
  CollectiveFlags collectives;
};
void add_world_flags(CLI::App& command, WorldFlags& flags);
/// Throws UserError for malformed flags.
void set_world(ExecutorOptions& options, const WorldFlags& flags, const World& world);

/// --best, --patience and --save-best.
struct BestFlags {
  std::string output;  ///< "accuracy:max"; empty: the minimized loss
  std::optional<int64_t> patience = {};
  std::string save;
};
void add_best_flags(CLI::App& command, BestFlags& flags);
/// Throws UserError when a flag needs validation data and `validates` is false.
void set_best(FitOptions& options, const BestFlags& flags, bool validates);

/// --checkpoint-dir, --checkpoint-every, --keep and --resume.
struct CheckpointFlags {
  std::string directory;
  std::string every;  ///< "500" steps, "10min"; empty: at the end of each epoch
  std::optional<int64_t> keep = {};
  bool resume = false;
};
void add_checkpoint_flags(CLI::App& command, CheckpointFlags& flags);
/// Throws UserError when a flag needs --checkpoint-dir.
CheckpointingOptions checkpointing_options(const CheckpointFlags& flags);

}  // namespace fluid
