#include "executor/fluidrun/flags.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <filesystem>
#include <span>
#include <string_view>
#include <utility>

#include "executor/fluidrun/help.h"
#include "executor/host/parallel.h"
#include "executor/launcher/print_to.h"
#include "executor/options/option_checks.h"
#include "executor/places/place_machine.h"
#include "executor/trainer/best_epoch.h"
#include "ir/atomic_file.h"
#include "ir/error.h"
#include "ir/number.h"
#include "ops/source_kind.h"

namespace fluid {

namespace {

namespace fs = std::filesystem;

std::string default_cache_dir() {
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value != nullptr ? value : "");
  };
  if (const std::string own = variable("FLUID_CACHE"); !own.empty()) return own;
  if (const std::string xdg = variable("XDG_CACHE_HOME"); !xdg.empty()) return xdg + "/fluid";
  const std::string home = variable("HOME");
  return home.empty() ? "" : home + "/.cache/fluid";
}

int64_t workspace_of(const PlaceFlags& flags) {
  return flags.workspace.empty() ? 0 : parse_bytes(flags.workspace);
}

bool has_leading_zero(const std::string& text) { return text.size() > 1 && text[0] == '0'; }

constexpr std::pair<std::string_view, Mode> kModes[] = {
    {"train", Mode::train}, {"eval", Mode::eval}, {"predict", Mode::predict}, {"init", Mode::init}};

Mode find_mode(std::span<const std::pair<std::string_view, Mode>> modes, const std::string& name) {
  std::string all;
  for (const auto& [known, mode] : modes) {
    if (known == name) return mode;
    all += (all.empty() ? "" : ", ") + std::string(known);
  }
  throw UserError("no pipeline '" + name + "'; there are " + all);
}

}  // namespace

void add_cache_flag(CLI::App& command, std::string& cache_dir) {
  cache_dir = default_cache_dir();
  command
      .add_option(
          "--cache-dir", cache_dir,
          "directory of the caches of kernels, at most 512 MiB, of precomputed weights, at most "
          "4 GiB, and of scans of large csv and jsonl files, at most 1 GiB; \"\" disables them "
          "(default: $FLUID_CACHE, $XDG_CACHE_HOME/fluid or ~/.cache/fluid)")
      ->type_name("DIR");
}

std::string validate_positive(const std::string& text) {
  const auto value = parse_number<double>(text);
  const bool good = value && *value > 0 && std::isfinite(*value);
  return good ? "" : "must be a positive number, not " + text;
}

std::string validate_positive_integer(const std::string& text) {
  const bool good = !has_leading_zero(text) && parse_number<int64_t>(text).value_or(0) > 0;
  return good ? "" : "must be a positive integer, not " + text;
}

std::string validate_nonnegative_integer(const std::string& text) {
  const bool good = !has_leading_zero(text) && parse_number<uint64_t>(text);
  return good ? "" : "must be an integer of at least 0, not " + text;
}

void add_place_flags(CLI::App& command, PlaceFlags& flags) {
  add_amp_flags(command, flags.amp);
  command
      .add_option("--dtype", flags.dtype,
                  "floating-point dtype of the whole program: f64 computes in double precision")
      ->type_name("f32|f64");
  command.add_flag("--tf32", flags.tf32,
                   "on a GPU, round the operands of f32 matrix products and convolutions to TF32 "
                   "(10-bit mantissa)");
  begin_group(command, kMemoryGroup);
  command
      .add_option(
          "--workspace", flags.workspace,
          "on a GPU, maximum workspace of library kernels, allocated in the arena (default: 64MiB)")
      ->type_name("BYTES");
  command.add_flag("--no-prefetch", flags.no_prefetch,
                   "on a GPU, use one feed slot instead of two: saves memory, but the copy of a "
                   "batch waits for the previous step");
  begin_group(command, kDeviceGroup);
  command
      .add_option("--place", flags.place,
                  "device to run on. cuda: the first usable GPU; in train, the GPU with index "
                  "LOCAL_RANK. auto: the same GPU, or the CPU if no GPU is usable")
      ->type_name("auto|cpu|cuda|cuda:N")
      ->capture_default_str();
  command.add_option("--threads", flags.threads, "CPU threads; 0: one per core")
      ->check(CLI::Range(0, kMaxThreads).description(""))
      ->type_name("N")
      ->capture_default_str();
  command.add_flag("--tune", flags.tune,
                   "on a CPU, time the kernels of matrix products and convolutions once, and use "
                   "the fastest (default: a cost model predicts the times)");
  command.add_flag(
      "--no-tune", flags.no_tune,
      "on a GPU, use the libraries' default algorithms instead of benchmarking them once");
  add_cache_flag(command, flags.cache_dir);
}

