#include "executor/trainer/learning_rate_finder.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "executor/comm/process_group.h"
#include "executor/trainer/inference.h"
#include "executor/trainer/recipe_cycle.h"
#include "executor/trainer/required_columns.h"
#include "ir/error.h"
#include "ir/text.h"
#include "ops/optim/plateau.h"
#include "ops/optim/recipes.h"

namespace fluid {
namespace {

void check_settings(const LearningRateFinderOptions& s) {
  const auto require = [](bool good, const std::string& message) {
    if (!good) throw UserError("find_learning_rate: " + message);
  };
  require(s.first > 0 && s.first < s.last && std::isfinite(s.last),
          "the rates must rise from above 0, not from " + ir::float_text(s.first) + " to " +
              ir::float_text(s.last));
  require(s.steps >= kFewestLearningRates, "needs " + std::to_string(kFewestLearningRates) +
                                               " steps or more, not " + std::to_string(s.steps));
  require(s.smoothing >= 0 && s.smoothing < 1,
          "smoothing must lie in [0, 1), not be " + ir::float_text(s.smoothing));
  require(s.divergence > 1, "divergence must be above 1, not " + ir::float_text(s.divergence));
}

/// The steps of recipe `name`, or of the only recipe if `name` is empty.
RecipeCycle cycle_of(const Program& program, const std::string& name) {
  if (!name.empty()) return RecipeCycle(program, {{name, 1}});
  if (recipes_of(program.ir().main()).size() > 1) {
    throw UserError("find_learning_rate: program '" + program.ir().name +
                    "' has several recipes: name one in LearningRateFinderOptions::recipe");
  }
  return RecipeCycle(program, {});
}

/// The name of the output that holds the loss of the recipe in `cycle`.
std::string required_loss_output(const Program& program, const RecipeCycle& cycle) {
  const ir::Op& train = recipe_named(program.ir().main(), cycle.recipes().front().name);
  if (train.attrs.get_or("schedule", std::string()) != kManualSchedule) {
    throw UserError("find_learning_rate: the program needs the schedule '" +
                    std::string(kManualSchedule) + "'");
  }
  if (cycle.loss().empty()) {
    throw UserError("find_learning_rate: the minimized loss is not an output");
  }
  return cycle.loss();
}

/// Copies the values out of the executor's memory, so that they stay valid while the executor runs.
Snapshot copied(Snapshot snapshot) {
  for (SnapshotVariable& v : snapshot.variables) v.value = v.value.copy();
  return snapshot;
}

/// Runs steps with increasing learning rates. Calls add(rate, loss) after each step, and stops when
/// add() returns false.
template <class F>
void run_steps(Executor& executor, Reader& data, const LearningRateFinderOptions& settings,
               const std::string& loss, F add) {
  const double factor = std::log(settings.last / settings.first);
  for (int64_t step = 0; step < settings.steps;) {
    while (const Batch* batch = next_batch(data, executor.process_group())) {
      const double part = static_cast<double>(step) / static_cast<double>(settings.steps - 1);
      const double rate = settings.first * std::exp(factor * part);
      if (has_unprepared_size(data, *batch)) {
        executor.prepare({.train = {batch->size}, .lengths = executor.lengths_of(*batch)});
      }
      executor.set_learning_rate(rate, settings.recipe);
      if (!add(rate, executor.run(settings.recipe, *batch)[loss].item()) ||
          ++step == settings.steps)
        return;
    }
  }
}

}  // namespace

std::optional<double> suggested_learning_rate(const std::vector<LearningRatePoint>& points) {
  const auto lowest = std::ranges::min_element(points, {}, &LearningRatePoint::smoothed);
  const auto begin = std::max<ptrdiff_t>(1, std::ssize(points) / 10);
  const auto end = std::min(lowest - points.begin() + 1, std::ssize(points) - 1);
  std::optional<double> best;
  double steepest = 0;
  for (ptrdiff_t i = begin; i < end; ++i) {
    const LearningRatePoint &before = points[static_cast<size_t>(i - 1)],
                            &after = points[static_cast<size_t>(i + 1)];
    const double slope =
        (after.smoothed - before.smoothed) / (std::log(after.rate) - std::log(before.rate));
    if (slope >= steepest) continue;
    steepest = slope;
    best = points[static_cast<size_t>(i)].rate;
  }
  return best;
}

LearningRateCurve find_learning_rate(Executor& executor, const Program& program, Reader& data,
                                     const LearningRateFinderOptions& settings) {
  check_settings(settings);
  const RecipeCycle cycle = cycle_of(program, settings.recipe);
  const std::string loss = required_loss_output(program, cycle);
  check_training_columns(program, cycle, data.source());
  executor.prepare(
      {.train = data.batch_sizes(), .lengths = executor.lengths_of(data.source().sample_types())});
  const bool is_rank_0 = executor.process_group().world().rank == 0;
  Snapshot before = copied(executor.snapshot());
  LearningRateCurve curve;
  double average = 0, weight = 0, lowest = INFINITY;
  run_steps(executor, data, settings, loss, [&](double rate, double value) {
    average = settings.smoothing * average + (1 - settings.smoothing) * value;
    weight = settings.smoothing * weight + (1 - settings.smoothing);
    const double smoothed = average / weight;
    if (!std::isfinite(smoothed)) return false;
    curve.points.push_back({rate, value, smoothed});
    lowest = std::min(lowest, smoothed);
    return smoothed <= settings.divergence * std::abs(lowest);
  });
  executor.restore(is_rank_0 ? std::move(before) : Snapshot());
  curve.suggestion = suggested_learning_rate(curve.points);
  return curve;
}

}  // namespace fluid
