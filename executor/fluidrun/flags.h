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

// CLI11 validators: each returns "" for valid text, else an error message. The checks of CLI11 are
// not used, because CLI11 reads 010 as 8, wraps -1 and saturates large numbers.

/// Returns an error message unless `text` is a positive number.
std::string validate_positive(const std::string& text);
/// Returns an error message unless `text` is a positive integer.
std::string validate_positive_integer(const std::string& text);
/// Returns an error message unless `text` is a non-negative integer.
std::string validate_nonnegative_integer(const std::string& text);

/// Parses a size such as "8GiB", "500MB" or "1024" and returns the bytes. Throws UserError for
/// other text.
int64_t parse_bytes(const std::string& text);

/// Flags of the subcommands that compile programs: the device that runs the program (the place),
/// and the compile options.
struct PlaceFlags {
  std::string place = "auto";
  int threads = 0;    ///< number of CPU threads; 0: one per core
  std::string dtype;  ///< --dtype: "f64"; "f32" or empty keeps the dtypes of the program
  AmpFlags amp;
  std::string cache_dir;  ///< directory of the kernel cache; empty: no cache
  std::string memory;     ///< maximum size of the arena, such as "8GiB"; empty: no limit
  std::string workspace;  ///< maximum workspace of GPU library kernels; empty: the default
  bool tf32 = false, tune = false, no_tune = false, no_prefetch = false;
};
void add_place_flags(CLI::App& command, PlaceFlags& flags);
/// Adds --cache-dir and sets `cache_dir` to its default: $FLUID_CACHE, else $XDG_CACHE_HOME/fluid,
/// else ~/.cache/fluid. The default is empty if these variables and $HOME are not set.
void add_cache_flag(CLI::App& command, std::string& cache_dir);
/// Adds --memory to a subcommand that runs steps.
void add_memory_flag(CLI::App& command, PlaceFlags& flags);
/// Parses --dtype, the dtype of the whole program. Returns nullopt for f32 or if the flag is not
/// given. Throws UserError for a dtype other than f32 and f64.
std::optional<DType> program_dtype(const PlaceFlags& flags);

/// Converts the flags to ExecutorOptions. `seed`: seed of the initial values of the variables.
ExecutorOptions executor_options(const PlaceFlags& flags, uint64_t seed = 0);
/// Like executor_options(), for training steps of `batch` samples. Accepts --amp auto.
ExecutorOptions training_options(const PlaceFlags& flags, uint64_t seed, int64_t batch);

/// Parses the name of a pipeline: "train", "eval", "predict" or "init". Throws UserError for
/// another name.
Mode parse_mode(const std::string& name);
/// Parses the name of a pipeline that has steps: "train", "eval" or "predict". Throws UserError for
/// another name.
Mode parse_step_mode(const std::string& name);

/// The compile target (a CPU or GPU) for `place`.
std::unique_ptr<Target> target_of(Place place, const PlaceFlags& flags);
/// Like target_of(), but times no kernels in spite of --tune.
std::unique_ptr<Target> predicting_target_of(Place place, const PlaceFlags& flags);

/// The number of CPU threads: the value of --threads, or the executor's default if --threads is 0.
int threads_of(const PlaceFlags& flags);

/// The device that --place selects. `local_rank`: rank of this process on its node. With
/// `cpu_only`, "auto" selects the CPU.
Place place_of(const PlaceFlags& flags, bool cpu_only = false, int local_rank = 0);

/// The values of --profile, --profile-steps and --profile-warmup.
struct ProfileFlags {
  std::string file = "false";  ///< path of the trace; "true": table only, "false": no profile
  ProfileOptions options;
  bool enabled() const { return file != "false"; }
  bool writes_trace() const { return enabled() && file != "true"; }
};
void add_profile_flags(CLI::App& command, ProfileFlags& flags);
/// Enables profiling in `options` if --profile is given. Throws UserError if the trace file is not
/// writable.
void set_profile(ExecutorOptions& options, const ProfileFlags& flags);
/// Writes the profiler trace of this rank if the flags request a trace. Rank 0 also prints the
/// table of kernel times.
void report_profile(const Executor& executor, const ProfileFlags& flags, const World& world = {});

/// Flags of the collectives in a data-parallel training step.
struct CollectiveFlags {
  /// Size of the first gradient bucket, and size of each later bucket.
  std::string first_bucket = "1MiB", bucket = "25MiB";
  /// Dtype of the gradient all-reduce: "bf16" or "f16"; empty: the gradients' dtype.
  std::string dtype;
  int zero = 0;  ///< ZeRO stage: 0 or 1
  bool sync_bn = false;
};
void add_collective_flags(CLI::App& command, CollectiveFlags& flags);
/// Copies the flags to `options.distributed`. Throws UserError for a malformed size or dtype.
void set_collectives(ExecutorOptions& options, const CollectiveFlags& flags);

/// Flags of one process of a data-parallel training run. `fluidrun launch`, torchrun or Slurm
/// starts the process.
struct WorldFlags {
  double first_timeout = 300;      ///< timeout of collectives before the first step, in seconds
  double comm_timeout = 60;        ///< timeout of later collectives, in seconds
  bool force_collectives = false;  ///< run collectives even in a world of one process
  CollectiveFlags collectives;
};
void add_world_flags(CLI::App& command, WorldFlags& flags);
/// Copies the flags and `world` to `options.distributed`. Throws UserError for a malformed size or
/// dtype.
void set_world(ExecutorOptions& options, const WorldFlags& flags, const World& world);

/// The values of --best, --patience and --save-best.
struct BestEpochFlags {
  /// --best: metric that selects the best epoch, such as "accuracy:max"; empty: the minimized loss.
  std::string output;
  std::optional<int64_t> patience = {};
  std::string save;
};
void add_best_epoch_flags(CLI::App& command, BestEpochFlags& flags);
/// Copies the flags to `options`. Throws UserError if a flag needs validation data but
/// `has_validation` is false, and if --best names no scalar output of `program`.
void set_best_epoch(FitOptions& options, const BestEpochFlags& flags, const Program& program,
                    bool has_validation);

/// The values of --checkpoint-dir, --checkpoint-every, --keep and --resume.
struct CheckpointFlags {
  std::string directory;
  std::string every;  ///< interval between checkpoints: "500" (steps) or "10min"; empty: one epoch
  std::optional<int64_t> keep = {};
  bool resume = false;
};
void add_checkpoint_flags(CLI::App& command, CheckpointFlags& flags);
/// Converts the flags to CheckpointingOptions. Throws UserError if a flag needs --checkpoint-dir.
CheckpointingOptions checkpointing_options(const CheckpointFlags& flags);

}  // namespace fluid
