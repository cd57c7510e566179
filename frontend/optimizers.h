#pragma once

#include <concepts>
#include <string>
#include <vector>

#include "frontend/parameter_groups.h"
#include "ir/graph.h"
#include "ops/optimizers.h"
#include "ops/schedules.h"

namespace fluid {

/// Gradient clipping before the optimizer's update. A limit of 0 means no clipping. If several
/// limits are set, the clips are applied in the order of the fields.
struct Clip {
  double value = 0;        ///< clips each element to [-value, value]
  double norm = 0;         ///< clips the norm of each parameter's gradient separately
  double global_norm = 0;  ///< clips the joint norm of all gradients, as clip_grad_norm_ does
};

/// A struct that holds the settings of a schedule (ops/schedules.h), such as Cosine.
template <class T>
concept ScheduleSettings = requires(const T& schedule) {
  { schedule_attrs_of(schedule) } -> std::same_as<Attrs>;
};

/// A learning rate schedule. A default-constructed Schedule leaves the learning rate constant.
class Schedule {
 public:
  Schedule() = default;
  template <ScheduleSettings T>
  Schedule(const T& settings)  // NOLINT: implicit conversion
      : attrs_(schedule_attrs_of(settings)) {}
  /// The settings of the schedule, as attributes of the op `train`.
  const Attrs& attrs() const { return attrs_; }

 private:
  Attrs attrs_;
};

/// Exponential moving averages of the parameters, as PyTorch's AveragedModel with
/// get_ema_multi_avg_fn(decay) computes them. After the first update, average = p. After each later
/// update, average = decay average + (1 - decay) p. The average of parameter "fc0.w" is the state
/// "fc0.w.ema", f64 if the parameter is f64, else f32. Executor::use_averages() makes eval(),
/// predict() and save() use the averages.
struct Ema {
  double decay = 0;  ///< in [0, 1), such as 0.999; 0: no averages
};

/// Equal-weight averages of the parameters (Izmailov et al., "Averaging weights leads to wider
/// optima and better generalization", 2018), as PyTorch's AveragedModel computes them: the mean of
/// the parameters after update `start` and after each `every` further updates. Before update
/// `start`, the average equals the parameter. The average of parameter "fc0.w" is the state
/// "fc0.w.swa". Otherwise like Ema. A recipe cannot use both Ema and Swa.
struct Swa {
  int64_t start = 0;  ///< first update to average, counted from 1; 0: no averages
  int64_t every = 1;
};

/// Lookahead around the optimizer (Zhang et al., "Lookahead optimizer: k steps forward, 1 step
/// back", 2019). After each `every` updates, the slow weights become slow + alpha * (parameters -
/// slow), and the parameters are set to the slow weights. The slow weights of parameter "fc0.w" are
/// the state "fc0.w.slow".
struct Lookahead {
  int64_t every = 0;  ///< updates per step of the slow weights, such as 5; 0: no lookahead
  double alpha = 0.5;
};

/// Options of minimize() besides the optimizer.
struct MinimizeOptions {
  /// Name of the recipe. Required if the program has several recipes, as a GAN has.
  std::string name = {};
  /// Patterns (name_pattern.h) of the parameters to train, such as {"discriminator"}. The recipe
  /// does not update other parameters. Empty: all parameters that the loss depends on.
  std::vector<std::string> parameters = {};
  Clip clip = {};
  Schedule schedule = {};
  Ema ema = {};
  Swa swa = {};
  Lookahead lookahead = {};
  /// Settings for the parameters recorded so far, applied in order.
  std::vector<ParameterGroup> groups = {};
};

/// A struct that holds the settings of an optimizer (ops/optimizers.h), such as AdamW.
template <class T>
concept Optimizer = requires(const T& optimizer) {
  { recipe_of(optimizer) } -> std::same_as<Attrs>;
};

/// Adds a training recipe to the program of `loss`. A training step computes the gradients of the
/// scalar `loss`, plus the penalties of ParameterOptions, and updates the recipe's trainable
/// parameters on which `loss` depends. Each recipe has its own optimizer states, update counter,
/// schedule and loss scale. Program::save() includes the recipes. `recipe` holds the attributes of
/// the op `train`: "optimizer", "lr" and the optimizer's settings. Throws UserError for a pattern
/// that matches no parameter of the loss, for a duplicate recipe name, and for an unnamed recipe
/// among several.
void minimize(Value loss, Attrs recipe, const MinimizeOptions& options = {},
              const Loc& loc = Loc::here());
template <Optimizer T>
void minimize(Value loss, const T& optimizer, const MinimizeOptions& options = {},
              const Loc& loc = Loc::here()) {
  minimize(loss, recipe_of(optimizer), options, loc);
}

}  // namespace fluid
