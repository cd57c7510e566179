#include "executor/fluidrun/common.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <filesystem>
#include <span>
#include <utility>

#include "executor/fluidrun/print_to.h"
#include "executor/host/parallel.h"
#include "executor/options/option_checks.h"
#include "executor/places/place_machine.h"
#include "ir/error.h"
#include "ir/number.h"
#include "ops/source_kind.h"

namespace fluid {
namespace {

namespace fs = std::filesystem;

fs::path examples_dir() { return fs::read_symlink("/proc/self/exe").parent_path() / "examples"; }

std::vector<std::string> example_names() {
  std::vector<std::string> names;
  if (!fs::is_directory(examples_dir())) return names;
  for (const auto& entry : fs::directory_iterator(examples_dir())) {
    if (entry.path().extension() == ".fluid") names.push_back(entry.path().stem().string());
  }
  return names;
}

/// $FLUID_CACHE, else fluid in $XDG_CACHE_HOME or ~/.cache; empty when there is no home.
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

bool octal(const std::string& text) { return text.size() > 1 && text[0] == '0'; }

constexpr std::pair<std::string_view, Mode> kModes[] = {
    {"train", Mode::train}, {"eval", Mode::eval}, {"predict", Mode::predict}, {"init", Mode::init}};

Mode mode_among(std::span<const std::pair<std::string_view, Mode>> modes, const std::string& name) {
  std::string all;
  for (const auto& [known, mode] : modes) {
    if (known == name) return mode;
    all += (all.empty() ? "" : ", ") + std::string(known);
  }
  throw UserError("no pipeline '" + name + "'; there are " + all);
}

}  // namespace

std::string must_be_positive(const std::string& text) {
  const auto value = parse_number<double>(text);
  const bool good = value && *value > 0 && std::isfinite(*value);
  return good ? "" : "must be a positive number, not " + text;
}

std::string must_be_count(const std::string& text) {
  const bool good = !octal(text) && parse_number<int64_t>(text).value_or(0) > 0;
  return good ? "" : "must be a positive integer, not " + text;
}

std::string must_be_natural(const std::string& text) {
  const bool good = !octal(text) && parse_number<uint64_t>(text);
  return good ? "" : "must be an integer of at least 0, not " + text;
}

void add_place_flags(CLI::App& command, PlaceFlags& flags) {
  command
      .add_option("--place", flags.place,
                  "cpu, cuda:N, cuda: the GPU of this process, by LOCAL_RANK, or auto: that where "
                  "there are GPUs, else the CPU")
      ->capture_default_str();
  command.add_option("--threads", flags.threads, "threads of the CPU; 0: one a core")
      ->check(CLI::Range(0, kMostThreads).description(""))
      ->capture_default_str();
  command.add_option("--dtype", flags.dtype, "f64 computes the whole program in double precision");
  add_amp_flags(command, flags.amp);
  command.add_flag("--tf32", flags.tf32,
                   "on a GPU: f32 products and convolutions may round their operands to TF32, 10 "
                   "bits; off unless given");
  command.add_option("--workspace", flags.workspace,
                     "on a GPU: memory for libraries, a part of the arena: 64MiB unless given");
  command.add_flag("--no-tune", flags.no_tune,
                   "on a GPU: take a library's first algorithms instead of timing some, once");
  command.add_flag("--no-prefetch", flags.no_prefetch,
                   "on a GPU: memory for the feeds of one step, not for those of the next besides, "
                   "which then waits for the step before unless its batch is the same");
  flags.cache_dir = default_cache_dir();
  command
      .add_option("--cache-dir", flags.cache_dir,
                  "where compiled kernels are kept, up to 512 MiB; \"\" keeps none")
      ->capture_default_str();
}

std::unique_ptr<Target> target_of(Place place, const PlaceFlags& flags) {
  return target_of(place, threads_of(flags), {workspace_of(flags), flags.tf32}, flags.cache_dir);
}

void add_memory_flag(CLI::App& command, PlaceFlags& flags) {
  command.add_option("--memory", flags.memory, "refuse steps that need more than this: 8GiB");
}

std::optional<DType> dtype_of(const PlaceFlags& flags) {
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
          .precision = {.dtype = dtype_of(flags), .amp = amp_of(flags.amp)},
          .gpu = {.tf32 = flags.tf32,
                  .prefetch = !flags.no_prefetch,
                  .workspace = workspace_of(flags),
                  .tune = !flags.no_tune}};
}