std::unique_ptr<Target> target_of(Place place, const PlaceFlags& flags) {
  return target_of(place, threads_of(flags), {workspace_of(flags), flags.tf32}, flags.cache_dir,
                   flags.tune);
}

std::unique_ptr<Target> predicting_target_of(Place place, const PlaceFlags& flags) {
  return target_of(place, threads_of(flags), {workspace_of(flags), flags.tf32}, flags.cache_dir);
}

void add_memory_flag(CLI::App& command, PlaceFlags& flags) {
  begin_group(command, kMemoryGroup);
  command
      .add_option("--memory", flags.memory,
                  "reject steps whose arena is larger than this, for example 8GiB")
      ->type_name("BYTES");
}

std::optional<DType> program_dtype(const PlaceFlags& flags) {
  if (flags.dtype.empty()) return std::nullopt;
  if (flags.dtype == "f64") return DType::f64;
  if (flags.dtype == "f32") return std::nullopt;
  throw UserError("--dtype " + flags.dtype + ": must be f32 or f64");
}

ExecutorOptions executor_options(const PlaceFlags& flags, uint64_t seed) {
  return {.seed = seed,
          .threads = flags.threads,
          .cache_dir = flags.cache_dir,
          .memory_limit = flags.memory.empty() ? 0 : parse_bytes(flags.memory),
          .precision = {.dtype = program_dtype(flags), .amp = amp_options(flags.amp)},
          .cpu = {.tune = flags.tune},
          .gpu = {.tf32 = flags.tf32,
                  .prefetch = !flags.no_prefetch,
                  .workspace = workspace_of(flags),
                  .tune = !flags.no_tune}};
}

ExecutorOptions training_options(const PlaceFlags& flags, uint64_t seed, int64_t batch) {
  if (!is_amp_auto(flags.amp)) return executor_options(flags, seed);
  PlaceFlags with_o1 = flags;
  with_o1.amp.level = "o1";
  ExecutorOptions options = executor_options(with_o1, seed);
  options.precision.choose_amp = true;
  options.batch = batch;
  return options;
}

Mode parse_mode(const std::string& name) { return find_mode(kModes, name); }

Mode parse_step_mode(const std::string& name) {
  return find_mode(std::span(kModes).first(3), name);  // all modes except init, which has no steps
}

int threads_of(const PlaceFlags& flags) { return thread_count(flags.threads); }

Place place_of(const PlaceFlags& flags, bool cpu_only, int local_rank) {
  if (flags.place != "auto") return parse_place(flags.place, local_rank);
  if (cpu_only) return cpu();
  if (local_rank == 0 && !explain_missing_gpu().empty()) {
    print_to(stderr, "the place is cpu, no GPU is usable: {}\n", explain_missing_gpu());
  }
  return best_place(local_rank);
}

int64_t parse_bytes(const std::string& text) {
  const size_t digits = std::min(text.find_first_of("KMGB"), text.size());
  const double value = parse_number<double>(text.substr(0, digits)).value_or(0);
  const std::map<std::string, double> units = {{"", 1},         {"B", 1},       {"KB", 1e3},
                                               {"MB", 1e6},     {"GB", 1e9},    {"KiB", 1024.0},
                                               {"MiB", 0x1p20}, {"GiB", 0x1p30}};
  const auto found = units.find(text.substr(digits));
  const double bytes = found == units.end() ? 0 : value * found->second;
  if (!(bytes >= 1 && bytes <= 1e18)) {
    throw UserError("'" + text + "' is not a size in bytes; write 512MiB or 8GiB");
  }
  return static_cast<int64_t>(bytes);
}

namespace {

/// The path of the profiler trace of this rank: "trace.rank1.json" with several ranks, "trace.json"
/// with one.
std::string trace_path(const std::string& file, const World& world) {
  if (world.size == 1) return file;
  const std::filesystem::path path(file);
  const std::string name =
      fmt::format("{}.rank{}{}", path.stem().string(), world.rank, path.extension().string());
  return (path.parent_path() / name).string();
}

}  // namespace

