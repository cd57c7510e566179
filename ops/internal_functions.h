// Generated from the op table by fluid_opgen.
// clang-format off
#pragma once

// Functions of the ops that are not for users.

#include <cmath>

#include "ops/ints.h"
#include "ops/record.h"
#include "ops/required.h"

namespace fluid::internal {

/// Adadelta (Zeiler, 2012), like torch.optim.Adadelta: square_avg and delta_avg are moving averages of grad^2 and delta^2, where delta = sqrt(delta_avg + eps) / sqrt(square_avg + eps) * grad. The step is lr * delta.
/// param: float tensor.
/// grad: same type as param.
/// lr: float scalar: learning rate.
/// update: i64 scalar: number of completed updates.
/// square_avg: same type as param.
/// delta_avg: same type as param.
/// attrs.rho: decay rate of the moving averages.
/// attrs.eps: added to the moving averages.
/// attrs.weight_decay: L2 penalty: weight_decay * param is added to the gradient.
/// Gives new_param: same type as param.
/// Gives new_square_avg: same type as param.
/// Gives new_delta_avg: same type as param.
struct AdadeltaAttrs { double rho = 0.9; double eps = 1e-06; double weight_decay = 0.0; };
Values adadelta(Value param, Value grad, Value lr, Value update, Value square_avg, Value delta_avg, const AdadeltaAttrs& attrs = {}, const Loc& loc = Loc::here());

/// Adafactor (Shazeer and Stern, 2018), like torch.optim.Adafactor: divides the gradient by the square root of its second moment. The second moment is a moving average, which is factored into row and column means for tensors of rank 2 or more. The newest gradient has weight t^-decay_exponent in the average. The step is scaled to an RMS of at most clip_threshold, then by min(lr, 1 / sqrt(t)) * max(eps2, RMS of the parameter).
/// param: float tensor.
/// grad: same type as param.
/// lr: float scalar: learning rate.
/// update: i64 scalar: number of completed updates.
/// step: same shape as param: change of the parameter, from its moments.
/// attrs.decay_exponent: the newest gradient has weight t^-decay_exponent.
/// attrs.eps1: lower bound of the root of the second moment; 0: the epsilon of the dtype.
/// attrs.eps2: lower bound of the RMS of the parameter.
/// attrs.clip_threshold: upper bound of the RMS of the unscaled step.
/// attrs.weight_decay: decoupled weight decay: lr * weight_decay * param is subtracted from the parameter.
/// Gives new_param: same type as param.
struct AdafactorAttrs { double decay_exponent = 0.8; double eps1 = 0.0; double eps2 = 0.001; double clip_threshold = 1.0; double weight_decay = 0.0; };
Value adafactor(Value param, Value grad, Value lr, Value update, Value step, const AdafactorAttrs& attrs = {}, const Loc& loc = Loc::here());

/// Adagrad (Duchi et al., 2011), like torch.optim.Adagrad: sum = sum + grad^2. The step is lr / (1 + t lr_decay) * grad / (sqrt(initial_accumulator_value + sum) + eps) after t updates. The state sum starts at 0; the state of torch starts at initial_accumulator_value.
/// param: float tensor.
/// grad: same type as param.
/// lr: float scalar: learning rate.
/// update: i64 scalar: number of completed updates.
/// sum: same type as param.
/// attrs.lr_decay: decay of the learning rate.
/// attrs.initial_accumulator_value: added to the sum of the squared gradients, which starts at 0.
/// attrs.eps: added to the denominator.
/// attrs.weight_decay: L2 penalty: weight_decay * param is added to the gradient.
/// Gives new_param: same type as param.
/// Gives new_sum: same type as param.
struct AdagradAttrs { double lr_decay = 0.0; double initial_accumulator_value = 0.0; double eps = 1e-10; double weight_decay = 0.0; };
Values adagrad(Value param, Value grad, Value lr, Value update, Value sum, const AdagradAttrs& attrs = {}, const Loc& loc = Loc::here());

/// Adam (Kingma and Ba, 2015), like torch.optim.Adam. m and v are moving averages of the gradient and its square. The step is lr / (1 - beta1^t) * m / (sqrt(v) / sqrt(1 - beta2^t) + eps).
/// param: float tensor.
/// grad: same type as param.
/// lr: float scalar: learning rate.
/// update: i64 scalar: number of completed updates.
/// m: same type as param.
/// v: same type as param.
/// max_v: same type as param; only with `amsgrad`.
/// attrs.beta1: decay rate of m.
/// attrs.beta2: decay rate of v.
/// attrs.eps: added to the denominator.
/// attrs.weight_decay: L2 penalty: weight_decay * param is added to the gradient.
/// attrs.amsgrad: divides by the square root of the largest v so far (Reddi et al., 2018).
/// Gives new_param: same type as param.
/// Gives new_m: same type as param.
/// Gives new_v: same type as param.
/// Gives new_max_v: same type as param; only with `amsgrad`.
struct AdamAttrs { double beta1 = 0.9; double beta2 = 0.999; double eps = 1e-08; double weight_decay = 0.0; bool amsgrad = false; };
Values adam(Value param, Value grad, Value lr, Value update, Value m, Value v, const AdamAttrs& attrs = {}, const Loc& loc = Loc::here());
Values adam(Value param, Value grad, Value lr, Value update, Value m, Value v, Value max_v, const AdamAttrs& attrs = {}, const Loc& loc = Loc::here());

/// Adamax (Kingma and Ba, 2015), like torch.optim.Adamax: m is the moving average of the gradient, u = max(beta2 * u, |grad| + eps). The step is lr / (1 - beta1^t) * m / u.
/// param: float tensor.
/// grad: same type as param.
/// lr: float scalar: learning rate.
/// update: i64 scalar: number of completed updates.
/// m: same type as param.
/// u: same type as param.
/// attrs.beta1: decay rate of m.
/// attrs.beta2: decay rate of u.
/// attrs.eps: added to the absolute value of the gradient.
/// attrs.weight_decay: L2 penalty: weight_decay * param is added to the gradient.
/// Gives new_param: same type as param.
/// Gives new_m: same type as param.
/// Gives new_u: same type as param.
struct AdamaxAttrs { double beta1 = 0.9; double beta2 = 0.999; double eps = 1e-08; double weight_decay = 0.0; };
Values adamax(Value param, Value grad, Value lr, Value update, Value m, Value u, const AdamaxAttrs& attrs = {}, const Loc& loc = Loc::here());

/// AdamW (Loshchilov and Hutter, 2019), like torch.optim.AdamW: param *= 1 - lr * weight_decay, followed by the step of adam.
/// param: float tensor.
/// grad: same type as param.
/// lr: float scalar: learning rate.
/// update: i64 scalar: number of completed updates.
/// m: same type as param.
/// v: same type as param.
/// max_v: same type as param; only with `amsgrad`.
/// attrs.beta1: decay rate of m.
/// attrs.beta2: decay rate of v.
/// attrs.eps: added to the denominator.
/// attrs.weight_decay: decoupled weight decay: lr * weight_decay * param is subtracted from the parameter.
/// attrs.amsgrad: divides by the square root of the largest v so far (Reddi et al., 2018).
/// Gives new_param: same type as param.
/// Gives new_m: same type as param.
/// Gives new_v: same type as param.
/// Gives new_max_v: same type as param; only with `amsgrad`.
struct AdamwAttrs { double beta1 = 0.9; double beta2 = 0.999; double eps = 1e-08; double weight_decay = 0.01; bool amsgrad = false; };
Values adamw(Value param, Value grad, Value lr, Value update, Value m, Value v, const AdamwAttrs& attrs = {}, const Loc& loc = Loc::here());
Values adamw(Value param, Value grad, Value lr, Value update, Value m, Value v, Value max_v, const AdamwAttrs& attrs = {}, const Loc& loc = Loc::here());

/// Gradient of adaptive_avg_pool2d with respect to its input.
/// dy: gradient of adaptive_avg_pool2d's result.
/// attrs.input: type of adaptive_avg_pool2d's input (required).
/// Gives dx: of type `input`.
struct AdaptiveAvgPool2dGradAttrs { Required<Type> input; };
Value adaptive_avg_pool2d_grad(Value dy, const AdaptiveAvgPool2dGradAttrs& attrs, const Loc& loc = Loc::here());

/// Gradient of adaptive_max_pool2d with respect to its input.
/// dy: gradient of adaptive_max_pool2d's result.
/// position: argmax indices, the second result of the forward op.
/// attrs.input: type of adaptive_max_pool2d's input (required).
/// Gives dx: of type `input`.
struct AdaptiveMaxPool2dGradAttrs { Required<Type> input; };
Value adaptive_max_pool2d_grad(Value dy, Value position, const AdaptiveMaxPool2dGradAttrs& attrs, const Loc& loc = Loc::here());

/// scaled_dot_product_attention, with dropout of the softmax weights if it has a random key. Computes tiles of the scores, which it never stores as a whole.
/// q: float [B, H, T, D].
/// k: same dtype, [B, G, S, D].
/// v: same dtype, [B, G, S, E].
/// mask: bool or q's dtype, broadcasts to [B, H, T, S].
/// random_key: i64[4]: seed, run counter, index of the first sample, random stream of the dropout.
/// attrs.causal: whether query i sees only keys 0 to i.
/// attrs.scale: factor of the products; 0: 1 / sqrt(D).
/// attrs.alibi: whether the bias of op alibi is added to the scores.
/// attrs.dropout: probability that a softmax weight is dropped.
/// Gives y: [B, H, T, E].
/// Gives logsumexp: log of the sum of exp(score) per query, [B, H, T]; inf for a query that sees no key.
struct AttentionAttrs { bool causal = false; double scale = 0.0; bool alibi = false; double dropout = 0.0; };
Value attention(Value q, Value k, Value v, const AttentionAttrs& attrs = {}, const Loc& loc = Loc::here());
Value attention(Value q, Value k, Value v, Value mask, const AttentionAttrs& attrs = {}, const Loc& loc = Loc::here());
Value attention(Value q, Value k, Value v, Value mask, Value random_key, const AttentionAttrs& attrs = {}, const Loc& loc = Loc::here());

/// Gradients of attention with respect to q, k and v. Computes the scores once, where attention_grad_query and attention_grad_key_value compute them twice, but has only one block per head of k.
/// q: float [B, H, T, D].
/// k: [B, G, S, D].
/// v: [B, G, S, E].
/// dy: gradient of attention's result, [B, H, T, E].
/// logsumexp: attention's second result.
/// delta: sum of dy * y over E, like logsumexp.
/// mask: bool or q's dtype, broadcasts to [B, H, T, S].
/// random_key: i64[4]: seed, run counter, index of the first sample, random stream of the dropout.
/// attrs.causal: whether query i sees only keys 0 to i.
/// attrs.scale: factor of the products; 0: 1 / sqrt(D).
/// attrs.alibi: whether the bias of op alibi is added to the scores.
/// attrs.dropout: probability that a softmax weight is dropped.
/// Gives dq: like q, in the compute dtype.
/// Gives dk: [B, G, S, D].
/// Gives dv: [B, G, S, E].
struct AttentionGradAttrs { bool causal = false; double scale = 0.0; bool alibi = false; double dropout = 0.0; };
Values attention_grad(Value q, Value k, Value v, Value dy, Value logsumexp, Value delta, const AttentionGradAttrs& attrs = {}, const Loc& loc = Loc::here());
Values attention_grad(Value q, Value k, Value v, Value dy, Value logsumexp, Value delta, Value mask, const AttentionGradAttrs& attrs = {}, const Loc& loc = Loc::here());
Values attention_grad(Value q, Value k, Value v, Value dy, Value logsumexp, Value delta, Value mask, Value random_key, const AttentionGradAttrs& attrs = {}, const Loc& loc = Loc::here());

/// Gradients of attention with respect to k and v.
/// q: float [B, H, T, D].
/// k: [B, G, S, D].
/// v: [B, G, S, E].
/// dy: gradient of attention's result, [B, H, T, E].
/// logsumexp: attention's second result.
/// delta: sum of dy * y over E, like logsumexp.
/// mask: bool or q's dtype, broadcasts to [B, H, T, S].
/// random_key: i64[4]: seed, run counter, index of the first sample, random stream of the dropout.
/// attrs.causal: whether query i sees only keys 0 to i.
/// attrs.scale: factor of the products; 0: 1 / sqrt(D).
/// attrs.alibi: whether the bias of op alibi is added to the scores.
/// attrs.dropout: probability that a softmax weight is dropped.
/// Gives dk: [B, G, S, D].
/// Gives dv: [B, G, S, E].
struct AttentionGradKeyValueAttrs { bool causal = false; double scale = 0.0; bool alibi = false; double dropout = 0.0; };
Values attention_grad_key_value(Value q, Value k, Value v, Value dy, Value logsumexp, Value delta, const AttentionGradKeyValueAttrs& attrs = {}, const Loc& loc = Loc::here());
Values attention_grad_key_value(Value q, Value k, Value v, Value dy, Value logsumexp, Value delta, Value mask, const AttentionGradKeyValueAttrs& attrs = {}, const Loc& loc = Loc::here());
Values attention_grad_key_value(Value q, Value k, Value v, Value dy, Value logsumexp, Value delta, Value mask, Value random_key, const AttentionGradKeyValueAttrs& attrs = {}, const Loc& loc = Loc::here());

/// Gradient of attention with respect to q.
/// q: float [B, H, T, D].
/// k: [B, G, S, D].
/// v: [B, G, S, E].
/// dy: gradient of attention's result, [B, H, T, E].
/// logsumexp: attention's second result.
/// delta: sum of dy * y over E, like logsumexp.
/// mask: bool or q's dtype, broadcasts to [B, H, T, S].
/// random_key: i64[4]: seed, run counter, index of the first sample, random stream of the dropout.
/// attrs.causal: whether query i sees only keys 0 to i.
/// attrs.scale: factor of the products; 0: 1 / sqrt(D).
/// attrs.alibi: whether the bias of op alibi is added to the scores.
/// attrs.dropout: probability that a softmax weight is dropped.
/// Gives dq: like q.
struct AttentionGradQueryAttrs { bool causal = false; double scale = 0.0; bool alibi = false; double dropout = 0.0; };
Value attention_grad_query(Value q, Value k, Value v, Value dy, Value logsumexp, Value delta, const AttentionGradQueryAttrs& attrs = {}, const Loc& loc = Loc::here());
Value attention_grad_query(Value q, Value k, Value v, Value dy, Value logsumexp, Value delta, Value mask, const AttentionGradQueryAttrs& attrs = {}, const Loc& loc = Loc::here());
Value attention_grad_query(Value q, Value k, Value v, Value dy, Value logsumexp, Value delta, Value mask, Value random_key, const AttentionGradQueryAttrs& attrs = {}, const Loc& loc = Loc::here());

/// Gradient of avg_pool1d with respect to its input.
/// dy: gradient of avg_pool1d's result.
/// attrs.kernel: window size: one number (required).
/// attrs.stride: stride of the window: one number; empty: the kernel.
/// attrs.padding: padding: one number or two (before, after).
/// attrs.dilation: spacing of the window's taps: one number.
/// attrs.ceil_mode: whether the number of windows is rounded up; the last window then extends beyond the padding.
/// attrs.count_include_pad: whether the divisor includes the padding; elements beyond it never count.
/// attrs.divisor_override: divisor of every window; 0: its number of taps.
/// attrs.input: type of avg_pool1d's input (required).
/// Gives dx: of type `input`.
struct AvgPool1dGradAttrs { Required<Ints> kernel; Ints stride = {}; Ints padding = {0}; Ints dilation = {1}; bool ceil_mode = false; bool count_include_pad = true; int64_t divisor_override = 0; Required<Type> input; };
Value avg_pool1d_grad(Value dy, const AvgPool1dGradAttrs& attrs, const Loc& loc = Loc::here());

/// Gradient of avg_pool2d with respect to its input.
/// dy: gradient of avg_pool2d's result.
/// attrs.kernel: window size: one number, or one for the height and one for the width (required).
/// attrs.stride: stride of the window: one number, or one for the height and one for the width; empty: the kernel.
/// attrs.padding: padding: one number, two (height, width) or four (top, left, bottom, right).
/// attrs.dilation: spacing of the window's taps: one number, or one for the height and one for the width.
/// attrs.ceil_mode: whether the number of windows is rounded up; the last window then extends beyond the padding.
/// attrs.count_include_pad: whether the divisor includes the padding; elements beyond it never count.
/// attrs.divisor_override: divisor of every window; 0: its number of taps.
/// attrs.input: type of avg_pool2d's input (required).
/// Gives dx: of type `input`.
struct AvgPool2dGradAttrs { Required<Ints> kernel; Ints stride = {}; Ints padding = {0}; Ints dilation = {1}; bool ceil_mode = false; bool count_include_pad = true; int64_t divisor_override = 0; Required<Type> input; };
Value avg_pool2d_grad(Value dy, const AvgPool2dGradAttrs& attrs, const Loc& loc = Loc::here());

/// Gradient of avg_pool3d with respect to its input.
/// dy: gradient of avg_pool3d's result.
/// attrs.kernel: window size: one number, or one each for the depth, the height and the width (required).
/// attrs.stride: stride of the window: one number, or one each for the depth, the height and the width; empty: the kernel.
/// attrs.padding: padding: one number, three (depth, height, width) or six (all before, then all after).
/// attrs.dilation: spacing of the window's taps: one number, or one each for the depth, the height and the width.
/// attrs.ceil_mode: whether the number of windows is rounded up; the last window then extends beyond the padding.
/// attrs.count_include_pad: whether the divisor includes the padding; elements beyond it never count.
/// attrs.divisor_override: divisor of every window; 0: its number of taps.
/// attrs.input: type of avg_pool3d's input (required).
/// Gives dx: of type `input`.
struct AvgPool3dGradAttrs { Required<Ints> kernel; Ints stride = {}; Ints padding = {0}; Ints dilation = {1}; bool ceil_mode = false; bool count_include_pad = true; int64_t divisor_override = 0; Required<Type> input; };
Value avg_pool3d_grad(Value dy, const AvgPool3dGradAttrs& attrs, const Loc& loc = Loc::here());

/// Batch normalisation (Ioffe and Szegedy, 2015): normalises each channel over the other dimensions, multiplies by gamma and adds beta. Eval and predict use the running statistics instead of the batch statistics.
/// x: float [N, C, ...].
/// gamma: [C], x's dtype or f32.
/// beta: [C], x's dtype or f32.
/// running_mean: [C], x's dtype or f32.
/// running_var: [C], x's dtype or f32.
/// attrs.eps: added to the variance.
/// Gives y: same type as x.
/// Gives mean: [C], f32 or wider: batch mean; in eval and predict the running mean.
/// Gives var: [C], f32 or wider: biased batch variance; in eval and predict the running variance.
struct BatchNormAttrs { double eps = 1e-05; };
Value batch_norm(Value x, Value gamma, Value beta, Value running_mean, Value running_var, const BatchNormAttrs& attrs = {}, const Loc& loc = Loc::here());

/// 1 with probability p, else 0, drawn for each element in each step, like torch.bernoulli. The gradient is 0.
/// p: float tensor of probabilities.
/// rng: i64[3]: seed, run counter, index of the first sample.
/// Gives y: same type as p.
Value bernoulli(Value p, Value rng, const Loc& loc = Loc::here());

/// Updates the running statistics of batch_norm: running = (1 - momentum) * running + momentum * batch. The variance is the unbiased one, var * count / (count - 1), as in PyTorch.
/// running_mean: float [C].
/// running_var: float [C].
/// mean: [C]: batch mean.
/// var: [C]: biased batch variance.
/// count: float scalar: number of elements per channel; the divisor count - 1 is at least 1.
/// attrs.momentum: weight of the batch statistics.
/// Gives new_mean: same type as running_mean.
/// Gives new_var: same type as running_var.
struct BnUpdateAttrs { double momentum = 0.1; };
Values bn_update(Value running_mean, Value running_var, Value mean, Value var, Value count, const BnUpdateAttrs& attrs = {}, const Loc& loc = Loc::here());

/// Draws a class from softmax(logits) for each row in each step, like torch.distributions.Categorical(logits).sample().
/// logits: float [..., C].
/// rng: i64[3]: seed, run counter, index of the first sample.
/// Gives class: i64 [...].
Value categorical(Value logits, Value rng, const Loc& loc = Loc::here());

/// Sums of the updates of each row of a table, like torch.Tensor.coalesce for a sparse gradient. Update i belongs to the n / m indices from i * n / m on. rows[p] is index[p] if no earlier position has this index, and sums[p] is the sum of the row's updates, in the order of the index. At other positions and at indices out of range, rows[p] is -1 and sums[p] is 0.
/// index: i64 [n].
/// updates: float [m, D]; n is a multiple of m.
/// weights: updates' dtype, [n]: factors of the updates.
/// attrs.rows: number of rows of the table (required).
/// Gives rows: i64 [n]: row numbers without duplicates, or -1.
/// Gives sums: updates' dtype, [n, D].
struct CoalesceRowsAttrs { Required<int64_t> rows; };
Values coalesce_rows(Value index, Value updates, const CoalesceRowsAttrs& attrs, const Loc& loc = Loc::here());
Values coalesce_rows(Value index, Value updates, Value weights, const CoalesceRowsAttrs& attrs, const Loc& loc = Loc::here());

/// The learning rate of the optimizer, after the warm-up.
/// update: i64 scalar: number of completed updates.
/// attrs.lr: learning rate of the optimizer (required).
/// attrs.warmup: number of warm-up updates.
/// attrs.warmup_start: factor of the learning rate from which the warm-up rises to 1.
/// attrs.constant_warmup: keeps the factor at `warmup_start` during the warm-up.
/// Gives rate: f64 scalar: learning rate of this update.
struct ConstantScheduleAttrs { Required<double> lr; int64_t warmup = 0; double warmup_start = 0.0; bool constant_warmup = false; };
Value constant_schedule(Value update, const ConstantScheduleAttrs& attrs, const Loc& loc = Loc::here());

/// Gradient of conv2d with respect to its filter.
/// x: conv2d's input.
/// dy: gradient of conv2d's result.
/// attrs.stride: stride of the window: one number, or one for the height and one for the width.
/// attrs.padding: zero padding: one number, two (height, width) or four (top, left, bottom, right).
/// attrs.dilation: spacing of the filter's taps: one number, or one for the height and one for the width.
/// attrs.groups: number of groups; a filter sees only the input channels of its group.
/// attrs.filter: type of conv2d's filter (required).
/// Gives dw: of type `filter`.
struct Conv2dGradFilterAttrs { Ints stride = {1}; Ints padding = {0}; Ints dilation = {1}; int64_t groups = 1; Required<Type> filter; };
Value conv2d_grad_filter(Value x, Value dy, const Conv2dGradFilterAttrs& attrs, const Loc& loc = Loc::here());

/// Gradient of conv2d with respect to its input.
/// dy: gradient of conv2d's result.
/// w: conv2d's filter.
/// attrs.stride: stride of the window: one number, or one for the height and one for the width.
/// attrs.padding: zero padding: one number, two (height, width) or four (top, left, bottom, right).
/// attrs.dilation: spacing of the filter's taps: one number, or one for the height and one for the width.
/// attrs.groups: number of groups; a filter sees only the input channels of its group.
/// attrs.input: type of conv2d's input (required).
/// Gives dx: of type `input`.
struct Conv2dGradInputAttrs { Ints stride = {1}; Ints padding = {0}; Ints dilation = {1}; int64_t groups = 1; Required<Type> input; };
Value conv2d_grad_input(Value dy, Value w, const Conv2dGradInputAttrs& attrs, const Loc& loc = Loc::here());

/// conv2d of 8-bit integers. The sums are f32: exact up to 2^24, beyond that rounded.
/// x: i8 or u8 [N, C, H, W].
/// w: filter, i8 [O, C / groups, KH, KW].
/// attrs.stride: stride of the window: one number, or one for the height and one for the width.
/// attrs.padding: zero padding: one number, two (height, width) or four (top, left, bottom, right).
/// attrs.dilation: spacing of the filter's taps: one number, or one for the height and one for the width.
/// attrs.groups: number of groups; a filter sees only the input channels of its group.
/// Gives y: f32 [N, O, OH, OW], as of conv2d.
struct Conv2dInt8Attrs { Ints stride = {1}; Ints padding = {0}; Ints dilation = {1}; int64_t groups = 1; };
Value conv2d_int8(Value x, Value w, const Conv2dInt8Attrs& attrs = {}, const Loc& loc = Loc::here());

/// Gradient of conv3d with respect to its filter.
/// x: conv3d's input.
/// dy: gradient of conv3d's result.
/// attrs.stride: stride of the window: one number, or one each for the depth, the height and the width.
/// attrs.padding: zero padding: one number, three (depth, height, width) or six (all before, then all after).
/// attrs.dilation: spacing of the filter's taps: one number, or one each for the depth, the height and the width.
/// attrs.groups: number of groups; a filter sees only the input channels of its group.
/// attrs.filter: type of conv3d's filter (required).
/// Gives dw: of type `filter`.
struct Conv3dGradFilterAttrs { Ints stride = {1}; Ints padding = {0}; Ints dilation = {1}; int64_t groups = 1; Required<Type> filter; };
Value conv3d_grad_filter(Value x, Value dy, const Conv3dGradFilterAttrs& attrs, const Loc& loc = Loc::here());

/// Gradient of conv3d with respect to its input.
/// dy: gradient of conv3d's result.
/// w: conv3d's filter.
/// attrs.stride: stride of the window: one number, or one each for the depth, the height and the width.
/// attrs.padding: zero padding: one number, three (depth, height, width) or six (all before, then all after).
/// attrs.dilation: spacing of the filter's taps: one number, or one each for the depth, the height and the width.
/// attrs.groups: number of groups; a filter sees only the input channels of its group.
/// attrs.input: type of conv3d's input (required).
/// Gives dx: of type `input`.
struct Conv3dGradInputAttrs { Ints stride = {1}; Ints padding = {0}; Ints dilation = {1}; int64_t groups = 1; Required<Type> input; };
Value conv3d_grad_input(Value dy, Value w, const Conv3dGradInputAttrs& attrs, const Loc& loc = Loc::here());

/// Copies x into memory of its own.
/// x: any tensor.
/// Gives y: like x.
Value copy(Value x, const Loc& loc = Loc::here());

/// Cosine annealing from lr to `end` in periods (Loshchilov and Hutter, SGDR, 2017), like PyTorch's CosineAnnealingWarmRestarts. Each period is `growth` times the one before.
/// update: i64 scalar: number of completed updates.
/// attrs.lr: learning rate of the optimizer (required).
/// attrs.period: number of updates of the first period (required).
/// attrs.growth: length of a period / length of the period before.
/// attrs.end: final learning rate.
/// attrs.warmup: number of warm-up updates.
/// attrs.warmup_start: factor of the learning rate from which the warm-up rises to 1.
/// attrs.constant_warmup: keeps the factor at `warmup_start` during the warm-up.
/// Gives rate: f64 scalar: learning rate of this update.
struct CosineRestartsScheduleAttrs { Required<double> lr; Required<int64_t> period; int64_t growth = 1; double end = 0.0; int64_t warmup = 0; double warmup_start = 0.0; bool constant_warmup = false; };
Value cosine_restarts_schedule(Value update, const CosineRestartsScheduleAttrs& attrs, const Loc& loc = Loc::here());

/// Cosine annealing from lr to `end` at update `steps` (Loshchilov and Hutter, SGDR, 2017, without restarts), like PyTorch's CosineAnnealingLR. The rate stays at `end` afterwards.
/// update: i64 scalar: number of completed updates.
/// attrs.lr: learning rate of the optimizer (required).
/// attrs.steps: update at which the rate reaches `end` (required).
/// attrs.end: final learning rate.
/// attrs.warmup: number of warm-up updates.
/// attrs.warmup_start: factor of the learning rate from which the warm-up rises to 1.
/// attrs.constant_warmup: keeps the factor at `warmup_start` during the warm-up.
/// Gives rate: f64 scalar: learning rate of this update.
struct CosineScheduleAttrs { Required<double> lr; Required<int64_t> steps; double end = 0.0; int64_t warmup = 0; double warmup_start = 0.0; bool constant_warmup = false; };
Value cosine_schedule(Value update, const CosineScheduleAttrs& attrs, const Loc& loc = Loc::here());

/// Number of infinite or NaN elements along `axes`; exact up to 2^24.
/// x: float tensor.
/// attrs.axes: axes to reduce; negative: counted from the end; empty: all.
/// attrs.keep_dims: keeps the reduced axes with extent 1.
/// Gives y: f32.
struct CountNonfiniteAttrs { Ints axes = {}; bool keep_dims = false; };
Value count_nonfinite(Value x, const CountNonfiniteAttrs& attrs = {}, const Loc& loc = Loc::here());

/// Gradient of cumprod with respect to x.
/// dy: gradient of cumprod's result.
/// x: cumprod's operand.
/// attrs.axis: axis of the products, not the batch dimension; negative: counted from the end.
/// attrs.exclusive: whether an element is left out of its own product.
/// attrs.reverse: whether products start at the end of the axis.
/// Gives dx: same type as x.
struct CumprodGradAttrs { int64_t axis = -1; bool exclusive = false; bool reverse = false; };
Value cumprod_grad(Value dy, Value x, const CumprodGradAttrs& attrs = {}, const Loc& loc = Loc::here());

/// A convolution filter [out, in, taps...] that keeps its input, like torch.nn.init.dirac_: 1 at the central tap of output channel d and input channel d of each group, else 0.
/// attrs.type: type of the result (required).
/// attrs.groups: number of groups of output channels.
/// Gives y: of type `type`.
struct DiracAttrs { Required<Type> type; int64_t groups = 1; };
Value dirac(ir::Graph& graph, const DiracAttrs& attrs, const Loc& loc = Loc::here());

/// Sets elements to 0 with probability `p` and scales the others by 1 / (1 - p). Identity in eval and predict.
/// x: float tensor.
/// rng: i64[3]: seed, run counter, index of the first sample.
/// attrs.p: probability that an element or channel is dropped.
/// Gives y: same type as x.
struct DropoutAttrs { double p = 0.5; };
Value dropout(Value x, Value rng, const DropoutAttrs& attrs = {}, const Loc& loc = Loc::here());

/// Sets whole channels to 0 with probability `p` and scales the others by 1 / (1 - p). Identity in eval and predict.
/// x: float [N, C, ...].
/// rng: i64[3]: seed, run counter, index of the first sample.
/// attrs.p: probability that an element or channel is dropped.
/// Gives y: same type as x.
struct Dropout2dAttrs { double p = 0.5; };
Value dropout2d(Value x, Value rng, const Dropout2dAttrs& attrs = {}, const Loc& loc = Loc::here());

/// Updates the exponential moving average of a parameter: average = decay * average + (1 - decay) * param. The first update sets the average to the parameter, as torch.optim.swa_utils.AveragedModel does.
/// average: float tensor, param's shape.
/// param: float tensor: the updated parameter.
/// update: i64 scalar: number of completed updates before this one.
/// attrs.decay: weight of the old average, in [0, 1) (required).
/// Gives new_average: same type as average.
struct EmaUpdateAttrs { Required<double> decay; };
Value ema_update(Value average, Value param, Value update, const EmaUpdateAttrs& attrs, const Loc& loc = Loc::here());

/// Gradient of a sum of embedding_bag with respect to the table: adds the row of dy of each bag, times the weight, at the indices of the bag. An index out of range adds nothing.
/// dy: gradient of the sums, [N, D].
/// index: index of embedding_bag, [N, L].
/// weights: weights of embedding_bag, [N, L].
/// attrs.input: type of the table (required).
/// Gives dtable: of type `input`.
struct EmbeddingBagGradAttrs { Required<Type> input; };
Value embedding_bag_grad(Value dy, Value index, const EmbeddingBagGradAttrs& attrs, const Loc& loc = Loc::here());
Value embedding_bag_grad(Value dy, Value index, Value weights, const EmbeddingBagGradAttrs& attrs, const Loc& loc = Loc::here());

/// lr * factor^(t / every) after t updates, like PyTorch's ExponentialLR.
/// update: i64 scalar: number of completed updates.
/// attrs.lr: learning rate of the optimizer (required).
/// attrs.factor: factor of the learning rate after `every` updates (required).
/// attrs.every: number of updates in which the learning rate is multiplied by `factor`.
/// attrs.warmup: number of warm-up updates.
/// attrs.warmup_start: factor of the learning rate from which the warm-up rises to 1.
/// attrs.constant_warmup: keeps the factor at `warmup_start` during the warm-up.
/// Gives rate: f64 scalar: learning rate of this update.
struct ExponentialScheduleAttrs { Required<double> lr; Required<double> factor; int64_t every = 1; int64_t warmup = 0; double warmup_start = 0.0; bool constant_warmup = false; };
Value exponential_schedule(Value update, const ExponentialScheduleAttrs& attrs, const Loc& loc = Loc::here());

/// Gradient of gather with respect to x: adds the slices of dy at the indices, in their order. An index out of range adds nothing.
/// dy: gradient of gather's result.
/// index: index of gather.
/// attrs.input: type of gather's x (required).
/// attrs.axis: axis of gather, not the batch dimension; negative: counted from the end.
/// Gives dx: of type `input`.
struct GatherGradAttrs { Required<Type> input; int64_t axis = 0; };
Value gather_grad(Value dy, Value index, const GatherGradAttrs& attrs, const Loc& loc = Loc::here());

/// The rows of a table with the given numbers. A number out of range, such as -1 of coalesce_rows, gives zeros.
/// table: numeric [V, D].
/// rows: i64 [n].
/// Gives y: table's dtype, [n, D].
Value gather_rows(Value table, Value rows, const Loc& loc = Loc::here());

/// Group normalisation (Wu and He, 2018): divides the channels into groups, normalises each group of a sample over its channels and the other dimensions, multiplies by scale and adds bias.
/// x: float [N, C, ...].
/// scale: [C], x's dtype or f32.
/// bias: [C], x's dtype or f32.
/// attrs.groups: number of groups (required).
/// attrs.eps: added to the variance.
/// Gives y: same type as x.
/// Gives mean: [N, groups], f32 or wider.
/// Gives rstd: [N, groups], f32 or wider: reciprocal of the standard deviation.
struct GroupNormAttrs { Required<int64_t> groups; double eps = 1e-05; };
Value group_norm(Value x, const GroupNormAttrs& attrs, const Loc& loc = Loc::here());
Value group_norm(Value x, Value scale, const GroupNormAttrs& attrs, const Loc& loc = Loc::here());
Value group_norm(Value x, Value scale, Value bias, const GroupNormAttrs& attrs, const Loc& loc = Loc::here());

/// x with rows replaced by other rows, like torch.Tensor.index_copy_. An index out of range replaces nothing. The indices in range must differ. Runs in place, and its cost does not depend on the number of rows of x.
/// x: matrix [V, D].
/// index: i64 [n].
/// source: x's dtype, [n, D].
/// Gives y: x's type.
Value index_copy(Value x, Value index, Value source, const Loc& loc = Loc::here());

/// Instance normalisation (Ulyanov, Vedaldi and Lempitsky, 2016): normalises each channel of a sample over the other dimensions, multiplies by scale and adds bias. It has no running statistics.
/// x: float [N, C, L, ...].
/// scale: [C], x's dtype or f32.
/// bias: [C], x's dtype or f32.
/// attrs.eps: added to the variance.
/// Gives y: same type as x.
/// Gives mean: [N, C], f32 or wider.
/// Gives rstd: [N, C], f32 or wider: reciprocal of the standard deviation.
struct InstanceNormAttrs { double eps = 1e-05; };
Value instance_norm(Value x, const InstanceNormAttrs& attrs = {}, const Loc& loc = Loc::here());
Value instance_norm(Value x, Value scale, const InstanceNormAttrs& attrs = {}, const Loc& loc = Loc::here());
Value instance_norm(Value x, Value scale, Value bias, const InstanceNormAttrs& attrs = {}, const Loc& loc = Loc::here());

/// lr / (1 + decay * t / every) after t updates, like Keras's InverseTimeDecay.
/// update: i64 scalar: number of completed updates.
/// attrs.lr: learning rate of the optimizer (required).
/// attrs.decay: increase of the divisor 1 + decay * t / every in `every` updates (required).
/// attrs.every: number of updates in which the divisor rises by `decay`.
/// attrs.staircase: changes the learning rate only after each `every` updates: rounds t / every down.
/// attrs.warmup: number of warm-up updates.
/// attrs.warmup_start: factor of the learning rate from which the warm-up rises to 1.
/// attrs.constant_warmup: keeps the factor at `warmup_start` during the warm-up.
/// Gives rate: f64 scalar: learning rate of this update.
struct InverseTimeScheduleAttrs { Required<double> lr; Required<double> decay; int64_t every = 1; bool staircase = false; int64_t warmup = 0; double warmup_start = 0.0; bool constant_warmup = false; };
Value inverse_time_schedule(Value update, const InverseTimeScheduleAttrs& attrs, const Loc& loc = Loc::here());

/// LAMB (You et al., "Large batch optimization for deep learning: training BERT in 76 minutes", 2020). step = m / (1 - beta1^t) / (sqrt(v / (1 - beta2^t)) + eps) + weight_decay * param. The step is scaled by lr * |param| / |step|, with L2 norms of the whole parameter; by lr if a norm is 0.
/// param: float tensor.
/// grad: same type as param.
/// lr: float scalar: learning rate.
/// update: i64 scalar: number of completed updates.
/// m: same type as param.
/// v: same type as param.
/// param_norm: float scalar: L2 norm of the parameter.
/// step_norm: float scalar: L2 norm of lamb_step.
/// attrs.beta1: decay rate of m.
/// attrs.beta2: decay rate of v.
/// attrs.eps: added to the denominator.
/// attrs.weight_decay: weight_decay * param is added to the step.
/// Gives new_param: same type as param.
/// Gives new_m: same type as param.
/// Gives new_v: same type as param.
struct LambAttrs { double beta1 = 0.9; double beta2 = 0.999; double eps = 1e-06; double weight_decay = 0.01; };
Values lamb(Value param, Value grad, Value lr, Value update, Value m, Value v, Value param_norm, Value step_norm, const LambAttrs& attrs = {}, const Loc& loc = Loc::here());

/// The step of lamb before it is scaled by the learning rate and the norms.
/// param: float tensor.
/// grad: same type as param.
/// lr: float scalar: learning rate.
/// update: i64 scalar: number of completed updates.
/// m: same type as param.
/// v: same type as param.
/// attrs.beta1: decay rate of m.
/// attrs.beta2: decay rate of v.
/// attrs.eps: added to the denominator.
/// attrs.weight_decay: weight_decay * param is added to the step.
/// Gives value: same type as param.
struct LambStepAttrs { double beta1 = 0.9; double beta2 = 0.999; double eps = 1e-06; double weight_decay = 0.01; };
Value lamb_step(Value param, Value grad, Value lr, Value update, Value m, Value v, const LambStepAttrs& attrs = {}, const Loc& loc = Loc::here());

/// LARS (You et al., "Large batch training of convolutional networks", 2017): velocity = momentum * velocity + rate * (grad + weight_decay * param), param -= velocity. rate = lr * trust_coefficient * |param| / (|grad| + weight_decay * |param|), with L2 norms of the whole parameter; rate = lr if a norm is 0.
/// param: float tensor.
/// grad: same type as param.
/// lr: float scalar: learning rate.
/// update: i64 scalar: number of completed updates.
/// velocity: same type as param.
/// param_norm: float scalar: L2 norm of the parameter.
/// grad_norm: float scalar: L2 norm of the gradient.
/// attrs.momentum: momentum factor.
/// attrs.trust_coefficient: factor of the rate.
/// attrs.weight_decay: L2 penalty: weight_decay * param is added to the gradient.
/// Gives new_param: same type as param.
/// Gives new_velocity: same type as param.
struct LarsAttrs { double momentum = 0.9; double trust_coefficient = 0.001; double weight_decay = 0.0; };
Values lars(Value param, Value grad, Value lr, Value update, Value velocity, Value param_norm, Value grad_norm, const LarsAttrs& attrs = {}, const Loc& loc = Loc::here());

/// Layer normalisation (Ba, Kiros and Hinton, 2016): normalises x over its dimensions from `axis` on, multiplies by scale and adds bias.
/// x: float tensor, rank >= 1.
/// scale: x's dimensions from `axis` on, x's dtype or f32.
/// bias: x's dimensions from `axis` on, x's dtype or f32.
/// attrs.axis: first normalised axis; negative: counted from the end.
/// attrs.eps: added to the variance.
/// Gives y: same type as x.
/// Gives mean: x's shape with extent 1 from `axis` on, f32 or wider.
/// Gives rstd: x's shape with extent 1 from `axis` on, f32 or wider: reciprocal of the standard deviation.
struct LayerNormAttrs { int64_t axis = -1; double eps = 1e-05; };
Value layer_norm(Value x, const LayerNormAttrs& attrs = {}, const Loc& loc = Loc::here());
Value layer_norm(Value x, Value scale, const LayerNormAttrs& attrs = {}, const Loc& loc = Loc::here());
Value layer_norm(Value x, Value scale, Value bias, const LayerNormAttrs& attrs = {}, const Loc& loc = Loc::here());

/// y[t] = a[t] + x[t] * y[t - 1] along `axis`, where the first element has no predecessor. Half precision is computed in f32.
/// a: float tensor, rank >= 1.
/// x: a's type.
/// attrs.axis: axis along which the elements follow each other, not the batch dimension; negative: counted from the end.
/// attrs.reverse: whether the last element is the first: y[t + 1] precedes y[t].
/// Gives y: a's type.
struct LinearRecurrenceAttrs { int64_t axis = -1; bool reverse = false; };
Value linear_recurrence(Value a, Value x, const LinearRecurrenceAttrs& attrs = {}, const Loc& loc = Loc::here());

/// A line from lr to `end` at update `steps`, like PyTorch's LinearLR. The rate stays at `end` afterwards.
/// update: i64 scalar: number of completed updates.
/// attrs.lr: learning rate of the optimizer (required).
/// attrs.steps: update at which the rate reaches `end` (required).
/// attrs.end: final learning rate.
/// attrs.warmup: number of warm-up updates.
/// attrs.warmup_start: factor of the learning rate from which the warm-up rises to 1.
/// attrs.constant_warmup: keeps the factor at `warmup_start` during the warm-up.
/// Gives rate: f64 scalar: learning rate of this update.
struct LinearScheduleAttrs { Required<double> lr; Required<int64_t> steps; double end = 0.0; int64_t warmup = 0; double warmup_start = 0.0; bool constant_warmup = false; };
Value linear_schedule(Value update, const LinearScheduleAttrs& attrs, const Loc& loc = Loc::here());

/// Lion (Chen et al., "Symbolic discovery of optimization algorithms", 2023). The step is lr * sign(beta1 * m + (1 - beta1) * grad), then m = beta2 * m + (1 - beta2) * grad.
/// param: float tensor.
/// grad: same type as param.
/// lr: float scalar: learning rate.
/// update: i64 scalar: number of completed updates.
/// m: same type as param.
/// attrs.beta1: weight of m in the step.
/// attrs.beta2: decay rate of m.
/// attrs.weight_decay: decoupled weight decay: lr * weight_decay * param is subtracted from the parameter.
/// Gives new_param: same type as param.
/// Gives new_m: same type as param.
struct LionAttrs { double beta1 = 0.9; double beta2 = 0.99; double weight_decay = 0.0; };
Values lion(Value param, Value grad, Value lr, Value update, Value m, const LionAttrs& attrs = {}, const Loc& loc = Loc::here());

/// Lookahead around an optimizer (Zhang et al., "Lookahead optimizer: k steps forward, 1 step back", 2019): after each `every` updates, slow = slow + alpha * (param - slow), and the parameter becomes slow. The first slow weights are the initial parameter.
/// slow: float tensor: the slow weights.
/// old_param: same type: the parameter before the update.
/// param: same type: the parameter after the update.
/// update: i64 scalar: number of completed updates before this one.
/// attrs.every: number of updates between two of the slow weights.
/// attrs.alpha: step size of the slow weights.
/// Gives new_param: same type as slow.
/// Gives new_slow: same type as slow.
struct LookaheadAttrs { int64_t every = 5; double alpha = 0.5; };
Values lookahead(Value slow, Value old_param, Value param, Value update, const LookaheadAttrs& attrs = {}, const Loc& loc = Loc::here());

/// lr * lr_factor. Executor::set_learning_rate() sets lr_factor, which is 1 initially.
/// update: i64 scalar: number of completed updates.
/// lr_factor: float scalar: factor of lr.
/// attrs.lr: learning rate of the optimizer (required).
/// attrs.warmup: number of warm-up updates.
/// attrs.warmup_start: factor of the learning rate from which the warm-up rises to 1.
/// attrs.constant_warmup: keeps the factor at `warmup_start` during the warm-up.
/// Gives rate: f64 scalar: learning rate of this update.
struct ManualScheduleAttrs { Required<double> lr; int64_t warmup = 0; double warmup_start = 0.0; bool constant_warmup = false; };
Value manual_schedule(Value update, Value lr_factor, const ManualScheduleAttrs& attrs, const Loc& loc = Loc::here());

/// matmul with a matrix of i8. The sums are floats: those of integers are exact up to 2^24, beyond that rounded.
/// a: float, i8 or u8 [..., m, k].
/// b: i8 [k, n].
/// attrs.transpose_b: b is [n, k].
/// Gives y: [..., m, n], the dtype of a float a, else f32.
struct MatmulInt8Attrs { bool transpose_b = false; };
Value matmul_int8(Value a, Value b, const MatmulInt8Attrs& attrs = {}, const Loc& loc = Loc::here());

/// Gradient of max_pool1d with respect to its input.
/// dy: gradient of max_pool1d's result.
/// position: argmax indices, the second result of the forward op.
/// attrs.kernel: window size: one number (required).
/// attrs.stride: stride of the window: one number; empty: the kernel.
/// attrs.padding: padding: one number or two (before, after).
/// attrs.dilation: spacing of the window's taps: one number.
/// attrs.ceil_mode: whether the number of windows is rounded up; the last window then extends beyond the padding.
/// attrs.input: type of max_pool1d's input (required).
/// Gives dx: of type `input`.
struct MaxPool1dGradAttrs { Required<Ints> kernel; Ints stride = {}; Ints padding = {0}; Ints dilation = {1}; bool ceil_mode = false; Required<Type> input; };
Value max_pool1d_grad(Value dy, Value position, const MaxPool1dGradAttrs& attrs, const Loc& loc = Loc::here());

/// Gradient of max_pool2d with respect to its input.
/// dy: gradient of max_pool2d's result.
/// position: argmax indices, the second result of the forward op.
/// attrs.kernel: window size: one number, or one for the height and one for the width (required).
/// attrs.stride: stride of the window: one number, or one for the height and one for the width; empty: the kernel.
/// attrs.padding: padding: one number, two (height, width) or four (top, left, bottom, right).
/// attrs.dilation: spacing of the window's taps: one number, or one for the height and one for the width.
/// attrs.ceil_mode: whether the number of windows is rounded up; the last window then extends beyond the padding.
/// attrs.input: type of max_pool2d's input (required).
/// Gives dx: of type `input`.
struct MaxPool2dGradAttrs { Required<Ints> kernel; Ints stride = {}; Ints padding = {0}; Ints dilation = {1}; bool ceil_mode = false; Required<Type> input; };
Value max_pool2d_grad(Value dy, Value position, const MaxPool2dGradAttrs& attrs, const Loc& loc = Loc::here());

/// Gradient of max_pool3d with respect to its input.
/// dy: gradient of max_pool3d's result.
/// position: argmax indices, the second result of the forward op.
/// attrs.kernel: window size: one number, or one each for the depth, the height and the width (required).
/// attrs.stride: stride of the window: one number, or one each for the depth, the height and the width; empty: the kernel.
/// attrs.padding: padding: one number, three (depth, height, width) or six (all before, then all after).
/// attrs.dilation: spacing of the window's taps: one number, or one each for the depth, the height and the width.
/// attrs.ceil_mode: whether the number of windows is rounded up; the last window then extends beyond the padding.
/// attrs.input: type of max_pool3d's input (required).
/// Gives dx: of type `input`.
struct MaxPool3dGradAttrs { Required<Ints> kernel; Ints stride = {}; Ints padding = {0}; Ints dilation = {1}; bool ceil_mode = false; Required<Type> input; };
Value max_pool3d_grad(Value dy, Value position, const MaxPool3dGradAttrs& attrs, const Loc& loc = Loc::here());

/// SGD with momentum, like torch.optim.SGD: velocity = momentum * velocity + (1 - dampening) * grad; the first velocity is grad. The step is lr * velocity, or lr * (grad + momentum * velocity) with `nesterov`.
/// param: float tensor.
/// grad: same type as param.
/// lr: float scalar: learning rate.
/// update: i64 scalar: number of completed updates.
/// velocity: same type as param.
/// attrs.momentum: momentum factor.
/// attrs.dampening: dampening of the gradient in the velocity.
/// attrs.nesterov: uses Nesterov momentum.
/// attrs.weight_decay: L2 penalty: weight_decay * param is added to the gradient.
/// Gives new_param: same type as param.
/// Gives new_velocity: same type as param.
struct MomentumAttrs { double momentum = 0.9; double dampening = 0.0; bool nesterov = false; double weight_decay = 0.0; };
Values momentum(Value param, Value grad, Value lr, Value update, Value velocity, const MomentumAttrs& attrs = {}, const Loc& loc = Loc::here());

/// Multiplies the learning rate by `factor` at each update of `milestones`, like PyTorch's MultiStepLR.
/// update: i64 scalar: number of completed updates.
/// attrs.lr: learning rate of the optimizer (required).
/// attrs.milestones: numbers of updates, rising (required).
/// attrs.factor: factor of the learning rate at each decay.
/// attrs.warmup: number of warm-up updates.
/// attrs.warmup_start: factor of the learning rate from which the warm-up rises to 1.
/// attrs.constant_warmup: keeps the factor at `warmup_start` during the warm-up.
/// Gives rate: f64 scalar: learning rate of this update.
struct MultistepScheduleAttrs { Required<double> lr; Required<Ints> milestones; double factor = 0.1; int64_t warmup = 0; double warmup_start = 0.0; bool constant_warmup = false; };
Value multistep_schedule(Value update, const MultistepScheduleAttrs& attrs, const Loc& loc = Loc::here());

/// Muon (Jordan et al., 2024), like torch.optim.Muon: m is the moving average of the gradient of a matrix. The step is the orthogonalized m, or grad + momentum * (m - grad) with `nesterov`, by ns_steps iterations of Newton-Schulz, X = ns_a X + (ns_b G + ns_c G^2) X with G = X X^T, in the parameter's compute dtype. adjust_lr scales lr: original by sqrt(max(1, out / in)) of a matrix [in, out], match_rms_adamw by 0.2 sqrt(max(in, out)), spectral_unclamped by sqrt(out / in). AdamW updates the parameters that are not matrices.
/// param: float tensor.
/// grad: same type as param.
/// lr: float scalar: learning rate.
/// update: i64 scalar: number of completed updates.
/// m: same type as param.
/// direction: same shape as param: orthogonalized step.
/// attrs.momentum: momentum factor.
/// attrs.nesterov: uses Nesterov momentum.
/// attrs.ns_a: coefficient of Newton-Schulz.
/// attrs.ns_b: coefficient of Newton-Schulz.
/// attrs.ns_c: coefficient of Newton-Schulz.
/// attrs.ns_steps: number of iterations of Newton-Schulz.
/// attrs.eps: lower bound of the norm of the matrix.
/// attrs.adjust_lr: rule that scales the learning rate by the shape.
/// attrs.weight_decay: decoupled weight decay: lr * weight_decay * param is subtracted from the parameter.
/// attrs.adamw_lr_scale: factor of lr for parameters that are not matrices.
/// attrs.adamw_beta1: beta1 of parameters that are not matrices.
/// attrs.adamw_beta2: beta2 of parameters that are not matrices.
/// attrs.adamw_eps: eps of parameters that are not matrices.
/// Gives new_param: same type as param.
/// Gives new_m: same type as param.
struct MuonAttrs { double momentum = 0.95; bool nesterov = true; double ns_a = 3.4445; double ns_b = -4.775; double ns_c = 2.0315; int64_t ns_steps = 5; double eps = 1e-07; std::string adjust_lr = "original"; double weight_decay = 0.1; double adamw_lr_scale = 1.0; double adamw_beta1 = 0.9; double adamw_beta2 = 0.999; double adamw_eps = 1e-08; };
Values muon(Value param, Value grad, Value lr, Value update, Value m, Value direction, const MuonAttrs& attrs = {}, const Loc& loc = Loc::here());

/// The matrix that muon orthogonalizes.
/// param: float tensor.
/// grad: same type as param.
/// lr: float scalar: learning rate.
/// update: i64 scalar: number of completed updates.
/// m: same type as param.
/// attrs.momentum: momentum factor.
/// attrs.nesterov: uses Nesterov momentum.
/// attrs.ns_a: coefficient of Newton-Schulz.
/// attrs.ns_b: coefficient of Newton-Schulz.
/// attrs.ns_c: coefficient of Newton-Schulz.
/// attrs.ns_steps: number of iterations of Newton-Schulz.
/// attrs.eps: lower bound of the norm of the matrix.
/// attrs.adjust_lr: rule that scales the learning rate by the shape.
/// attrs.weight_decay: decoupled weight decay: lr * weight_decay * param is subtracted from the parameter.
/// attrs.adamw_lr_scale: factor of lr for parameters that are not matrices.
/// attrs.adamw_beta1: beta1 of parameters that are not matrices.
/// attrs.adamw_beta2: beta2 of parameters that are not matrices.
/// attrs.adamw_eps: eps of parameters that are not matrices.
/// Gives value: same type as param.
struct MuonMomentumAttrs { double momentum = 0.95; bool nesterov = true; double ns_a = 3.4445; double ns_b = -4.775; double ns_c = 2.0315; int64_t ns_steps = 5; double eps = 1e-07; std::string adjust_lr = "original"; double weight_decay = 0.1; double adamw_lr_scale = 1.0; double adamw_beta1 = 0.9; double adamw_beta2 = 0.999; double adamw_eps = 1e-08; };
Value muon_momentum(Value param, Value grad, Value lr, Value update, Value m, const MuonMomentumAttrs& attrs = {}, const Loc& loc = Loc::here());

/// NAdam (Dozat, "Incorporating Nesterov momentum into Adam", 2016), like torch.optim.NAdam: adam with Nesterov momentum, whose factor is mu = beta1 * (1 - 0.96^(t * momentum_decay) / 2) in update t.
/// param: float tensor.
/// grad: same type as param.
/// lr: float scalar: learning rate.
/// update: i64 scalar: number of completed updates.
/// m: same type as param.
/// v: same type as param.
/// mu_product: float scalar: the product of mu over all updates, this one included.
/// attrs.beta1: decay rate of m.
/// attrs.beta2: decay rate of v.
/// attrs.eps: added to the denominator.
/// attrs.momentum_decay: decay of the momentum schedule.
/// attrs.weight_decay: L2 penalty: weight_decay * param is added to the gradient.
/// attrs.decoupled_weight_decay: applies weight decay to the parameter, as adamw does.
/// Gives new_param: same type as param.
/// Gives new_m: same type as param.
/// Gives new_v: same type as param.
struct NadamAttrs { double beta1 = 0.9; double beta2 = 0.999; double eps = 1e-08; double momentum_decay = 0.004; double weight_decay = 0.0; bool decoupled_weight_decay = false; };
Values nadam(Value param, Value grad, Value lr, Value update, Value m, Value v, Value mu_product, const NadamAttrs& attrs = {}, const Loc& loc = Loc::here());

/// Multiplies the product of nadam's momentum factors by the factor of this update.
/// mu_product: f64 scalar.
/// update: i64 scalar: number of completed updates.
/// attrs.beta1: decay rate of m.
/// attrs.momentum_decay: decay of the momentum schedule.
/// Gives new_mu_product: f64 scalar.
struct NadamMuProductAttrs { double beta1 = 0.9; double momentum_decay = 0.004; };
Value nadam_mu_product(Value mu_product, Value update, const NadamMuProductAttrs& attrs = {}, const Loc& loc = Loc::here());

/// lr * d_model^-0.5 * min(t^-0.5, t * warmup^-1.5) in update t, from 1 (Vaswani et al., "Attention is all you need", 2017, where lr is 1).
/// update: i64 scalar: number of completed updates.
/// attrs.lr: learning rate of the optimizer (required).
/// attrs.d_model: width of the model (required).
/// attrs.warmup: number of warm-up updates (required).
/// Gives rate: f64 scalar: learning rate of this update.
struct NoamScheduleAttrs { Required<double> lr; Required<int64_t> d_model; Required<int64_t> warmup; };
Value noam_schedule(Value update, const NoamScheduleAttrs& attrs, const Loc& loc = Loc::here());

/// Independent normally distributed random numbers. A number depends only on the seed, the stream and the logical index, up to rounding on different devices.
/// seed: i64 scalar.
/// attrs.type: type of the result (required).
/// attrs.mean: mean of the distribution.
/// attrs.std: standard deviation of the distribution.
/// Gives y: of type `type`.
struct NormalAttrs { Required<Type> type; double mean = 0.0; double std = 1.0; };
Value normal(Value seed, const NormalAttrs& attrs, const Loc& loc = Loc::here());

/// Number of elements of a tensor of type `of`, with the batch size of the current step.
/// attrs.of: tensor type; its dtype is also the dtype of the result (required).
/// Gives n: scalar.
struct NumelAttrs { Required<Type> of; };
Value numel(ir::Graph& graph, const NumelAttrs& attrs, const Loc& loc = Loc::here());

/// Rises from lr / div_factor to lr in the first fraction `pct_start` of the updates, then falls to lr / (div_factor * final_div_factor) (Smith and Topin, "Super-convergence", 2018), like PyTorch's OneCycleLR without its cycle of the momentum.
/// update: i64 scalar: number of completed updates.
/// attrs.lr: learning rate of the optimizer (required).
/// attrs.steps: number of updates; the last rate stays (required).
/// attrs.pct_start: fraction of the updates in which the learning rate rises.
/// attrs.div_factor: lr / first learning rate.
/// attrs.final_div_factor: first learning rate / last learning rate.
/// attrs.three_phase: falls to the first rate as fast as it rose, then to the last rate.
/// attrs.linear_anneal: linear instead of cosine annealing.
/// attrs.warmup: number of warm-up updates.
/// attrs.warmup_start: factor of the learning rate from which the warm-up rises to 1.
/// attrs.constant_warmup: keeps the factor at `warmup_start` during the warm-up.
/// Gives rate: f64 scalar: learning rate of this update.
struct OneCycleScheduleAttrs { Required<double> lr; Required<int64_t> steps; double pct_start = 0.3; double div_factor = 25.0; double final_div_factor = 10000.0; bool three_phase = false; bool linear_anneal = false; int64_t warmup = 0; double warmup_start = 0.0; bool constant_warmup = false; };
Value one_cycle_schedule(Value update, const OneCycleScheduleAttrs& attrs, const Loc& loc = Loc::here());

/// The first k elements of sort, and their indices. Merges drop the elements beyond k, so the cost is O(n log k) comparisons for n elements.
/// x: numeric tensor, rank >= 1.
/// attrs.k: number of elements to keep (required).
/// attrs.axis: axis to sort along, not the batch dimension; negative: counted from the end.
/// attrs.descending: whether the largest value comes first.
/// Gives value: x's dtype, extent k along `axis`.
/// Gives index: i64, value's shape: indices along the axis.
struct PartialSortAttrs { Required<int64_t> k; int64_t axis = -1; bool descending = false; };
Values partial_sort(Value x, const PartialSortAttrs& attrs, const Loc& loc = Loc::here());

/// Learning rate `values[i]` from update `boundaries[i - 1]` until before update `boundaries[i]`, like Paddle's PiecewiseDecay. Replaces the optimizer's learning rate.
/// update: i64 scalar: number of completed updates.
/// attrs.lr: learning rate of the optimizer (required).
/// attrs.boundaries: numbers of updates, rising (required).
/// attrs.values: learning rates: one more than there are boundaries (required).
/// attrs.warmup: number of warm-up updates.
/// attrs.warmup_start: factor of the learning rate from which the warm-up rises to 1.
/// attrs.constant_warmup: keeps the factor at `warmup_start` during the warm-up.
/// Gives rate: f64 scalar: learning rate of this update.
struct PiecewiseScheduleAttrs { Required<double> lr; Required<Ints> boundaries; Required<std::vector<double>> values; int64_t warmup = 0; double warmup_start = 0.0; bool constant_warmup = false; };
Value piecewise_schedule(Value update, const PiecewiseScheduleAttrs& attrs, const Loc& loc = Loc::here());

/// A tensor of `rows` rows that holds the rows of x from row `start` on, and is 0 elsewhere. Rows of x that are out of range are dropped.
/// x: numeric tensor, rank >= 1.
/// start: i64[].
/// attrs.rows: number of rows of the result (required).
/// Gives y: x's dtype, [rows, k...].
struct PlaceRowsAttrs { Required<int64_t> rows; };
Value place_rows(Value x, Value start, const PlaceRowsAttrs& attrs, const Loc& loc = Loc::here());

/// lr * lr_factor. After an epoch, lr_factor is multiplied by `factor` if the monitored metric has not improved for more than `patience` epochs, as by PyTorch's ReduceLROnPlateau. Trainer passes the metric to Executor::reduce_on_plateau().
/// update: i64 scalar: number of completed updates.
/// lr_factor: float scalar: factor of lr.
/// attrs.lr: learning rate of the optimizer (required).
/// attrs.metric: scalar output that is monitored; empty: the loss.
/// attrs.mode: "min": smaller metrics are better; "max": larger ones are.
/// attrs.factor: factor of the learning rate at each decay.
/// attrs.patience: number of epochs without improvement that are tolerated.
/// attrs.threshold: the metric must be better than the best one by this much.
/// attrs.threshold_mode: "rel": `threshold` is a fraction of the best metric; "abs": a difference.
/// attrs.cooldown: number of epochs after a decay that are not counted.
/// attrs.min_lr: lower bound of the learning rate.
/// attrs.warmup: number of warm-up updates.
/// attrs.warmup_start: factor of the learning rate from which the warm-up rises to 1.
/// attrs.constant_warmup: keeps the factor at `warmup_start` during the warm-up.
/// Gives rate: f64 scalar: learning rate of this update.
struct PlateauScheduleAttrs { Required<double> lr; std::string metric = ""; std::string mode = "min"; double factor = 0.1; int64_t patience = 10; double threshold = 1e-04; std::string threshold_mode = "rel"; int64_t cooldown = 0; double min_lr = 0.0; int64_t warmup = 0; double warmup_start = 0.0; bool constant_warmup = false; };
Value plateau_schedule(Value update, Value lr_factor, const PlateauScheduleAttrs& attrs, const Loc& loc = Loc::here());

/// (lr - end) * (1 - t / steps)^power + end after t updates, like PyTorch's PolynomialLR and Keras's PolynomialDecay. The rate stays at `end` from update `steps` on.
/// update: i64 scalar: number of completed updates.
/// attrs.lr: learning rate of the optimizer (required).
/// attrs.steps: update at which the rate reaches `end` (required).
/// attrs.power: exponent.
/// attrs.end: final learning rate.
/// attrs.warmup: number of warm-up updates.
/// attrs.warmup_start: factor of the learning rate from which the warm-up rises to 1.
/// attrs.constant_warmup: keeps the factor at `warmup_start` during the warm-up.
/// Gives rate: f64 scalar: learning rate of this update.
struct PolynomialScheduleAttrs { Required<double> lr; Required<int64_t> steps; double power = 1.0; double end = 0.0; int64_t warmup = 0; double warmup_start = 0.0; bool constant_warmup = false; };
Value polynomial_schedule(Value update, const PolynomialScheduleAttrs& attrs, const Loc& loc = Loc::here());

/// Iterations of the power method for the largest singular value of a matrix: u = W v / |W v|, then v = W^T u / |W^T u|. Gives no gradient: u and v count as constants, as in torch.nn.utils.parametrizations.spectral_norm. In eval and predict, u and v stay as they are.
/// matrix: float [M, N].
/// u: same dtype, [M]: the left singular vector.
/// v: same dtype, [N]: the right singular vector.
/// attrs.iterations: number of iterations.
/// attrs.eps: smallest norm by which a vector is divided.
/// Gives new_u: same type as u.
/// Gives new_v: same type as v.
struct PowerIterationAttrs { int64_t iterations = 1; double eps = 1e-12; };
Values power_iteration(Value matrix, Value u, Value v, const PowerIterationAttrs& attrs = {}, const Loc& loc = Loc::here());

/// RAdam (Liu et al., "On the variance of the adaptive learning rate and beyond", 2020), like torch.optim.RAdam: the step of adam times a rectification term, or lr / (1 - beta1^t) * m in the first updates.
/// param: float tensor.
/// grad: same type as param.
/// lr: float scalar: learning rate.
/// update: i64 scalar: number of completed updates.
/// m: same type as param.
/// v: same type as param.
/// attrs.beta1: decay rate of m.
/// attrs.beta2: decay rate of v.
/// attrs.eps: added to the denominator.
/// attrs.weight_decay: L2 penalty: weight_decay * param is added to the gradient.
/// attrs.decoupled_weight_decay: applies weight decay to the parameter, as adamw does.
/// Gives new_param: same type as param.
/// Gives new_m: same type as param.
/// Gives new_v: same type as param.
struct RadamAttrs { double beta1 = 0.9; double beta2 = 0.999; double eps = 1e-08; double weight_decay = 0.0; bool decoupled_weight_decay = false; };
Values radam(Value param, Value grad, Value lr, Value update, Value m, Value v, const RadamAttrs& attrs = {}, const Loc& loc = Loc::here());

/// Independent normally distributed random numbers of this step, like torch.randn. They do not depend on micro-batches and ranks.
/// rng: i64[3]: seed, run counter, index of the first sample.
/// attrs.type: type of the result (required).
/// attrs.mean: mean of the distribution.
/// attrs.std: standard deviation of the distribution.
/// Gives y: of type `type`.
struct RandomNormalAttrs { Required<Type> type; double mean = 0.0; double std = 1.0; };
Value random_normal(Value rng, const RandomNormalAttrs& attrs, const Loc& loc = Loc::here());

/// Independent random numbers of this step, uniform in [low, high), like torch.rand. They do not depend on micro-batches and ranks.
/// rng: i64[3]: seed, run counter, index of the first sample.
/// attrs.type: type of the result (required).
/// attrs.low: lower bound, inclusive.
/// attrs.high: upper bound, exclusive.
/// Gives y: of type `type`.
struct RandomUniformAttrs { Required<Type> type; double low = 0.0; double high = 1.0; };
Value random_uniform(Value rng, const RandomUniformAttrs& attrs, const Loc& loc = Loc::here());

/// Gradient of resize2d with respect to its input.
/// dy: gradient of resize2d's result.
/// attrs.input: type of resize2d's input (required).
/// attrs.mode: nearest, bilinear or bicubic.
/// attrs.align_corners: whether the corner elements of x and y coincide; not in mode nearest.
/// Gives dx: of type `input`.
struct Resize2dGradAttrs { Required<Type> input; std::string mode = "nearest"; bool align_corners = false; };
Value resize2d_grad(Value dy, const Resize2dGradAttrs& attrs, const Loc& loc = Loc::here());

/// Root mean square normalisation (Zhang and Sennrich, 2019): divides x by its root mean square over the dimensions from `axis` on and multiplies by scale. eps has ONNX's default; PyTorch's default is the machine epsilon.
/// x: float tensor, rank >= 1.
/// scale: x's dimensions from `axis` on, x's dtype or f32.
/// attrs.axis: first normalised axis; negative: counted from the end.
/// attrs.eps: added to the mean square.
/// Gives y: same type as x.
/// Gives rstd: x's shape with extent 1 from `axis` on, f32 or wider: reciprocal of the root mean square.
struct RmsNormAttrs { int64_t axis = -1; double eps = 1e-05; };
Value rms_norm(Value x, const RmsNormAttrs& attrs = {}, const Loc& loc = Loc::here());
Value rms_norm(Value x, Value scale, const RmsNormAttrs& attrs = {}, const Loc& loc = Loc::here());

/// RMSprop (Hinton, 2012), like torch.optim.RMSprop: square_avg is the moving average of grad^2. The step is lr * grad / (sqrt(square_avg) + eps), with momentum.
/// param: float tensor.
/// grad: same type as param.
/// lr: float scalar: learning rate.
/// update: i64 scalar: number of completed updates.
/// square_avg: same type as param.
/// grad_avg: same type as param; only with `centered`.
/// velocity: same type as param; only with `momentum`.
/// attrs.alpha: decay rate of the moving averages.
/// attrs.eps: added to the denominator.
/// attrs.momentum: momentum factor.
/// attrs.centered: divides by the standard deviation: subtracts the square of grad_avg, the moving average of the gradient (Graves, 2013).
/// attrs.weight_decay: L2 penalty: weight_decay * param is added to the gradient.
/// Gives new_param: same type as param.
/// Gives new_square_avg: same type as param.
/// Gives new_grad_avg: same type as param; only with `centered`.
/// Gives new_velocity: same type as param; only with `momentum`.
struct RmspropAttrs { double alpha = 0.99; double eps = 1e-08; double momentum = 0.0; bool centered = false; double weight_decay = 0.0; };
Values rmsprop(Value param, Value grad, Value lr, Value update, Value square_avg, const RmspropAttrs& attrs = {}, const Loc& loc = Loc::here());
Values rmsprop(Value param, Value grad, Value lr, Value update, Value square_avg, Value grad_avg, const RmspropAttrs& attrs = {}, const Loc& loc = Loc::here());
Values rmsprop(Value param, Value grad, Value lr, Value update, Value square_avg, Value grad_avg, Value velocity, const RmspropAttrs& attrs = {}, const Loc& loc = Loc::here());

/// quantize with scale 1: rounds x half to even and converts it to an 8-bit integer, which saturates.
/// x: float tensor.
/// attrs.to: gives the dtype of the result, i8 or u8; its shape is ignored (required).
/// Gives y: x's shape.
struct RoundSaturateAttrs { Required<Type> to; };
Value round_saturate(Value x, const RoundSaturateAttrs& attrs, const Loc& loc = Loc::here());

/// softmax(q k^T * scale + mask) v per head, like torch.nn.functional.scaled_dot_product_attention with enable_gqa=True: query head h reads head h * G / H of k and v. The scores are never stored as a whole: memory is linear in T and S. A query that sees no key gets 0. The mask gets no gradient.
/// q: float [B, H, T, D].
/// k: same dtype, [B, G, S, D]; H is a multiple of G.
/// v: same dtype, [B, G, S, E].
/// mask: broadcasts to [B, H, T, S]: bool, false hides a key; or q's dtype, added to the scores.
/// attrs.causal: whether query i sees only keys 0 to i.
/// attrs.scale: factor of the products; 0: 1 / sqrt(D).
/// attrs.alibi: whether the bias of op alibi is added to the scores.
/// Gives y: [B, H, T, E].
/// Gives logsumexp: softmax statistics, [B, H, T].
struct ScaledDotProductAttentionAttrs { bool causal = false; double scale = 0.0; bool alibi = false; };
Value scaled_dot_product_attention(Value q, Value k, Value v, const ScaledDotProductAttentionAttrs& attrs = {}, const Loc& loc = Loc::here());
Value scaled_dot_product_attention(Value q, Value k, Value v, Value mask, const ScaledDotProductAttentionAttrs& attrs = {}, const Loc& loc = Loc::here());

/// scaled_dot_product_attention whose softmax weights are set to 0 with probability `dropout`, and else scaled by 1 / (1 - dropout). The kernels of the gradient draw the same random numbers again. Equals scaled_dot_product_attention in eval and predict.
/// q: float [B, H, T, D].
/// k: same dtype, [B, G, S, D]; H is a multiple of G.
/// v: same dtype, [B, G, S, E].
/// rng: i64[3]: seed, run counter, index of the first sample.
/// mask: broadcasts to [B, H, T, S]: bool, false hides a key; or q's dtype, added to the scores.
/// attrs.causal: whether query i sees only keys 0 to i.
/// attrs.scale: factor of the products; 0: 1 / sqrt(D).
/// attrs.alibi: whether the bias of op alibi is added to the scores.
/// attrs.dropout: probability that a softmax weight is dropped.
/// Gives y: [B, H, T, E].
/// Gives logsumexp: softmax statistics, [B, H, T].
struct ScaledDotProductAttentionDropoutAttrs { bool causal = false; double scale = 0.0; bool alibi = false; double dropout = 0.0; };
Value scaled_dot_product_attention_dropout(Value q, Value k, Value v, Value rng, const ScaledDotProductAttentionDropoutAttrs& attrs = {}, const Loc& loc = Loc::here());
Value scaled_dot_product_attention_dropout(Value q, Value k, Value v, Value rng, Value mask, const ScaledDotProductAttentionDropoutAttrs& attrs = {}, const Loc& loc = Loc::here());

/// Zeros of type `to`, to which scatter adds the updates: the gradient of take_along_axis.
/// updates: float tensor.
/// index: integer, same shape, in range.
/// attrs.to: type of the result: updates' type except along `axis` (required).
/// attrs.axis: axis that the index addresses, not the batch dimension; negative: counted from the end.
/// Gives y: of type `to`.
struct ScatterAddAttrs { Required<Type> to; int64_t axis = 0; };
Value scatter_add(Value updates, Value index, const ScatterAddAttrs& attrs, const Loc& loc = Loc::here());

/// Stochastic gradient descent: param - lr * grad.
/// param: float tensor.
/// grad: same type as param.
/// lr: float scalar: learning rate.
/// update: i64 scalar: number of completed updates.
/// attrs.weight_decay: L2 penalty: weight_decay * param is added to the gradient.
/// Gives new_param: same type as param.
struct SgdAttrs { double weight_decay = 0.0; };
Value sgd(Value param, Value grad, Value lr, Value update, const SgdAttrs& attrs = {}, const Loc& loc = Loc::here());

/// Multiplies the learning rate by `factor` every `every` updates, like PyTorch's StepLR.
/// update: i64 scalar: number of completed updates.
/// attrs.lr: learning rate of the optimizer (required).
/// attrs.every: number of updates between two decays (required).
/// attrs.factor: factor of the learning rate at each decay.
/// attrs.warmup: number of warm-up updates.
/// attrs.warmup_start: factor of the learning rate from which the warm-up rises to 1.
/// attrs.constant_warmup: keeps the factor at `warmup_start` during the warm-up.
/// Gives rate: f64 scalar: learning rate of this update.
struct StepScheduleAttrs { Required<double> lr; Required<int64_t> every; double factor = 0.1; int64_t warmup = 0; double warmup_start = 0.0; bool constant_warmup = false; };
Value step_schedule(Value update, const StepScheduleAttrs& attrs, const Loc& loc = Loc::here());

/// Sum of squares along `axes`, accumulated in f32 or wider.
/// x: float tensor.
/// attrs.axes: axes to reduce; negative: counted from the end; empty: all.
/// attrs.keep_dims: keeps the reduced axes with extent 1.
/// Gives y: x's dtype; f32 if x has half precision.
struct SumSquaresAttrs { Ints axes = {}; bool keep_dims = false; };
Value sum_squares(Value x, const SumSquaresAttrs& attrs = {}, const Loc& loc = Loc::here());

/// Updates the equal-weight average of a parameter over training (Izmailov et al., "Averaging weights leads to wider optima and better generalization", 2018): the mean of the parameter after update `start` and after each `every` further updates, as torch.optim.swa_utils.AveragedModel computes it. Before, the average is the parameter.
/// average: float tensor, param's shape.
/// param: float tensor: the updated parameter.
/// update: i64 scalar: number of completed updates before this one.
/// attrs.start: number of the first update, from 1, that is averaged (required).
/// attrs.every: number of updates between two that are averaged.
/// Gives new_average: same type as average.
struct SwaUpdateAttrs { Required<int64_t> start; int64_t every = 1; };
Value swa_update(Value average, Value param, Value update, const SwaUpdateAttrs& attrs, const Loc& loc = Loc::here());

/// Independent random numbers of the normal distribution within [low, high], like torch.nn.init.trunc_normal_. A number depends only on the seed, the stream and the logical index, up to rounding on different devices.
/// seed: i64 scalar.
/// attrs.type: type of the result (required).
/// attrs.mean: mean of the distribution before truncation.
/// attrs.std: standard deviation of the distribution before truncation.
/// attrs.low: lower bound, within 5 `std` of `mean`.
/// attrs.high: upper bound, within 5 `std` of `mean`.
/// Gives y: of type `type`.
struct TruncatedNormalAttrs { Required<Type> type; double mean = 0.0; double std = 1.0; double low = -2.0; double high = 2.0; };
Value truncated_normal(Value seed, const TruncatedNormalAttrs& attrs, const Loc& loc = Loc::here());

/// Independent random numbers, uniform in [low, high). A number depends only on the seed, the stream and the logical index, not on the device or dtype.
/// seed: i64 scalar.
/// attrs.type: type of the result (required).
/// attrs.low: lower bound, inclusive.
/// attrs.high: upper bound, exclusive.
/// Gives y: of type `type`.
struct UniformAttrs { Required<Type> type; double low = 0.0; double high = 1.0; };
Value uniform(Value seed, const UniformAttrs& attrs, const Loc& loc = Loc::here());

}  // namespace fluid::internal