ExecutorOptions training_options(const PlaceFlags& flags, uint64_t seed, int64_t batch) {
  if (!is_automatic(flags.amp)) return executor_options(flags, seed);
  PlaceFlags tried = flags;
  tried.amp.level = "o1";
  ExecutorOptions options = executor_options(tried, seed);
  options.precision.choose_amp = true;
  options.batch = batch;
  return options;
}

Mode mode_named(const std::string& name) { return mode_among(kModes, name); }

Mode step_named(const std::string& name) {
  return mode_among(std::span(kModes).first(3), name);  // all but init
}

int threads_of(const PlaceFlags& flags) { return thread_count(flags.threads); }

Place place_of(const PlaceFlags& flags, bool cpu_only, int local_rank) {
  if (flags.place != "auto") return place_named(flags.place, local_rank);
  if (cpu_only) return cpu();
  if (local_rank == 0 && !why_no_gpu().empty()) {
    print_to(stderr, "the place is cpu, no GPU can be used: {}\n", why_no_gpu());
  }
  return best_place(local_rank);
}

Program open_program(const std::string& name) {
  const fs::path path(name);
  const bool bare = path.filename() == name && !path.has_extension();
  const fs::path example = examples_dir() / (name + ".fluid");
  const bool example_meant = bare && fs::exists(example);
  if (fs::exists(path) && !(example_meant && fs::is_directory(path))) return Program::load(name);
  if (example_meant) return Program::load(example.string());
  throw UserError("no program '" + name + "'" + did_you_mean(name, example_names()));
}

void add_program_argument(CLI::App& command, std::string& name) {
  command.add_option("program", name, "a .fluid or .fir file, or the name of an example")
      ->required();
}

void add_params_layout(CLI::App& command, std::string& layout) {
  command
      .add_option("--params-layout", layout,
                  "how --params holds the weights of linear layers: pytorch, [out, in], which are "
                  "transposed, or fluid, [in, out]; to be said of square ones in a file of others")
      ->check([](const std::string& text) {
        const bool known = text == "pytorch" || text == "fluid";
        return known ? "" : "must be pytorch or fluid, not " + text;
      })
      ->needs("--params");
}

ParamsLayout layout_of(const std::string& name) {
  return name == "pytorch" ? ParamsLayout::pytorch
         : name == "fluid" ? ParamsLayout::fluid
                           : ParamsLayout::unsaid;
}

void load_parameters(Executor& executor, const std::string& path, const std::string& layout) {
  if (!path.empty()) executor.load(path, layout_of(layout));
}

void note_initial_parameters(const Executor& executor, const std::string& path) {
  if (!path.empty() || executor.parameters().empty()) return;
  print_to(stderr, "without --params: the parameters are untrained, as initialised\n");
}

std::vector<const ir::Op*> feeds_of(const ir::Program& program) {
  std::vector<const ir::Op*> feeds;
  for (const auto& op : program.main().ops) {
    if (source_kind(*op) == SourceKind::feed) feeds.push_back(op.get());
  }
  return feeds;
}

int64_t parse_bytes(const std::string& text) {
  const size_t digits = std::min(text.find_first_of("KMGB"), text.size());
  const double value = parse_number<double>(text.substr(0, digits)).value_or(0);
  const std::map<std::string, double> units = {{"", 1},         {"B", 1},       {"KB", 1e3},
                                               {"MB", 1e6},     {"GB", 1e9},    {"KiB", 1024.0},
                                               {"MiB", 0x1p20}, {"GiB", 0x1p30}};
  const auto found = units.find(text.substr(digits));
  if (found == units.end() || !(value > 0) || value > 1e15) {
    throw UserError("'" + text + "' is no size in bytes; write 512MiB or 8GiB");
  }
  return static_cast<int64_t>(value * found->second);
}

}  // namespace fluid
