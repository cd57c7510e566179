#pragma once

#include <variant>

#include "ir/graph.h"

namespace fluid {

/// p -= lr (g + weight_decay p).
struct SGD {
  double lr = 0.01;
  double weight_decay = 0;
};

/// v = momentum v + g + weight_decay p; p -= lr v (with Nesterov: p -= lr (g + momentum v)).
struct Momentum {
  double lr = 0.01;
  double momentum = 0.9;
  bool nesterov = false;
  double weight_decay = 0;
};

/// Kingma and Ba, "Adam: a method for stochastic optimization", ICLR 2015; weight_decay is added to
/// the gradient.
struct Adam {
  double lr = 0.001;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0;
};

/// Loshchilov and Hutter, "Decoupled weight decay regularization", ICLR 2019: the parameter loses
/// lr weight_decay of itself, then takes Adam's step.
struct AdamW {
  double lr = 0.001;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0.01;
};

/// How gradients are clipped before the optimizer sees them; 0: not at all. With several, in this
/// order.
struct Clip {
  double value = 0;        ///< each element, to [-value, value]
  double norm = 0;         ///< the norm of each parameter's gradient, as PyTorch's clip_grad_norm_
  double global_norm = 0;  ///< the norm of all gradients together
};

/// lr, times `factor` after each `every` updates.
struct StepDecay {
  int64_t every = 1;
  double factor = 0.1;
};

/// Up to lr in equal steps over `warmup` updates, then along half a cosine down to `end` at update
/// `steps`.
struct Cosine {
  int64_t steps = 1;
  int64_t warmup = 0;
  double end = 0;
};

/// lr, times `factor` when the loss of more than `patience` epochs has not fallen below
/// 1 - `threshold` of the best, as PyTorch's ReduceLROnPlateau: Executor::reduce_on_plateau tells
/// it the epochs' losses. The `cooldown` epochs after that count for nothing.
struct Plateau {
  double factor = 0.1;
  int64_t patience = 10;
  double threshold = 1e-4;
  int64_t cooldown = 0;
  double min_lr = 0;
};

/// How the learning rate goes on, by the number of updates or, with Plateau, by what came of the
/// epochs; without one it stays.
using Schedule = std::variant<std::monostate, StepDecay, Cosine, Plateau>;

/// What a training step does besides its optimizer's update.
struct StepRules {
  Clip clip = {};
  Schedule schedule = {};
};

/// Makes the program a training program: every parameter that `loss`, a scalar, depends on is
/// updated once a step. The recipe is part of the program's file.
void minimize(Value loss, const SGD& optimizer, const StepRules& rules = {},
              const Loc& loc = Loc::here());
void minimize(Value loss, const Momentum& optimizer, const StepRules& rules = {},
              const Loc& loc = Loc::here());
void minimize(Value loss, const Adam& optimizer, const StepRules& rules = {},
              const Loc& loc = Loc::here());
void minimize(Value loss, const AdamW& optimizer, const StepRules& rules = {},
              const Loc& loc = Loc::here());

}  // namespace fluid
