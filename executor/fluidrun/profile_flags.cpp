#include "executor/fluidrun/profile_flags.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>

#include "executor/fluidrun/common.h"
#include "executor/fluidrun/print_to.h"
#include "ir/atomic_file.h"

namespace fluid {
namespace {

/// Each rank has a file of its own: trace.json, trace.rank1.json.
std::string file_of(const std::string& file, const World& world) {
  if (world.size == 1) return file;
  const std::filesystem::path path(file);
  const std::string name =
      fmt::format("{}.rank{}{}", path.stem().string(), world.rank, path.extension().string());
  return (path.parent_path() / name).string();
}

}  // namespace

void add_profile_flags(CLI::App& command, ProfileFlags& flags) {
  CLI::Option* profile = command.add_flag(
      "--profile", flags.file,
      "say where the time of steps goes; --profile=FILE.json also writes a trace for "
      "Perfetto (ui.perfetto.dev), each rank FILE.rankN.json");
  command
      .add_option("--profile-steps", flags.options.steps, "steps of each size that are recorded")
      ->check(must_be_count)
      ->needs(profile)
      ->capture_default_str();
  command
      .add_option("--profile-warmup", flags.options.warm_up, "steps before that are not recorded")
      ->check(must_be_natural)
      ->needs(profile)
      ->capture_default_str();
}

void set_profile(ExecutorOptions& options, const ProfileFlags& flags) {
  if (!flags.asked()) return;
  options.profile = flags.options;
  if (flags.traced()) check_writable(file_of(flags.file, options.distributed.world));
}

void report_profile(const Executor& executor, const ProfileFlags& flags, const World& world) {
  if (!flags.asked()) return;
  const Profile profile = executor.profile();
  if (profile.empty()) {
    print_to(stderr, "nothing to profile: no size of batch had more than {} steps\n",
             flags.options.warm_up);
    return;
  }
  // On a CPU it is measured, which ranks that do it together disturb.
  const bool knows_limits = world.rank == 0 || executor.place() != cpu();
  const Limits limits = knows_limits ? executor.limits() : Limits();
  if (flags.traced()) {
    const std::string file = file_of(flags.file, world);
    write_file_atomically(file, profile.trace(limits));
    if (world.rank == 0) print_to(stderr, "saved {}\n", file);
  }
  if (world.rank == 0) print_to(stdout, "{}", profile.table(limits));
}

}  // namespace fluid
