// Generated from the op table by fluid_opgen.
// clang-format off
#pragma once

#include "ir/graph.h"
#include "ops/ints.h"
#include "ops/required.h"

namespace fluid {

/// Schedule of the learning rate. The learning rate of the optimizer, after the warm-up.
/// warmup: number of warm-up updates.
/// warmup_start: factor of the learning rate from which the warm-up rises to 1.
/// constant_warmup: keeps the factor at `warmup_start` during the warm-up.
struct ConstantRate { int64_t warmup = 0; double warmup_start = 0.0; bool constant_warmup = false; };
/// Attributes of the op `train` for the schedule.
Attrs schedule_attrs_of(const ConstantRate& schedule);

/// Schedule of the learning rate. Cosine annealing from lr to `end` in periods (Loshchilov and Hutter, SGDR, 2017), like PyTorch's CosineAnnealingWarmRestarts. Each period is `growth` times the one before.
/// period: number of updates of the first period (required).
/// growth: length of a period / length of the period before.
/// end: final learning rate.
/// warmup: number of warm-up updates.
/// warmup_start: factor of the learning rate from which the warm-up rises to 1.
/// constant_warmup: keeps the factor at `warmup_start` during the warm-up.
struct CosineRestarts { Required<int64_t> period; int64_t growth = 1; double end = 0.0; int64_t warmup = 0; double warmup_start = 0.0; bool constant_warmup = false; };
/// Attributes of the op `train` for the schedule.
Attrs schedule_attrs_of(const CosineRestarts& schedule);

/// Schedule of the learning rate. Cosine annealing from lr to `end` at update `steps` (Loshchilov and Hutter, SGDR, 2017, without restarts), like PyTorch's CosineAnnealingLR. The rate stays at `end` afterwards.
/// steps: update at which the rate reaches `end` (required).
/// end: final learning rate.
/// warmup: number of warm-up updates.
/// warmup_start: factor of the learning rate from which the warm-up rises to 1.
/// constant_warmup: keeps the factor at `warmup_start` during the warm-up.
struct Cosine { Required<int64_t> steps; double end = 0.0; int64_t warmup = 0; double warmup_start = 0.0; bool constant_warmup = false; };
/// Attributes of the op `train` for the schedule.
Attrs schedule_attrs_of(const Cosine& schedule);

/// Schedule of the learning rate. lr * factor^(t / every) after t updates, like PyTorch's ExponentialLR.
/// factor: factor of the learning rate after `every` updates (required).
/// every: number of updates in which the learning rate is multiplied by `factor`.
/// warmup: number of warm-up updates.
/// warmup_start: factor of the learning rate from which the warm-up rises to 1.
/// constant_warmup: keeps the factor at `warmup_start` during the warm-up.
struct ExponentialDecay { Required<double> factor; int64_t every = 1; int64_t warmup = 0; double warmup_start = 0.0; bool constant_warmup = false; };
/// Attributes of the op `train` for the schedule.
Attrs schedule_attrs_of(const ExponentialDecay& schedule);

/// Schedule of the learning rate. lr / (1 + decay * t / every) after t updates, like Keras's InverseTimeDecay.
/// decay: increase of the divisor 1 + decay * t / every in `every` updates (required).
/// every: number of updates in which the divisor rises by `decay`.
/// staircase: changes the learning rate only after each `every` updates: rounds t / every down.
/// warmup: number of warm-up updates.
/// warmup_start: factor of the learning rate from which the warm-up rises to 1.
/// constant_warmup: keeps the factor at `warmup_start` during the warm-up.
struct InverseTimeDecay { Required<double> decay; int64_t every = 1; bool staircase = false; int64_t warmup = 0; double warmup_start = 0.0; bool constant_warmup = false; };
/// Attributes of the op `train` for the schedule.
Attrs schedule_attrs_of(const InverseTimeDecay& schedule);

/// Schedule of the learning rate. A line from lr to `end` at update `steps`, like PyTorch's LinearLR. The rate stays at `end` afterwards.
/// steps: update at which the rate reaches `end` (required).
/// end: final learning rate.
/// warmup: number of warm-up updates.
/// warmup_start: factor of the learning rate from which the warm-up rises to 1.
/// constant_warmup: keeps the factor at `warmup_start` during the warm-up.
struct LinearDecay { Required<int64_t> steps; double end = 0.0; int64_t warmup = 0; double warmup_start = 0.0; bool constant_warmup = false; };
/// Attributes of the op `train` for the schedule.
Attrs schedule_attrs_of(const LinearDecay& schedule);

/// Schedule of the learning rate. lr * lr_factor. Executor::set_learning_rate() sets lr_factor, which is 1 initially.
/// warmup: number of warm-up updates.
/// warmup_start: factor of the learning rate from which the warm-up rises to 1.
/// constant_warmup: keeps the factor at `warmup_start` during the warm-up.
struct Manual { int64_t warmup = 0; double warmup_start = 0.0; bool constant_warmup = false; };
/// Attributes of the op `train` for the schedule.
Attrs schedule_attrs_of(const Manual& schedule);

/// Schedule of the learning rate. Multiplies the learning rate by `factor` at each update of `milestones`, like PyTorch's MultiStepLR.
/// milestones: numbers of updates, rising (required).
/// factor: factor of the learning rate at each decay.
/// warmup: number of warm-up updates.
/// warmup_start: factor of the learning rate from which the warm-up rises to 1.
/// constant_warmup: keeps the factor at `warmup_start` during the warm-up.
struct MultistepDecay { Required<Ints> milestones; double factor = 0.1; int64_t warmup = 0; double warmup_start = 0.0; bool constant_warmup = false; };
/// Attributes of the op `train` for the schedule.
Attrs schedule_attrs_of(const MultistepDecay& schedule);

/// Schedule of the learning rate. lr * d_model^-0.5 * min(t^-0.5, t * warmup^-1.5) in update t, from 1 (Vaswani et al., "Attention is all you need", 2017, where lr is 1).
/// d_model: width of the model (required).
/// warmup: number of warm-up updates (required).
struct Noam { Required<int64_t> d_model; Required<int64_t> warmup; };
/// Attributes of the op `train` for the schedule.
Attrs schedule_attrs_of(const Noam& schedule);

/// Schedule of the learning rate. Rises from lr / div_factor to lr in the first fraction `pct_start` of the updates, then falls to lr / (div_factor * final_div_factor) (Smith and Topin, "Super-convergence", 2018), like PyTorch's OneCycleLR without its cycle of the momentum.
/// steps: number of updates; the last rate stays (required).
/// pct_start: fraction of the updates in which the learning rate rises.
/// div_factor: lr / first learning rate.
/// final_div_factor: first learning rate / last learning rate.
/// three_phase: falls to the first rate as fast as it rose, then to the last rate.
/// linear_anneal: linear instead of cosine annealing.
/// warmup: number of warm-up updates.
/// warmup_start: factor of the learning rate from which the warm-up rises to 1.
/// constant_warmup: keeps the factor at `warmup_start` during the warm-up.
struct OneCycle { Required<int64_t> steps; double pct_start = 0.3; double div_factor = 25.0; double final_div_factor = 10000.0; bool three_phase = false; bool linear_anneal = false; int64_t warmup = 0; double warmup_start = 0.0; bool constant_warmup = false; };
/// Attributes of the op `train` for the schedule.
Attrs schedule_attrs_of(const OneCycle& schedule);

/// Schedule of the learning rate. Learning rate `values[i]` from update `boundaries[i - 1]` until before update `boundaries[i]`, like Paddle's PiecewiseDecay. Replaces the optimizer's learning rate.
/// boundaries: numbers of updates, rising (required).
/// values: learning rates: one more than there are boundaries (required).
/// warmup: number of warm-up updates.
/// warmup_start: factor of the learning rate from which the warm-up rises to 1.
/// constant_warmup: keeps the factor at `warmup_start` during the warm-up.
struct PiecewiseConstant { Required<Ints> boundaries; Required<std::vector<double>> values; int64_t warmup = 0; double warmup_start = 0.0; bool constant_warmup = false; };
/// Attributes of the op `train` for the schedule.
Attrs schedule_attrs_of(const PiecewiseConstant& schedule);

/// Schedule of the learning rate. lr * lr_factor. After an epoch, lr_factor is multiplied by `factor` if the monitored metric has not improved for more than `patience` epochs, as by PyTorch's ReduceLROnPlateau. Trainer passes the metric to Executor::reduce_on_plateau().
/// metric: scalar output that is monitored; empty: the loss.
/// mode: "min": smaller metrics are better; "max": larger ones are.
/// factor: factor of the learning rate at each decay.
/// patience: number of epochs without improvement that are tolerated.
/// threshold: the metric must be better than the best one by this much.
/// threshold_mode: "rel": `threshold` is a fraction of the best metric; "abs": a difference.
/// cooldown: number of epochs after a decay that are not counted.
/// min_lr: lower bound of the learning rate.
/// warmup: number of warm-up updates.
/// warmup_start: factor of the learning rate from which the warm-up rises to 1.
/// constant_warmup: keeps the factor at `warmup_start` during the warm-up.
struct Plateau { std::string metric = ""; std::string mode = "min"; double factor = 0.1; int64_t patience = 10; double threshold = 1e-04; std::string threshold_mode = "rel"; int64_t cooldown = 0; double min_lr = 0.0; int64_t warmup = 0; double warmup_start = 0.0; bool constant_warmup = false; };
/// Attributes of the op `train` for the schedule.
Attrs schedule_attrs_of(const Plateau& schedule);

/// Schedule of the learning rate. (lr - end) * (1 - t / steps)^power + end after t updates, like PyTorch's PolynomialLR and Keras's PolynomialDecay. The rate stays at `end` from update `steps` on.
/// steps: update at which the rate reaches `end` (required).
/// power: exponent.
/// end: final learning rate.
/// warmup: number of warm-up updates.
/// warmup_start: factor of the learning rate from which the warm-up rises to 1.
/// constant_warmup: keeps the factor at `warmup_start` during the warm-up.
struct PolynomialDecay { Required<int64_t> steps; double power = 1.0; double end = 0.0; int64_t warmup = 0; double warmup_start = 0.0; bool constant_warmup = false; };
/// Attributes of the op `train` for the schedule.
Attrs schedule_attrs_of(const PolynomialDecay& schedule);

/// Schedule of the learning rate. Multiplies the learning rate by `factor` every `every` updates, like PyTorch's StepLR.
/// every: number of updates between two decays (required).
/// factor: factor of the learning rate at each decay.
/// warmup: number of warm-up updates.
/// warmup_start: factor of the learning rate from which the warm-up rises to 1.
/// constant_warmup: keeps the factor at `warmup_start` during the warm-up.
struct StepDecay { Required<int64_t> every; double factor = 0.1; int64_t warmup = 0; double warmup_start = 0.0; bool constant_warmup = false; };
/// Attributes of the op `train` for the schedule.
Attrs schedule_attrs_of(const StepDecay& schedule);

}  // namespace fluid
