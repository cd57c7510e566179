// Generated from the op table by fluid_opgen.
// clang-format off
#pragma once

#include "ir/graph.h"

namespace fluid {

/// Adadelta (Zeiler, 2012), like torch.optim.Adadelta: square_avg and delta_avg are moving averages of grad^2 and delta^2, where delta = sqrt(delta_avg + eps) / sqrt(square_avg + eps) * grad. The step is lr * delta.
/// lr: learning rate.
/// rho: decay rate of the moving averages.
/// eps: added to the moving averages.
/// weight_decay: L2 penalty: weight_decay * param is added to the gradient.
struct Adadelta { double lr = 1.0; double rho = 0.9; double eps = 1e-06; double weight_decay = 0.0; };
/// Attributes of the op `train` that configure the optimizer.
Attrs recipe_of(const Adadelta& optimizer);

/// Adafactor (Shazeer and Stern, 2018), like torch.optim.Adafactor: divides the gradient by the square root of its second moment. The second moment is a moving average, which is factored into row and column means for tensors of rank 2 or more. The newest gradient has weight t^-decay_exponent in the average. The step is scaled to an RMS of at most clip_threshold, then by min(lr, 1 / sqrt(t)) * max(eps2, RMS of the parameter).
/// lr: learning rate.
/// decay_exponent: the newest gradient has weight t^-decay_exponent.
/// eps1: lower bound of the root of the second moment; 0: the epsilon of the dtype.
/// eps2: lower bound of the RMS of the parameter.
/// clip_threshold: upper bound of the RMS of the unscaled step.
/// weight_decay: decoupled weight decay: lr * weight_decay * param is subtracted from the parameter.
struct Adafactor { double lr = 0.01; double decay_exponent = 0.8; double eps1 = 0.0; double eps2 = 0.001; double clip_threshold = 1.0; double weight_decay = 0.0; };
/// Attributes of the op `train` that configure the optimizer.
Attrs recipe_of(const Adafactor& optimizer);

/// Adagrad (Duchi et al., 2011), like torch.optim.Adagrad: sum = sum + grad^2. The step is lr / (1 + t lr_decay) * grad / (sqrt(initial_accumulator_value + sum) + eps) after t updates. The state sum starts at 0; the state of torch starts at initial_accumulator_value.
/// lr: learning rate.
/// lr_decay: decay of the learning rate.
/// initial_accumulator_value: added to the sum of the squared gradients, which starts at 0.
/// eps: added to the denominator.
/// weight_decay: L2 penalty: weight_decay * param is added to the gradient.
struct Adagrad { double lr = 0.01; double lr_decay = 0.0; double initial_accumulator_value = 0.0; double eps = 1e-10; double weight_decay = 0.0; };
/// Attributes of the op `train` that configure the optimizer.
Attrs recipe_of(const Adagrad& optimizer);

/// Adam (Kingma and Ba, 2015), like torch.optim.Adam. m and v are moving averages of the gradient and its square. The step is lr / (1 - beta1^t) * m / (sqrt(v) / sqrt(1 - beta2^t) + eps).
/// lr: learning rate.
/// beta1: decay rate of m.
/// beta2: decay rate of v.
/// eps: added to the denominator.
/// weight_decay: L2 penalty: weight_decay * param is added to the gradient.
/// amsgrad: divides by the square root of the largest v so far (Reddi et al., 2018).
struct Adam { double lr = 0.001; double beta1 = 0.9; double beta2 = 0.999; double eps = 1e-08; double weight_decay = 0.0; bool amsgrad = false; };
/// Attributes of the op `train` that configure the optimizer.
Attrs recipe_of(const Adam& optimizer);

/// Adamax (Kingma and Ba, 2015), like torch.optim.Adamax: m is the moving average of the gradient, u = max(beta2 * u, |grad| + eps). The step is lr / (1 - beta1^t) * m / u.
/// lr: learning rate.
/// beta1: decay rate of m.
/// beta2: decay rate of u.
/// eps: added to the absolute value of the gradient.
/// weight_decay: L2 penalty: weight_decay * param is added to the gradient.
struct Adamax { double lr = 0.002; double beta1 = 0.9; double beta2 = 0.999; double eps = 1e-08; double weight_decay = 0.0; };
/// Attributes of the op `train` that configure the optimizer.
Attrs recipe_of(const Adamax& optimizer);

/// AdamW (Loshchilov and Hutter, 2019), like torch.optim.AdamW: param *= 1 - lr * weight_decay, followed by the step of adam.
/// lr: learning rate.
/// beta1: decay rate of m.
/// beta2: decay rate of v.
/// eps: added to the denominator.
/// weight_decay: decoupled weight decay: lr * weight_decay * param is subtracted from the parameter.
/// amsgrad: divides by the square root of the largest v so far (Reddi et al., 2018).
struct AdamW { double lr = 0.001; double beta1 = 0.9; double beta2 = 0.999; double eps = 1e-08; double weight_decay = 0.01; bool amsgrad = false; };
/// Attributes of the op `train` that configure the optimizer.
Attrs recipe_of(const AdamW& optimizer);

/// LAMB (You et al., "Large batch optimization for deep learning: training BERT in 76 minutes", 2020). step = m / (1 - beta1^t) / (sqrt(v / (1 - beta2^t)) + eps) + weight_decay * param. The step is scaled by lr * |param| / |step|, with L2 norms of the whole parameter; by lr if a norm is 0.
/// lr: learning rate.
/// beta1: decay rate of m.
/// beta2: decay rate of v.
/// eps: added to the denominator.
/// weight_decay: weight_decay * param is added to the step.
struct LAMB { double lr = 0.001; double beta1 = 0.9; double beta2 = 0.999; double eps = 1e-06; double weight_decay = 0.01; };
/// Attributes of the op `train` that configure the optimizer.
Attrs recipe_of(const LAMB& optimizer);

/// LARS (You et al., "Large batch training of convolutional networks", 2017): velocity = momentum * velocity + rate * (grad + weight_decay * param), param -= velocity. rate = lr * trust_coefficient * |param| / (|grad| + weight_decay * |param|), with L2 norms of the whole parameter; rate = lr if a norm is 0.
/// lr: learning rate.
/// momentum: momentum factor.
/// trust_coefficient: factor of the rate.
/// weight_decay: L2 penalty: weight_decay * param is added to the gradient.
struct LARS { double lr = 0.1; double momentum = 0.9; double trust_coefficient = 0.001; double weight_decay = 0.0; };
/// Attributes of the op `train` that configure the optimizer.
Attrs recipe_of(const LARS& optimizer);

/// Lion (Chen et al., "Symbolic discovery of optimization algorithms", 2023). The step is lr * sign(beta1 * m + (1 - beta1) * grad), then m = beta2 * m + (1 - beta2) * grad.
/// lr: learning rate.
/// beta1: weight of m in the step.
/// beta2: decay rate of m.
/// weight_decay: decoupled weight decay: lr * weight_decay * param is subtracted from the parameter.
struct Lion { double lr = 1e-04; double beta1 = 0.9; double beta2 = 0.99; double weight_decay = 0.0; };
/// Attributes of the op `train` that configure the optimizer.
Attrs recipe_of(const Lion& optimizer);

/// SGD with momentum, like torch.optim.SGD: velocity = momentum * velocity + (1 - dampening) * grad; the first velocity is grad. The step is lr * velocity, or lr * (grad + momentum * velocity) with `nesterov`.
/// lr: learning rate.
/// momentum: momentum factor.
/// dampening: dampening of the gradient in the velocity.
/// nesterov: uses Nesterov momentum.
/// weight_decay: L2 penalty: weight_decay * param is added to the gradient.
struct Momentum { double lr = 0.01; double momentum = 0.9; double dampening = 0.0; bool nesterov = false; double weight_decay = 0.0; };
/// Attributes of the op `train` that configure the optimizer.
Attrs recipe_of(const Momentum& optimizer);

/// Muon (Jordan et al., 2024), like torch.optim.Muon: m is the moving average of the gradient of a matrix. The step is the orthogonalized m, or grad + momentum * (m - grad) with `nesterov`, by ns_steps iterations of Newton-Schulz, X = ns_a X + (ns_b G + ns_c G^2) X with G = X X^T, in the parameter's compute dtype. adjust_lr scales lr: original by sqrt(max(1, out / in)) of a matrix [in, out], match_rms_adamw by 0.2 sqrt(max(in, out)), spectral_unclamped by sqrt(out / in). AdamW updates the parameters that are not matrices.
/// lr: learning rate.
/// momentum: momentum factor.
/// nesterov: uses Nesterov momentum.
/// ns_a: coefficient of Newton-Schulz.
/// ns_b: coefficient of Newton-Schulz.
/// ns_c: coefficient of Newton-Schulz.
/// ns_steps: number of iterations of Newton-Schulz.
/// eps: lower bound of the norm of the matrix.
/// adjust_lr: rule that scales the learning rate by the shape.
/// weight_decay: decoupled weight decay: lr * weight_decay * param is subtracted from the parameter.
/// adamw_lr_scale: factor of lr for parameters that are not matrices.
/// adamw_beta1: beta1 of parameters that are not matrices.
/// adamw_beta2: beta2 of parameters that are not matrices.
/// adamw_eps: eps of parameters that are not matrices.
struct Muon { double lr = 0.001; double momentum = 0.95; bool nesterov = true; double ns_a = 3.4445; double ns_b = -4.775; double ns_c = 2.0315; int64_t ns_steps = 5; double eps = 1e-07; std::string adjust_lr = "original"; double weight_decay = 0.1; double adamw_lr_scale = 1.0; double adamw_beta1 = 0.9; double adamw_beta2 = 0.999; double adamw_eps = 1e-08; };
/// Attributes of the op `train` that configure the optimizer.
Attrs recipe_of(const Muon& optimizer);

/// NAdam (Dozat, "Incorporating Nesterov momentum into Adam", 2016), like torch.optim.NAdam: adam with Nesterov momentum, whose factor is mu = beta1 * (1 - 0.96^(t * momentum_decay) / 2) in update t.
/// lr: learning rate.
/// beta1: decay rate of m.
/// beta2: decay rate of v.
/// eps: added to the denominator.
/// momentum_decay: decay of the momentum schedule.
/// weight_decay: L2 penalty: weight_decay * param is added to the gradient.
/// decoupled_weight_decay: applies weight decay to the parameter, as adamw does.
struct NAdam { double lr = 0.002; double beta1 = 0.9; double beta2 = 0.999; double eps = 1e-08; double momentum_decay = 0.004; double weight_decay = 0.0; bool decoupled_weight_decay = false; };
/// Attributes of the op `train` that configure the optimizer.
Attrs recipe_of(const NAdam& optimizer);

/// RAdam (Liu et al., "On the variance of the adaptive learning rate and beyond", 2020), like torch.optim.RAdam: the step of adam times a rectification term, or lr / (1 - beta1^t) * m in the first updates.
/// lr: learning rate.
/// beta1: decay rate of m.
/// beta2: decay rate of v.
/// eps: added to the denominator.
/// weight_decay: L2 penalty: weight_decay * param is added to the gradient.
/// decoupled_weight_decay: applies weight decay to the parameter, as adamw does.
struct RAdam { double lr = 0.001; double beta1 = 0.9; double beta2 = 0.999; double eps = 1e-08; double weight_decay = 0.0; bool decoupled_weight_decay = false; };
/// Attributes of the op `train` that configure the optimizer.
Attrs recipe_of(const RAdam& optimizer);

/// RMSprop (Hinton, 2012), like torch.optim.RMSprop: square_avg is the moving average of grad^2. The step is lr * grad / (sqrt(square_avg) + eps), with momentum.
/// lr: learning rate.
/// alpha: decay rate of the moving averages.
/// eps: added to the denominator.
/// momentum: momentum factor.
/// centered: divides by the standard deviation: subtracts the square of grad_avg, the moving average of the gradient (Graves, 2013).
/// weight_decay: L2 penalty: weight_decay * param is added to the gradient.
struct RMSprop { double lr = 0.01; double alpha = 0.99; double eps = 1e-08; double momentum = 0.0; bool centered = false; double weight_decay = 0.0; };
/// Attributes of the op `train` that configure the optimizer.
Attrs recipe_of(const RMSprop& optimizer);

/// Stochastic gradient descent: param - lr * grad.
/// lr: learning rate.
/// weight_decay: L2 penalty: weight_decay * param is added to the gradient.
struct SGD { double lr = 0.01; double weight_decay = 0.0; };
/// Attributes of the op `train` that configure the optimizer.
Attrs recipe_of(const SGD& optimizer);

}  // namespace fluid
