// Generated from the op table by fluid_opgen.
// clang-format off
#pragma once

// Functions of the ops that are not for users.

#include "ops/ints.h"
#include "ops/record.h"
#include "ops/required.h"

namespace fluid::internal {

/// Adam (Kingma and Ba, 2015), with PyTorch's rounding order: m and v are moving averages of the gradient and its square; the step is lr / (1 - beta1^t) * m / (sqrt(v) / sqrt(1 - beta2^t) + eps).
/// param: float tensor.
/// grad: same type as param.
/// lr: float scalar: the learning rate.
/// update: i64 scalar: updates done before this one.
/// m: same type as param.
/// v: same type as param.
/// attrs.beta1: how much of m is kept.
/// attrs.beta2: how much of v is kept.
/// attrs.eps: added to the denominator.
/// attrs.weight_decay: times the parameter, added to the gradient.
/// Gives new_param: same type as param.
/// Gives new_m: same type as param.
/// Gives new_v: same type as param.
struct AdamAttrs { double beta1 = 0.9; double beta2 = 0.999; double eps = 1e-08; double weight_decay = 0.0; };
Values adam(Value param, Value grad, Value lr, Value update, Value m, Value v, const AdamAttrs& attrs = {}, const Loc& loc = Loc::here());

/// AdamW (Loshchilov and Hutter, 2019), with PyTorch's rounding order: the parameter loses lr * weight_decay of itself, then takes Adam's step.
/// param: float tensor.
/// grad: same type as param.
/// lr: float scalar: the learning rate.
/// update: i64 scalar: updates done before this one.
/// m: same type as param.
/// v: same type as param.
/// attrs.beta1: how much of m is kept.
/// attrs.beta2: how much of v is kept.
/// attrs.eps: added to the denominator.
/// attrs.weight_decay: times lr and the parameter, taken off the parameter.
/// Gives new_param: same type as param.
/// Gives new_m: same type as param.
/// Gives new_v: same type as param.
struct AdamwAttrs { double beta1 = 0.9; double beta2 = 0.999; double eps = 1e-08; double weight_decay = 0.01; };
Values adamw(Value param, Value grad, Value lr, Value update, Value m, Value v, const AdamwAttrs& attrs = {}, const Loc& loc = Loc::here());

/// Gradient of adaptive_avg_pool2d: every element gathers from the windows that cover it.
/// dy: gradient of adaptive_avg_pool2d's result.
/// attrs.input: type of adaptive_avg_pool2d's input (required).
/// Gives dx: of type `input`.
struct AdaptiveAvgPool2dGradAttrs { Required<Type> input; };
Value adaptive_avg_pool2d_grad(Value dy, const AdaptiveAvgPool2dGradAttrs& attrs, const Loc& loc = Loc::here());

/// Gradient of adaptive_max_pool2d: every element gathers from the windows whose largest element it is.
/// dy: gradient of adaptive_max_pool2d's result.
/// position: its second result.
/// attrs.input: type of adaptive_max_pool2d's input (required).
/// Gives dx: of type `input`.
struct AdaptiveMaxPool2dGradAttrs { Required<Type> input; };
Value adaptive_max_pool2d_grad(Value dy, Value position, const AdaptiveMaxPool2dGradAttrs& attrs, const Loc& loc = Loc::here());

/// Gradient of avg_pool2d: every element gathers from the windows that cover it.
/// dy: gradient of avg_pool2d's result.
/// attrs.kernel: as avg_pool2d's (required).
/// attrs.stride: as avg_pool2d's.
/// attrs.padding: as avg_pool2d's.
/// attrs.count_include_pad: as avg_pool2d's.
/// attrs.input: type of avg_pool2d's input (required).
/// Gives dx: of type `input`.
struct AvgPool2dGradAttrs { Required<Ints> kernel; Ints stride = {}; Ints padding = {0}; bool count_include_pad = true; Required<Type> input; };
Value avg_pool2d_grad(Value dy, const AvgPool2dGradAttrs& attrs, const Loc& loc = Loc::here());

/// Normalises every channel to mean 0 and variance 1 over the batch and its other dimensions, then scales by gamma and adds beta. In eval and predict it uses the running statistics instead of the batch's.
/// x: float [N, C, ...].
/// gamma: [C], x's dtype or f32.
/// beta: [C], x's dtype or f32.
/// running_mean: [C], x's dtype or f32.
/// running_var: [C], x's dtype or f32.
/// attrs.eps: added to the variance.
/// Gives y: same type as x.
/// Gives mean: [C], at least f32: of the batch; in eval and predict the running mean.
/// Gives var: [C], at least f32: of the batch, divided by N; in eval and predict the running variance.
struct BatchNormAttrs { double eps = 1e-05; };
Value batch_norm(Value x, Value gamma, Value beta, Value running_mean, Value running_var, const BatchNormAttrs& attrs = {}, const Loc& loc = Loc::here());

/// Moves batch_norm's running statistics towards those of the batch by `momentum`, the variance as the unbiased estimate, var * count / (count - 1), as PyTorch does.
/// running_mean: float [C].
/// running_var: float [C].
/// mean: [C]: of the batch.
/// var: [C]: of the batch, divided by count.
/// count: float scalar: elements of a channel; one counts as two.
/// attrs.momentum: the weight of the batch.
/// Gives new_mean: same type as running_mean.
/// Gives new_var: same type as running_var.
struct BnUpdateAttrs { double momentum = 0.1; };
Values bn_update(Value running_mean, Value running_var, Value mean, Value var, Value count, const BnUpdateAttrs& attrs = {}, const Loc& loc = Loc::here());

/// Gradient of conv2d with respect to its filter: a sum over samples and positions.
/// x: conv2d's input.
/// dy: gradient of conv2d's result.
/// attrs.stride: step of the window: one number, or height and width.
/// attrs.padding: zeros around the input: one number, height and width, or top, left, bottom, right.
/// attrs.dilation: distance of the taps: one number, or height and width.
/// attrs.groups: splits the channels into groups that do not see each other.
/// attrs.filter: type of conv2d's filter (required).
/// Gives dw: of type `filter`.
struct Conv2dGradFilterAttrs { Ints stride = {1}; Ints padding = {0}; Ints dilation = {1}; int64_t groups = 1; Required<Type> filter; };
Value conv2d_grad_filter(Value x, Value dy, const Conv2dGradFilterAttrs& attrs, const Loc& loc = Loc::here());

/// Gradient of conv2d with respect to its input: every element gathers from the windows that cover it.
/// dy: gradient of conv2d's result.
/// w: conv2d's filter.
/// attrs.stride: step of the window: one number, or height and width.
/// attrs.padding: zeros around the input: one number, height and width, or top, left, bottom, right.
/// attrs.dilation: distance of the taps: one number, or height and width.
/// attrs.groups: splits the channels into groups that do not see each other.
/// attrs.input: type of conv2d's input (required).
/// Gives dx: of type `input`.
struct Conv2dGradInputAttrs { Ints stride = {1}; Ints padding = {0}; Ints dilation = {1}; int64_t groups = 1; Required<Type> input; };
Value conv2d_grad_input(Value dy, Value w, const Conv2dGradInputAttrs& attrs, const Loc& loc = Loc::here());

/// x's elements in memory of their own.
/// x: any tensor.
/// Gives y: like x.
Value copy(Value x, const Loc& loc = Loc::here());

/// Up to lr in equal steps over `warmup` updates, then along half a cosine down to `end` at update `steps` (Loshchilov and Hutter, SGDR, 2017, without restarts), and `end` from there on.
/// update: i64 scalar: updates done before this one.
/// attrs.lr: the recipe's learning rate (required).
/// attrs.steps: updates in all (required).
/// attrs.warmup: updates.
/// attrs.end: the rate at the end.
/// Gives rate: f64 scalar: the learning rate of this update.
struct CosineScheduleAttrs { Required<double> lr; Required<int64_t> steps; int64_t warmup = 0; double end = 0.0; };
Value cosine_schedule(Value update, const CosineScheduleAttrs& attrs, const Loc& loc = Loc::here());

/// How many elements along `axes` are infinite or nan; exact up to 2^24.
/// x: float tensor.
/// attrs.axes: to reduce; negative ones count from the end; none: all.
/// attrs.keep_dims: reduced axes stay, with extent 1.
/// Gives y: f32.
struct CountNonfiniteAttrs { Ints axes = {}; bool keep_dims = false; };
Value count_nonfinite(Value x, const CountNonfiniteAttrs& attrs = {}, const Loc& loc = Loc::here());

/// Sets elements to 0 with probability `p` and scales the others by 1 / (1 - p). The identity in eval and predict.
/// x: float tensor.
/// rng: i64[3]: seed, run counter, first global sample.
/// attrs.p: probability of being dropped.
/// Gives y: same type as x.
struct DropoutAttrs { double p = 0.5; };
Value dropout(Value x, Value rng, const DropoutAttrs& attrs = {}, const Loc& loc = Loc::here());

/// Sets whole channels to 0 with probability `p` and scales the others by 1 / (1 - p). The identity in eval and predict.
/// x: float [N, C, ...].
/// rng: i64[3]: seed, run counter, first global sample.
/// attrs.p: probability of being dropped.
/// Gives y: same type as x.
struct Dropout2dAttrs { double p = 0.5; };
Value dropout2d(Value x, Value rng, const Dropout2dAttrs& attrs = {}, const Loc& loc = Loc::here());

/// lr times a factor that Executor::set_learning_rate() sets, 1 at first.
/// update: i64 scalar: updates done before this one.
/// lr_factor: float scalar: factor of lr.
/// attrs.lr: the recipe's learning rate (required).
/// Gives rate: f64 scalar: the learning rate of this update.
struct ManualScheduleAttrs { Required<double> lr; };
Value manual_schedule(Value update, Value lr_factor, const ManualScheduleAttrs& attrs, const Loc& loc = Loc::here());

/// Gradient of max_pool2d: every element gathers from the windows whose largest element it is.
/// dy: gradient of max_pool2d's result.
/// position: its second result.
/// attrs.kernel: as max_pool2d's (required).
/// attrs.stride: as max_pool2d's.
/// attrs.padding: as max_pool2d's.
/// attrs.dilation: as max_pool2d's.
/// attrs.input: type of max_pool2d's input (required).
/// Gives dx: of type `input`.
struct MaxPool2dGradAttrs { Required<Ints> kernel; Ints stride = {}; Ints padding = {0}; Ints dilation = {1}; Required<Type> input; };
Value max_pool2d_grad(Value dy, Value position, const MaxPool2dGradAttrs& attrs, const Loc& loc = Loc::here());

/// Gradient descent with momentum, as PyTorch's SGD without dampening: velocity = mu * velocity + grad; the step is lr * velocity, or lr * (grad + mu * velocity) with `nesterov`.
/// param: float tensor.
/// grad: same type as param.
/// lr: float scalar: the learning rate.
/// update: i64 scalar: updates done before this one.
/// velocity: same type as param.
/// attrs.mu: how much of the velocity is kept.
/// attrs.nesterov: looks ahead by one step.
/// attrs.weight_decay: times the parameter, added to the gradient.
/// Gives new_param: same type as param.
/// Gives new_velocity: same type as param.
struct MomentumAttrs { double mu = 0.9; bool nesterov = false; double weight_decay = 0.0; };
Values momentum(Value param, Value grad, Value lr, Value update, Value velocity, const MomentumAttrs& attrs = {}, const Loc& loc = Loc::here());

/// Independent normally distributed numbers: the same for the same seed, stream and logical index in every place, up to rounding.
/// seed: i64 scalar.
/// attrs.type: of the result (required).
/// attrs.mean: of the distribution.
/// attrs.std: its standard deviation.
/// Gives y: of the given type.
struct NormalAttrs { Required<Type> type; double mean = 0.0; double std = 1.0; };
Value normal(Value seed, const NormalAttrs& attrs, const Loc& loc = Loc::here());

/// How many elements a tensor of type `of` has, the batch of the running step included.
/// attrs.of: the type whose elements are counted; also the result's dtype (required).
/// Gives n: scalar.
struct NumelAttrs { Required<Type> of; };
Value numel(ir::Graph& graph, const NumelAttrs& attrs, const Loc& loc = Loc::here());

/// lr, times `factor` where the epochs' figure has not fallen for more than `patience` epochs, as PyTorch's ReduceLROnPlateau: what that has come to is an operand.
/// update: i64 scalar: updates done before this one.
/// lr_factor: float scalar: of lr.
/// attrs.lr: the recipe's learning rate (required).
/// attrs.factor: of the rate before.
/// attrs.patience: epochs without a better figure that change nothing.
/// attrs.threshold: a better figure is below 1 - threshold of the best.
/// attrs.cooldown: epochs after a change that count for nothing.
/// attrs.min_lr: the rate falls no further.
/// Gives rate: f64 scalar: the learning rate of this update.
struct PlateauScheduleAttrs { Required<double> lr; double factor = 0.1; int64_t patience = 10; double threshold = 1e-04; int64_t cooldown = 0; double min_lr = 0.0; };
Value plateau_schedule(Value update, Value lr_factor, const PlateauScheduleAttrs& attrs, const Loc& loc = Loc::here());

/// Gradient of resize2d: every element gathers from the elements that were made of it.
/// dy: gradient of resize2d's result.
/// attrs.input: type of resize2d's input (required).
/// attrs.mode: resize2d's.
/// Gives dx: of type `input`.
struct Resize2dGradAttrs { Required<Type> input; std::string mode = "nearest"; };
Value resize2d_grad(Value dy, const Resize2dGradAttrs& attrs, const Loc& loc = Loc::here());

/// Gradient descent: param - lr * grad.
/// param: float tensor.
/// grad: same type as param.
/// lr: float scalar: the learning rate.
/// update: i64 scalar: updates done before this one.
/// attrs.weight_decay: times the parameter, added to the gradient.
/// Gives new_param: same type as param.
struct SgdAttrs { double weight_decay = 0.0; };
Value sgd(Value param, Value grad, Value lr, Value update, const SgdAttrs& attrs = {}, const Loc& loc = Loc::here());

/// lr, times `factor` after each `every` updates.
/// update: i64 scalar: updates done before this one.
/// attrs.lr: the recipe's learning rate (required).
/// attrs.every: updates (required).
/// attrs.factor: of the rate before.
/// Gives rate: f64 scalar: the learning rate of this update.
struct StepScheduleAttrs { Required<double> lr; Required<int64_t> every; double factor = 0.1; };
Value step_schedule(Value update, const StepScheduleAttrs& attrs, const Loc& loc = Loc::here());

/// The sum of the elements' squares along `axes`, added in f32 or wider.
/// x: float tensor.
/// attrs.axes: to reduce; negative ones count from the end; none: all.
/// attrs.keep_dims: reduced axes stay, with extent 1.
/// Gives y: x's dtype, f32 of halves.
struct SumSquaresAttrs { Ints axes = {}; bool keep_dims = false; };
Value sum_squares(Value x, const SumSquaresAttrs& attrs = {}, const Loc& loc = Loc::here());

/// Independent numbers, uniform in [low, high): the same for the same seed, stream and logical index in every place and dtype.
/// seed: i64 scalar.
/// attrs.type: of the result (required).
/// attrs.low: least value.
/// attrs.high: upper bound.
/// Gives y: of the given type.
struct UniformAttrs { Required<Type> type; double low = 0.0; double high = 1.0; };
Value uniform(Value seed, const UniformAttrs& attrs, const Loc& loc = Loc::here());

}  // namespace fluid::internal
