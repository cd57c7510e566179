#include "executor/tuning/amp_choice.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <limits>
#include <nlohmann/json.hpp>

#include "codegen/backend.h"
#include "codegen/compiler.h"
#include "codegen/object_cache.h"
#include "executor/checkpoint/snapshot.h"
#include "executor/cpu_libraries/library.h"
#include "executor/device/bytes_text.h"
#include "executor/device/out_of_memory.h"
#include "executor/places/device_of.h"
#include "executor/places/place_machine.h"
#include "executor/session/session.h"
#include "executor/session/session_options.h"
#include "executor/tuning/trial_steps.h"
#include "ir/print.h"
#include "ops/optim/recipes.h"

namespace fluid {
namespace {

constexpr double kMargin = 0.95;
constexpr double kTimingBudgetMs = 500;  // time budget in ms for the timed steps of one precision
constexpr std::string_view kPrecisionNames[] = {"f32", "o1", "o2"};  // indexed by Precision

using Precisions = std::vector<Precision>;

size_t index_of(Precision p) { return static_cast<size_t>(p); }

template <class Cost>
Precisions within_margin(const Precisions& candidates, const Cost& cost) {
  const double lowest = cost(*std::ranges::min_element(candidates, {}, cost));
  Precisions near;
  std::ranges::copy_if(candidates, std::back_inserter(near),
                       [&](Precision p) { return kMargin * cost(p) <= lowest; });
  return near;
}

/// Sets of precisions, each a subset of the previous set. `fit`: the step fits in memory. `fast`:
/// the step time is near the minimum. `small`: the memory is near the minimum.
struct Elimination {
  Precisions fit, fast, small;

  explicit Elimination(const StepCosts& costs) {
    for (const Precision p : {Precision::f32, Precision::o1, Precision::o2}) {
      if (!std::isinf(costs[index_of(p)].ms)) fit.push_back(p);
    }
    check(!fit.empty(), "no precision fits");
    fast = within_margin(fit, [&](Precision p) { return costs[index_of(p)].ms; });
    small = within_margin(
        fast, [&](Precision p) { return static_cast<double>(costs[index_of(p)].arena_bytes); });
  }