void add_profile_flags(CLI::App& command, ProfileFlags& flags) {
  begin_group(command, kDebuggingGroup);
  CLI::Option* profile =
      add_file_flag(command, "--profile", flags.file,
                    "print the time per kernel; --profile=FILE.json also writes a trace for "
                    "Perfetto (ui.perfetto.dev), FILE.rankN.json per rank");
  command.add_option("--profile-steps", flags.options.steps, "recorded steps per batch size")
      ->check(validate_positive_integer)
      ->needs(profile)
      ->type_name("N")
      ->capture_default_str();
  command
      .add_option("--profile-warmup", flags.options.warm_up,
                  "steps per batch size before recording begins")
      ->check(validate_nonnegative_integer)
      ->needs(profile)
      ->type_name("N")
      ->capture_default_str();
}

void set_profile(ExecutorOptions& options, const ProfileFlags& flags) {
  if (!flags.enabled()) return;
  options.profile = flags.options;
  if (flags.writes_trace()) check_writable(trace_path(flags.file, options.distributed.world));
}

void report_profile(const Executor& executor, const ProfileFlags& flags, const World& world) {
  if (!flags.enabled()) return;
  const Profile profile = executor.profile();
  if (profile.empty()) {
    print_to(stderr, "nothing to profile: no batch size ran more than {} steps\n",
             flags.options.warm_up);
    return;
  }
  // On a CPU, peak_rates() runs benchmarks, so only rank 0 calls it: concurrent benchmarks of
  // several ranks would disturb each other.
  const bool measures_peak_rates = world.rank == 0 || executor.place() != cpu();
  const PeakRates rates = measures_peak_rates ? executor.peak_rates() : PeakRates();
  if (flags.writes_trace()) {
    const std::string file = trace_path(flags.file, world);
    write_file_atomically(file, profile.trace(rates));
    if (world.rank == 0) print_to(stderr, "saved {}\n", file);
  }
  if (world.rank == 0) print_to(stdout, "{}", profile.table(rates));
}

namespace {

Buckets buckets_of(const CollectiveFlags& flags) {
  Buckets buckets;
  buckets.first_bytes = parse_bytes(flags.first_bucket);
  buckets.bytes = parse_bytes(flags.bucket);
  if (flags.dtype.empty()) return buckets;
  buckets.dtype = parse_dtype(flags.dtype);
  if (!buckets.dtype || !is_half_precision(*buckets.dtype)) {
    throw UserError("--reduce-dtype is bf16 or f16, not '" + flags.dtype + "'");
  }
  return buckets;
}

}  // namespace

void add_collective_flags(CLI::App& command, CollectiveFlags& flags) {
  begin_group(command, kDistributedGroup);
  command.add_option("--first-bucket", flags.first_bucket, "size of the first gradient bucket")
      ->type_name("BYTES")
      ->capture_default_str();
  command.add_option("--bucket", flags.bucket, "size of the other gradient buckets")
      ->type_name("BYTES")
      ->capture_default_str();
  command
      .add_option("--reduce-dtype", flags.dtype,
                  "dtype of the gradient all-reduce (default: the gradients' dtype)")
      ->type_name("bf16|f16");
  command
      .add_option("--zero", flags.zero, "ZeRO stage; 1 shards the optimizer state over the ranks")
      ->check(CLI::IsMember({0, 1}).description(""))
      ->type_name("0|1")
      ->capture_default_str();
  command.add_flag("--sync-bn", flags.sync_bn, "synchronize batch norm statistics over all ranks");
}

void set_collectives(ExecutorOptions& options, const CollectiveFlags& flags) {
  options.distributed.buckets = buckets_of(flags);
  options.distributed.zero = flags.zero;
  options.distributed.sync_bn = flags.sync_bn;
}

void add_world_flags(CLI::App& command, WorldFlags& flags) {
  begin_group(command, kDistributedGroup);
  command
      .add_option("--comm-timeout", flags.comm_timeout,
                  "timeout of a collective; on a GPU, of all collectives of a step")
      ->check(validate_positive)
      ->type_name("SECONDS")
      ->capture_default_str();
  command
      .add_option("--first-timeout", flags.first_timeout,
                  "timeout of collectives before the first step, while ranks compile, and while "
                  "rank 0 saves")
      ->check(validate_positive)
      ->type_name("SECONDS")
      ->capture_default_str();
  command.add_flag("--force-collectives", flags.force_collectives,
                   "run the collectives in a world of one process (to test NCCL on one GPU)");
  add_collective_flags(command, flags.collectives);
}

