#include <algorithm>
#include <limits>

#include "ops/arguments.h"
#include "ops/optim/optimizer.h"
#include "ops/optim/plateau.h"
#include "ops/optim/schedule.h"

namespace fluid {
namespace {

constexpr double kMinDecay = 1e-8;  // `eps` of PyTorch's ReduceLROnPlateau

// A program declares one initial value for all elements of the state, and the factor starts at 1.
// The counters are therefore stored plus 1.

}  // namespace

bool PlateauRule::update(double metric, std::span<double> state) const {
  const double infinity = std::numeric_limits<double>::infinity();
  const double best = state[kNoMetricYet] != 0 ? infinity : state[kBest];
  if (metric < best * (1 - threshold)) {
    state[kNoMetricYet] = 0;
    state[kBest] = metric;
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

std::optional<PlateauRule> plateau_rule(const Attrs& train_attrs) {
  if (train_attrs.get_or("schedule", std::string()) != kPlateau) return std::nullopt;
  const Attrs settings =
      complete_attrs(*find_schedule(std::string(kPlateau)), schedule_settings(train_attrs), Loc());
  return PlateauRule{.lr = settings.get<double>("lr"),
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
             "ReduceLROnPlateau. The caller passes the metric, such as the loss, to "
             "Executor::reduce_on_plateau().",
      .settings = {{"factor", 0.1, "factor of the learning rate at each decay", false, 0, 1},
                   {"patience", int64_t{10},
                    "number of epochs without improvement that are tolerated"},
                   {"threshold", 1e-4, "an improvement is a metric below best * (1 - threshold)",
                    false, 0, 1},
                   {"cooldown", int64_t{0}, "number of epochs after a decay that are not counted"},
                   {"min_lr", 0.0, "lower bound of the learning rate"}},
      .operands = {{"lr_factor", "float scalar: factor of lr"}},
      .rate = [](const ScheduleCtx& c) { return c.factor() * c.lr(); },
  });
}

}  // namespace fluid
