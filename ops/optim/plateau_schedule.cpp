#include <algorithm>
#include <limits>

#include "ir/text.h"
#include "ops/arguments.h"
#include "ops/optim/optimizer.h"
#include "ops/optim/plateau.h"
#include "ops/optim/schedule.h"

namespace fluid {
namespace {

constexpr double kMinDecay = 1e-8;                  // `eps` of PyTorch's ReduceLROnPlateau
constexpr const char *kMin = "min", *kMax = "max";  // values of `mode`
constexpr const char *kRel = "rel", *kAbs = "abs";  // values of `threshold_mode`

}  // namespace

bool PlateauRule::is_better(double value, double best) const {
  const double margin = maximizes ? threshold : -threshold;
  const double bound = has_absolute_threshold ? best + margin : best * (1 + margin);
  return maximizes ? value > bound : value < bound;
}

bool PlateauRule::update(double value, std::span<double> state) const {
  const double infinity = std::numeric_limits<double>::infinity();
  const double worst = maximizes ? -infinity : infinity;
  if (is_better(value, state[kNoMetricYet] != 0 ? worst : state[kBest])) {
    state[kNoMetricYet] = 0;
    state[kBest] = value;
    state[kBadEpochs] = 1;
  } else {
    state[kBadEpochs] += 1;
  }
  if (state[kCooldown] > 1) {
    state[kCooldown] -= 1;
    state[kBadEpochs] = 1;
  }
  if (state[kBadEpochs] - 1 <= static_cast<double>(patience)) return false;
  state[kCooldown] = 1 + static_cast<double>(cooldown);
  state[kBadEpochs] = 1;
  const double before = lr * state[kFactor], after = std::max(before * factor, min_lr);
  const bool falls = before - after > kMinDecay;
  if (falls) state[kFactor] = after / lr;
  return falls;
}

void PlateauRule::reset_metric(std::span<double> state) {
  for (const PlateauElement element : {kNoMetricYet, kBest, kBadEpochs, kCooldown}) {
    state[element] = 1;
  }
}

std::optional<PlateauRule> plateau_rule(const Attrs& train_attrs) {
  if (train_attrs.get_or("schedule", std::string()) != kPlateau) return std::nullopt;
  const Attrs settings =
      complete_attrs(*find_schedule(std::string(kPlateau)), schedule_settings(train_attrs), Loc());
  return PlateauRule{.lr = settings.get<double>("lr"),
                     .metric = settings.get<std::string>("metric"),
                     .maximizes = settings.get<std::string>("mode") == kMax,
                     .has_absolute_threshold = settings.get<std::string>("threshold_mode") == kAbs,
                     .factor = settings.get<double>("factor"),
                     .patience = settings.get<int64_t>("patience"),
                     .threshold = settings.get<double>("threshold"),
                     .cooldown = settings.get<int64_t>("cooldown"),
                     .min_lr = settings.get<double>("min_lr")};
}

OpDef plateau_schedule_op() {
  return schedule_def({
      .type = "Plateau",
      .name = std::string(kPlateau),
      .doc = "lr * lr_factor. After an epoch, lr_factor is multiplied by `factor` if the monitored "
             "metric has not improved for more than `patience` epochs, as by PyTorch's "
             "ReduceLROnPlateau. Trainer passes the metric to Executor::reduce_on_plateau().",
      .settings = {{"metric", std::string(), "scalar output that is monitored; empty: the loss"},
                   {"mode",
                    std::string(kMin),
                    "\"min\": smaller metrics are better; \"max\": larger ones are",
                    false,
                    0,
                    0,
                    {kMin, kMax}},
                   {"factor", 0.1, "factor of the learning rate at each decay", false, 0, 1},
                   {"patience", int64_t{10},
                    "number of epochs without improvement that are tolerated"},
                   {"threshold", 1e-4, "the metric must be better than the best one by this much"},
                   {"threshold_mode",
                    std::string(kRel),
                    "\"rel\": `threshold` is a fraction of the best metric; \"abs\": a difference",
                    false,
                    0,
                    0,
                    {kRel, kAbs}},
                   {"cooldown", int64_t{0}, "number of epochs after a decay that are not counted"},
                   {"min_lr", 0.0, "lower bound of the learning rate"}},
      .operands = {{"lr_factor", "float scalar: factor of lr"}},
      .check =
          [](const InferCtx& c) {
            const bool is_fraction = c.attr<std::string>("threshold_mode") == kRel;
            c.require(!is_fraction || c.attr<double>("threshold") < 1,
                      "attribute 'threshold' must lie in [0.0, 1.0) unless 'threshold_mode' is "
                      "abs, not " +
                          ir::float_text(c.attr<double>("threshold")));
          },
      .rate = [](const ScheduleCtx& c) { return c.factor() * c.lr(); },
  });
}

}  // namespace fluid
