#include "executor/fluidrun/overfit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "executor/comm/process_group.h"
#include "executor/launcher/print_to.h"
#include "executor/trainer/callbacks.h"
#include "executor/trainer/recipe_cycle.h"
#include "executor/trainer/signals.h"
#include "ir/error.h"
#include "passes/metrics.h"

namespace fluid {
namespace {

constexpr double kTargetLossRatio = 0.01;  // target loss / loss before training

/// Returns the value at which metric op `op` counts as perfect; nullopt for other ops.
std::optional<double> best_value(const std::string& op) {
  static const std::map<std::string, double> kBest = {
      {"accuracy", 1}, {"f1_score", 1}, {"roc_auc", 1}, {"r2_score", 1 - kTargetLossRatio}};
  const auto best = kBest.find(op);
  return best == kBest.end() ? std::nullopt : std::optional(best->second);
}

std::optional<double> value_of(const NamedScalars& values, const std::string& name) {
  const auto found = std::ranges::find(values, name, &NamedScalars::value_type::first);
  return found == values.end() ? std::nullopt : std::optional(found->second);
}

/// Formats scalar outputs before and after: "loss 2.3071 -> 0.0190, accuracy 0.1250 -> 1.0000".
std::string text_of(const NamedScalars& before, const NamedScalars& after) {
  std::string text;
  for (const auto& [name, value] : before) {
    const std::optional<double> now = value_of(after, name);
    text += fmt::format("{}{} {} -> {}", text.empty() ? "" : ", ", name, format_scalar(value),
                        now ? format_scalar(*now) : "-");
  }
  return text;
}

}  // namespace

Reader read_first_samples(Reader& data, int64_t samples, uint64_t seed, const World& world) {
  Dataset first = data.read_first(samples, seed);
  samples = first.samples();
  const int64_t all = (samples + world.size - 1) / world.size;
  const int64_t batch = data.options().batch == 0 ? all : data.options().batch;
  const bool shuffles = batch < all;
  return Reader(std::move(first), {.batch = std::min(batch, all),
                                   .shuffle_seed = shuffles ? std::optional(seed) : std::nullopt,
                                   .rank = world.rank,
                                   .world = world.size,
                                   .workers = data.options().workers});
}

bool OverfitTest::loss_is_small(const NamedScalars& values) const {
  const std::optional<double> loss = value_of(values, loss_);
  return loss && first_loss_ >= 0 && *loss <= kTargetLossRatio * first_loss_;
}

std::string OverfitTest::perfect_metric(const NamedScalars& values) const {
  for (const ir::Output& o : program_.ir().main().outputs) {
    if (!is_metric(o.value)) continue;
    const std::optional<double> best = best_value(o.value.op()->name);
    const std::optional<double> value = value_of(values, o.name);
    if (best && value && *value >= *best) return o.name;
  }
  return "";
}

History OverfitTest::run(FitOptions options) {
  loss_ = RecipeCycle(program_, options.recipes).loss();
  if (loss_.empty()) {
    throw UserError(
        "--overfit needs one recipe, whose loss is an output; --recipes NAME selects one");
  }
  const World& world = trainer_.executor().process_group().world();
  const NamedScalars before = trainer_.evaluate(reader_);
  first_loss_ = value_of(before, loss_).value_or(0);
  NamedScalars training;  // mean training outputs of the last epoch
  append_callback(options.on_epoch, [&](const EpochEvent& epoch) {
    training = epoch.training;
    if (loss_is_small(training)) trainer_.stop();
  });
  const History history = trainer_.fit(reader_, options);
  if (SignalHandlers::stop_requested()) return history;
  reader_.seek({});
  const NamedScalars after = trainer_.evaluate(reader_);

  const std::string text = fmt::format("{} samples after {} steps: {}", *reader_.samples(),
                                       history.steps, text_of(before, after));
  const std::string metric = perfect_metric(after);
  const bool in_training = loss_is_small(training), in_inference = loss_is_small(after);
  if (!in_training && !in_inference && metric.empty()) {
    throw UserError(fmt::format(
        "--overfit: not learned: {}. The loss must fall to 1% of its value before training, or a "
        "metric must reach its best value",
        text));
  }
  if (world.rank != 0) return history;
  print_to(stdout, "learned: {}\n", text);
  if (in_training && !in_inference) {
    print_to(stderr, "the loss is small in training mode, but not in inference mode\n");
  }
  return history;
}

}  // namespace fluid
