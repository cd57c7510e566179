#pragma once

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

/// Makes the program a training program: every parameter that `loss`, a scalar, depends on is
/// updated once a step. The recipe is part of the program's file.
void minimize(Value loss, const SGD& optimizer, const Loc& loc = Loc::here());
void minimize(Value loss, const Momentum& optimizer, const Loc& loc = Loc::here());
void minimize(Value loss, const Adam& optimizer, const Loc& loc = Loc::here());
void minimize(Value loss, const AdamW& optimizer, const Loc& loc = Loc::here());

}  // namespace fluid