void set_world(ExecutorOptions& options, const WorldFlags& flags, const World& world) {
  options.distributed.world = world;
  options.distributed.force_collectives = flags.force_collectives;
  set_collectives(options, flags.collectives);
  const auto milliseconds = [](double seconds) {
    return std::chrono::milliseconds(static_cast<int64_t>(1000 * seconds));
  };
  options.distributed.comm_timeout = milliseconds(flags.comm_timeout);
  options.distributed.rendezvous_timeout = milliseconds(flags.first_timeout);
}

namespace {

constexpr std::string_view kMinutes = "min";

/// Parses a number of minutes: 10 for "10min". Returns nullopt if the suffix is missing or the
/// number is not positive.
std::optional<double> parse_minutes(std::string_view text) {
  if (!text.ends_with(kMinutes)) return std::nullopt;
  text.remove_suffix(kMinutes.size());
  const auto minutes = parse_number<double>(text);
  return minutes && *minutes > 0 && std::isfinite(*minutes) ? minutes : std::nullopt;
}

std::string must_be_interval(const std::string& text) {
  const bool good = parse_minutes(text) || validate_positive_integer(text).empty();
  return good ? "" : "must be a number of steps (500) or of minutes (10min), not " + text;
}

}  // namespace

void add_best_epoch_flags(CLI::App& command, BestEpochFlags& flags) {
  begin_group(command, kTrainingGroup);
  command
      .add_option("--best", flags.output,
                  "metric on --val that selects the best epoch: accuracy:max, loss:min (default: "
                  "the minimized loss); max is the default for metrics such as accuracy")
      ->type_name("OUTPUT:max|OUTPUT:min");
  command
      .add_option("--patience", flags.patience,
                  "stop after this many epochs without improvement (early stopping)")
      ->check(validate_positive_integer)
      ->type_name("N");
  begin_group(command, kFilesGroup);
  command
      .add_option("--save-best", flags.save, "write the parameters of the best epoch (safetensors)")
      ->type_name("FILE");
}

void set_best_epoch(FitOptions& options, const BestEpochFlags& flags, const Program& program,
                    bool has_validation) {
  const char* flag = !flags.output.empty() ? "--best"
                     : flags.patience      ? "--patience"
                     : !flags.save.empty() ? "--save-best"
                                           : nullptr;
  if (flag != nullptr && !has_validation) throw UserError(fmt::format("{} needs --val", flag));
  if (!flags.output.empty()) parse_best(program, flags.output, "--best");
  options.best = flags.output;
  options.patience = flags.patience;
  options.save_best = flags.save;
}

void add_checkpoint_flags(CLI::App& command, CheckpointFlags& flags) {
  begin_group(command, kFilesGroup);
  command
      .add_option("--checkpoint-dir", flags.directory,
                  "write checkpoints to this directory; --resume reads them")
      ->type_name("DIR");
  command
      .add_option("--checkpoint-every", flags.every,
                  "write a checkpoint after this many steps (500) or minutes (10min), instead of "
                  "after each epoch")
      ->check(must_be_interval)
      ->type_name("STEPS|MINUTESmin");
  command
      .add_option("--keep", flags.keep,
                  "number of checkpoints to keep in addition to the best one (default: 3)")
      ->check(validate_positive_integer)
      ->type_name("N");
  command.add_flag("--resume", flags.resume,
                   "resume from the newest checkpoint in --checkpoint-dir, if there is one");
}

CheckpointingOptions checkpointing_options(const CheckpointFlags& flags) {
  const char* flag = flags.resume           ? "--resume"
                     : !flags.every.empty() ? "--checkpoint-every"
                     : flags.keep           ? "--keep"
                                            : nullptr;
  if (flags.directory.empty() && flag != nullptr) {
    throw UserError(fmt::format("{} needs --checkpoint-dir", flag));
  }
  const double minutes = parse_minutes(flags.every).value_or(0);
  const bool by_steps = minutes == 0 && !flags.every.empty();
  return {.directory = flags.directory,
          .every_steps = by_steps ? *parse_number<int64_t>(flags.every) : 0,
          .every_minutes = minutes,
          .keep = flags.keep.value_or(3),
          .resume = flags.resume};
}

}  // namespace fluid