  std::string_view reason() const {
    if (fit.size() == 1) return "the only one that fits";
    if (fast.size() == 1) return "the fastest";
    return small.size() == 1 ? "the smallest of those as fast"
                             : "the simplest of those as fast and as small";
  }
};

StepCost cost_of(const Program& program, Place place, const ExecutorOptions& options) {
  const SessionOptions settings = session_options(options, place);
  Session session(program.ir().clone(), device_of(place, options, nullptr), settings);
  Options step = settings.passes;
  step.batch = options.batch;
  std::vector<PreparedStep*> steps;
  for (const std::string& recipe : trainable_recipes(program.ir().main())) {
    step.recipe = recipe;
    steps.push_back(&session.prepare(step));
  }
  step.mode = Mode::eval;
  if (steps.empty()) steps.push_back(&session.prepare(step));
  session.initialise();
  const Batch batch = synthetic_batch(program, options.batch);
  const auto run = [&] {
    for (PreparedStep* each : steps) session.run(*each, batch).wait();
  };
  return {median(time_steps(run, kTimingBudgetMs)), session.memory().regions().total_bytes()};
}

/// Measures the cost of a step. If the step does not fit in memory, returns nullopt and stores the
/// error in `why_not`. Propagates other errors.
std::optional<StepCost> cost_if_it_fits(const Program& program, Place place,
                                        const ExecutorOptions& options,
                                        std::exception_ptr& why_not) {
  try {
    return cost_of(program, place, options);
  } catch (const UserError&) {
    why_not = std::current_exception();
  } catch (const OutOfMemory&) {
    why_not = std::current_exception();
  }
  return std::nullopt;
}

/// Part of the cache key. Raise it when other library kernels are chosen for the same program.
constexpr int kLibraryChoiceVersion = 2;

/// The cache key: a hash of everything that affects the measurements.
std::string key_of(const Program& program, Place place, const ExecutorOptions& o) {
  const std::unique_ptr<ir::Program> recorded = strip_locations(program.ir());
  for (ir::Op* train : recipes_of(recorded->main())) train->attrs.erase("lr");
  const AmpOptions amp = o.precision.amp.value_or(AmpOptions());
  return "k" + ObjectCache::hash_digits(fmt::format(
                   "amp {} {} {} {} {} {} {} {} {} {} {} {} {}\n{}, {}\n{}\n{}",
                   kLibraryChoiceVersion, o.batch, o.micro_batches, o.memory_limit, o.gpu.prefetch,
                   fluid::name_of(amp.dtype), fmt::join(amp.in_f32, ","),
                   fmt::join(amp.in_half, ","), o.debug.libraries, o.debug.fuse, o.cpu.tune,
                   o.gpu.tf32, o.gpu.workspace, emit::code_generator_version(), library_version(),
                   describe_machine(place, o.threads, o.cache_dir), ir::print(*recorded)));
}

ObjectCache cache_of(const ExecutorOptions& options) {
  return {options.cache_dir, CompilerOptions().cache_limit};
}

std::string record_of(const AmpChoice& choice) {
  nlohmann::ordered_json record = {{"choice", kPrecisionNames[index_of(choice.precision)]}};
  for (size_t i = 0; i < choice.costs.size(); ++i) {
    record[std::string(kPrecisionNames[i])] = {choice.costs[i].ms, choice.costs[i].arena_bytes};
  }
  return record.dump();
}

}  // namespace

std::string AmpChoice::text() const {
  std::vector<std::string> figures;
  for (size_t i = 0; i < costs.size(); ++i) {
    const std::string size = bytes_text(static_cast<double>(costs[i].arena_bytes));
    figures.push_back(std::isinf(costs[i].ms)
                          ? fmt::format("{} does not fit", kPrecisionNames[i])
                          : fmt::format("{} {:.3g} ms{} in {}", kPrecisionNames[i], costs[i].ms,
                                        i == 0 ? " a step" : "", size));
  }
  const std::string half =
      precision == Precision::f32 ? "" : fmt::format("{} ", fluid::name_of(dtype));
  return fmt::format("{}{}, {}: {}{}", half, kPrecisionNames[index_of(precision)],
                     Elimination(costs).reason(), fmt::join(figures, ", "),
                     cached ? " (measured before)" : "");
}

Precision choose_precision(const StepCosts& costs) { return Elimination(costs).small.front(); }

std::optional<AmpChoice> cached_amp_choice(const Program& program, Place place,
                                           const ExecutorOptions& options) {
  const auto text = cache_of(options).find(key_of(program, place, options));
  if (!text) return std::nullopt;
  const auto record = nlohmann::json::parse(*text);
  AmpChoice choice{.dtype = options.precision.amp.value_or(AmpOptions()).dtype, .cached = true};
  for (size_t i = 0; i < choice.costs.size(); ++i) {
    const auto& cost = record.at(std::string(kPrecisionNames[i]));
    choice.costs[i] = {cost.at(0).get<double>(), cost.at(1).get<int64_t>()};
    if (record.at("choice") == kPrecisionNames[i]) choice.precision = static_cast<Precision>(i);
  }
  return choice;
}

AmpChoice choose_amp(const Program& program, Place place, const ExecutorOptions& given) {
  if (const auto kept = cached_amp_choice(program, place, given)) return *kept;
  ExecutorOptions options = given;
  options.precision.choose_amp = options.debug.verify_plan = options.debug.check_finite = false;
  options.distributed.world = {};
  options.distributed.force_collectives = false;
  options.profile = {};
  AmpChoice choice{.dtype = given.precision.amp.value_or(AmpOptions()).dtype};
  size_t fit = 0;
  std::exception_ptr why_not;
  for (size_t i = 0; i < choice.costs.size(); ++i) {
    choice.precision = static_cast<Precision>(i);
    options.precision.amp = amp_options_of(choice, given.precision.amp);
    const std::optional<StepCost> cost = cost_if_it_fits(program, place, options, why_not);
    choice.costs[i] = cost.value_or(StepCost{.ms = std::numeric_limits<double>::infinity()});
    if (cost) ++fit;
  }
  if (fit == 0) std::rethrow_exception(why_not);
  choice.precision = choose_precision(choice.costs);
  if (fit == choice.costs.size()) {
    cache_of(given).store(key_of(program, place, given), record_of(choice));
  }
  return choice;
}

std::optional<AmpOptions> amp_options_of(const AmpChoice& choice,
                                         const std::optional<AmpOptions>& base) {
  if (choice.precision == Precision::f32) return std::nullopt;
  AmpOptions amp = base.value_or(AmpOptions());
  amp.level = choice.precision == Precision::o2 ? AmpLevel::o2 : AmpLevel::o1;
  return amp;
}

}  // namespace fluid
