#pragma once

#include <variant>

#include "ir/graph.h"
#include "ops/required.h"

namespace fluid {

/// Stochastic gradient descent: p -= lr (g + weight_decay p).
struct SGD {
  double lr = 0.01;
  double weight_decay = 0;
};

/// SGD with momentum: v = momentum v + g + weight_decay p; p -= lr v (with Nesterov: p -= lr (g +
/// momentum v)).
struct Momentum {
  double lr = 0.01;
  double momentum = 0.9;
  bool nesterov = false;
  double weight_decay = 0;
};

/// Adagrad: Duchi et al., "Adaptive subgradient methods for online learning and stochastic
/// optimization", JMLR 2011. s += g^2; p -= lr g / (sqrt(s) + eps), where g includes weight_decay
/// p. After t updates, lr is divided by 1 + t lr_decay.
struct Adagrad {
  double lr = 0.01;
  double lr_decay = 0;
  double eps = 1e-10;
  double weight_decay = 0;
};

/// Adam: Kingma and Ba, "Adam: a method for stochastic optimization", ICLR 2015. Weight decay adds
/// weight_decay p to the gradient.
struct Adam {
  double lr = 0.001;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0;
};

/// AdamW: Loshchilov and Hutter, "Decoupled weight decay regularization", ICLR 2019. Applies p -=
/// lr weight_decay p, then Adam's update without weight decay.
struct AdamW {
  double lr = 0.001;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0.01;
};

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
};

/// Makes the program of `loss` a training program. A training step computes the gradients of the
/// scalar `loss` and updates every trainable parameter on which `loss` depends. Program::save()
/// includes this training recipe.
void minimize(Value loss, const SGD& optimizer, const MinimizeOptions& options = {},
              const Loc& loc = Loc::here());
void minimize(Value loss, const Momentum& optimizer, const MinimizeOptions& options = {},
              const Loc& loc = Loc::here());
void minimize(Value loss, const Adagrad& optimizer, const MinimizeOptions& options = {},
              const Loc& loc = Loc::here());
void minimize(Value loss, const Adam& optimizer, const MinimizeOptions& options = {},
              const Loc& loc = Loc::here());
void minimize(Value loss, const AdamW& optimizer, const MinimizeOptions& options = {},
              const Loc& loc = Loc::here());

}  // namespace fluid
