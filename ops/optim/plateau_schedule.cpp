#include <algorithm>
#include <limits>

#include "ops/arguments.h"
#include "ops/optim/optimizer.h"
#include "ops/optim/plateau.h"
#include "ops/optim/schedule.h"

namespace fluid {
namespace {

constexpr double kLeastFall = 1e-8;  // PyTorch's eps

}  // namespace

bool PlateauRule::take(double figure, std::span<double> state) const {
  const double infinity = std::numeric_limits<double>::infinity();
  const double best = state[kUnseen] != 0 ? infinity : state[kBest];
  if (figure < best * (1 - threshold)) {
    state[kUnseen] = 0;
    state[kBest] = figure;
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
  const bool falls = before - after > kLeastFall;
  if (falls) state[kFactor] = after / lr;
  return falls;
}

std::optional<PlateauRule> plateau_rule(const Attrs& train) {
  if (train.get_or("schedule", std::string()) != kPlateau) return std::nullopt;
  const Attrs settings =
      complete_attrs(*find_schedule(std::string(kPlateau)), schedule_settings(train), Loc());
  return PlateauRule{.lr = settings.get<double>("lr"),
                     .factor = settings.get<double>("factor"),
                     .patience = settings.get<int64_t>("patience"),
                     .threshold = settings.get<double>("threshold"),
                     .cooldown = settings.get<int64_t>("cooldown"),
                     .min_lr = settings.get<double>("min_lr")};
}

OpDef plateau_schedule_op() {
  return schedule_op({
      .name = std::string(kPlateau),
      .doc = "lr, times `factor` where the epochs' figure has not fallen for more than `patience` "
             "epochs, as PyTorch's ReduceLROnPlateau: what that has come to is an operand.",
      .settings = {{"factor", 0.1, "of the rate before"},
                   {"patience", int64_t{10}, "epochs without a better figure that change nothing"},
                   {"threshold", 1e-4, "a better figure is below 1 - threshold of the best"},
                   {"cooldown", int64_t{0}, "epochs after a change that count for nothing"},
                   {"min_lr", 0.0, "the rate falls no further"}},
      .operands = {{"lr_factor", "float scalar: of lr"}},
      .check =
          [](const InferCtx& c) {
            require_setting(c, "factor", 0, 1);
            require_setting(c, "threshold", 0, 1);
            require_setting(c, "min_lr", 0);
            for (const char* epochs : {"patience", "cooldown"}) {
              c.require(c.attr<int64_t>(epochs) >= 0,
                        "attribute '" + std::string(epochs) + "' must not be negative");
            }
          },
      .rate = [](const LowerCtx& c,
                 const Expr&) { return scalar::cast(c.in(1), f64) * c.attr<double>("lr"); },
  });
}

}  // namespace fluid
