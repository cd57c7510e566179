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

/// Momentum: v = momentum v + g + weight_decay p; p -= lr v (with Nesterov: p -= lr (g + momentum
/// v)).
struct Momentum {
  double lr = 0.01;
  double momentum = 0.9;
  bool nesterov = false;
  double weight_decay = 0;
};

/// Kingma and Ba, "Adam: a method for stochastic optimization", ICLR 2015. weight_decay times the
/// parameter is added to the gradient.
struct Adam {
  double lr = 0.001;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0;
};

/// Loshchilov and Hutter, "Decoupled weight decay regularization", ICLR 2019: p -= lr weight_decay
/// p, then Adam's step.
struct AdamW {
  double lr = 0.001;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0.01;
};

/// Gradient clipping before the optimizer's update; 0 disables a rule. Several rules apply in this
/// order.
struct Clip {
  double value = 0;  ///< Clips each element to [-value, value]
  double norm = 0;   ///< Clips the norm of each parameter's gradient, as PyTorch's clip_grad_norm_
  double global_norm = 0;  ///< Clips the norm of all gradients taken together
};

/// Multiplies lr by `factor` every `every` updates.
struct StepDecay {
  Required<int64_t> every;
  double factor = 0.1;
};

/// Linear warmup to lr over `warmup` updates, then cosine decay to `end` at update `steps`.
struct Cosine {
  Required<int64_t> steps;
  int64_t warmup = 0;
  double end = 0;
};

/// Multiplies lr by `factor` when more than `patience` epochs had no loss below 1 - `threshold`
/// times the best, like PyTorch's ReduceLROnPlateau. The next `cooldown` epochs are not counted.
/// Executor::reduce_on_plateau() takes the loss of each epoch.
struct Plateau {
  double factor = 0.1;
  int64_t patience = 10;
  double threshold = 1e-4;
  int64_t cooldown = 0;
  double min_lr = 0;
};

/// The rate is lr until Executor::set_learning_rate() sets another one, between any two steps.
struct Manual {};

/// The learning rate schedule: by the number of updates, by the epochs' losses (Plateau), or by the
/// caller (Manual). Without one the learning rate is a constant of the compiled step.
using Schedule = std::variant<std::monostate, StepDecay, Cosine, Plateau, Manual>;

/// Options of a training step besides its optimizer.
struct StepRules {
  Clip clip = {};
  Schedule schedule = {};
};

/// Makes the program a training program: a step updates every parameter that the scalar `loss`
/// depends on. The program's file includes this training recipe.
void minimize(Value loss, const SGD& optimizer, const StepRules& rules = {},
              const Loc& loc = Loc::here());
void minimize(Value loss, const Momentum& optimizer, const StepRules& rules = {},
              const Loc& loc = Loc::here());
void minimize(Value loss, const Adam& optimizer, const StepRules& rules = {},
              const Loc& loc = Loc::here());
void minimize(Value loss, const AdamW& optimizer, const StepRules& rules = {},
              const Loc& loc = Loc::here());

}  // namespace fluid
