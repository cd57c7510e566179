#pragma once

#include <concepts>
#include <variant>
#include <vector>

#include "frontend/parameter_groups.h"
#include "ir/graph.h"
#include "ops/optimizers.h"
#include "ops/required.h"

namespace fluid {

/// Gradient clipping before the optimizer's update. A limit of 0 means no clipping. If several
/// limits are set, the clips are applied in the order of the fields.
struct Clip {
  double value = 0;        ///< clips each element to [-value, value]
  double norm = 0;         ///< clips the norm of each parameter's gradient separately
  double global_norm = 0;  ///< clips the joint norm of all gradients, as clip_grad_norm_ does
};

/// Schedule: multiplies the learning rate by `factor` every `every` updates.
struct StepDecay {
  Required<int64_t> every;
  double factor = 0.1;
};

/// Schedule: the learning rate rises linearly to the optimizer's lr over `warmup` updates, then
/// falls along a cosine to `end` at update `steps`.
struct Cosine {
  Required<int64_t> steps;
  int64_t warmup = 0;
  double end = 0;
};

/// Schedule like PyTorch's ReduceLROnPlateau. An epoch is bad if its loss is not below (1 -
/// `threshold`) times the best loss. After more than `patience` consecutive bad epochs, multiplies
/// the learning rate by `factor`. The `cooldown` epochs after a reduction never count as bad. The
/// caller passes the loss of each epoch to Executor::reduce_on_plateau().
struct Plateau {
  double factor = 0.1;
  int64_t patience = 10;
  double threshold = 1e-4;
  int64_t cooldown = 0;
  double min_lr = 0;
};

/// Schedule: starts at the optimizer's lr; Executor::set_learning_rate() changes the learning rate.
struct Manual {};

/// The learning rate schedule. std::monostate: the compiled step has a constant learning rate.
using Schedule = std::variant<std::monostate, StepDecay, Cosine, Plateau, Manual>;

/// Exponential moving averages of the parameters, as PyTorch's AveragedModel with
/// get_ema_multi_avg_fn(decay) computes them. After the first update, average = p. After each later
/// update, average = decay average + (1 - decay) p. The average of parameter "fc0.w" is the state
/// "fc0.w.ema", f64 if the parameter is f64, else f32. Executor::use_averages() makes eval(),
/// predict() and save() use the averages.
struct Ema {
  double decay = 0;  ///< in [0, 1), such as 0.999; 0: no averages
};

/// Options of minimize() besides the optimizer.
struct MinimizeOptions {
  Clip clip = {};
  Schedule schedule = {};
  Ema ema = {};
  /// Settings of the parameters that are recorded so far, in their order.
  std::vector<ParameterGroup> groups = {};
};

/// A struct of an optimizer's settings (ops/optimizers.h), such as AdamW.
template <class T>
concept Optimizer = requires(const T& optimizer) {
  { recipe_of(optimizer) } -> std::same_as<Attrs>;
};

/// Makes the program of `loss` a training program. A training step computes the gradients of the
/// scalar `loss` and updates every trainable parameter on which `loss` depends. Program::save()
/// includes this training recipe. `recipe`: the attributes of the op `train`: "optimizer", "lr" and
/// the optimizer's settings.
void minimize(Value loss, Attrs recipe, const MinimizeOptions& options = {},
              const Loc& loc = Loc::here());
template <Optimizer T>
void minimize(Value loss, const T& optimizer, const MinimizeOptions& options = {},
              const Loc& loc = Loc::here()) {
  minimize(loss, recipe_of(optimizer), options, loc);
}

}  // namespace fluid
