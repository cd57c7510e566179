// Generated from the op table by fluid_opgen.
// clang-format off
#pragma once

#include "ops/ints.h"
#include "ops/record.h"

namespace fluid {

struct AdamAttrs {
  double beta1 = 0.9;  ///< how much of m is kept
  double beta2 = 0.999;  ///< how much of v is kept
  double eps = 1e-08;  ///< added to the denominator
  double weight_decay = 0.0;  ///< times the parameter, added to the gradient
};
/// Adam (Kingma and Ba, 2015), with PyTorch's rounding order: m and v are moving averages of the gradient and its square; the step is lr / (1 - beta1^t) * m / (sqrt(v) / sqrt(1 - beta2^t) + eps).
/// param: float tensor.
/// grad: same type as param.
/// lr: float scalar: the learning rate.
/// update: i64 scalar: updates done before this one.
/// m: same type as param.
/// v: same type as param.
/// Gives new_param: same type as param.
/// Gives new_m: same type as param.
/// Gives new_v: same type as param.
Values adam(Value param, Value grad, Value lr, Value update, Value m, Value v, const AdamAttrs& attrs = {}, const Loc& loc = Loc::here());

struct AdaptiveAvgPool2dAttrs {
  Ints output = {};  ///< number of windows: one, or height and width (required)
};
/// Means of windows of nearly equal size, as many as asked for: window i of n over m elements is [floor(i m / n), ceil((i + 1) m / n)).
/// x: float [N, C, H, W].
/// Gives y: [N, C, OH, OW].
Value adaptive_avg_pool2d(Value x, const AdaptiveAvgPool2dAttrs& attrs, const Loc& loc = Loc::here());

struct AdaptiveAvgPool2dGradAttrs {
  Type input = {};  ///< type of adaptive_avg_pool2d's input (required)
};
/// Gradient of adaptive_avg_pool2d: every element gathers from the windows that cover it.
/// dy: gradient of adaptive_avg_pool2d's result.
/// Gives dx: of type `input`.
Value adaptive_avg_pool2d_grad(Value dy, const AdaptiveAvgPool2dGradAttrs& attrs, const Loc& loc = Loc::here());

struct AdaptiveMaxPool2dAttrs {
  Ints output = {};  ///< number of windows: one, or height and width (required)
};
/// Largest elements of windows of nearly equal size, as many as asked for (see adaptive_avg_pool2d); the first in row-major order wins ties, and NaN wins.
/// x: float [N, C, H, W].
/// Gives y: [N, C, OH, OW].
/// Gives position: of the largest element in a window of the largest size, row-major: u8, or i32 where that has more than 256 elements.
Value adaptive_max_pool2d(Value x, const AdaptiveMaxPool2dAttrs& attrs, const Loc& loc = Loc::here());

struct AdaptiveMaxPool2dGradAttrs {
  Type input = {};  ///< type of adaptive_max_pool2d's input (required)
};
/// Gradient of adaptive_max_pool2d: every element gathers from the windows whose largest element it is.
/// dy: gradient of adaptive_max_pool2d's result.
/// position: its second result.
/// Gives dx: of type `input`.
Value adaptive_max_pool2d_grad(Value dy, Value position, const AdaptiveMaxPool2dGradAttrs& attrs, const Loc& loc = Loc::here());

/// a + b.
/// a: number tensor.
/// b: same dtype, broadcasts with a.
/// Gives y: the broadcast shape.
Value add(Value a, Value b, const Loc& loc = Loc::here());

struct AvgPool2dAttrs {
  Ints kernel = {};  ///< size of the window (required)
  Ints stride = {};  ///< step of the window; none: the kernel's size
  Ints padding = {0};  ///< zeros around the input
  bool count_include_pad = true;  ///< whether the padding counts as elements
};
/// Mean of each window.
/// x: float [N, C, H, W].
/// Gives y: [N, C, OH, OW].
Value avg_pool2d(Value x, const AvgPool2dAttrs& attrs, const Loc& loc = Loc::here());

struct AvgPool2dGradAttrs {
  Ints kernel = {};  ///< as avg_pool2d's (required)
  Ints stride = {};  ///< as avg_pool2d's
  Ints padding = {0};  ///< as avg_pool2d's
  bool count_include_pad = true;  ///< as avg_pool2d's
  Type input = {};  ///< type of avg_pool2d's input (required)
};
/// Gradient of avg_pool2d: every element gathers from the windows that cover it.
/// dy: gradient of avg_pool2d's result.
/// Gives dx: of type `input`.
Value avg_pool2d_grad(Value dy, const AvgPool2dGradAttrs& attrs, const Loc& loc = Loc::here());

struct BroadcastToAttrs {
  Type to = {};  ///< its shape is the result's; its dtype is not used (required)
};
/// x repeated along the dimensions in which `to` is larger, as NumPy broadcasts.
/// x: any tensor.
/// Gives y: x's dtype.
Value broadcast_to(Value x, const BroadcastToAttrs& attrs, const Loc& loc = Loc::here());

struct CastAttrs {
  Type to = {};  ///< its dtype is the result's; its shape is not used (required)
};
/// x in another dtype: floats to integers towards zero, to bool by != 0, to halves to the nearest, ties to even.
/// x: any tensor.
/// Gives y: x's shape.
Value cast(Value x, const CastAttrs& attrs, const Loc& loc = Loc::here());

struct Conv2dAttrs {
  Ints stride = {1};  ///< step of the window: one number, or height and width
  Ints padding = {0};  ///< zeros around the input: one number, height and width, or top, left, bottom, right
  Ints dilation = {1};  ///< distance of the taps: one number, or height and width
  int64_t groups = 1;  ///< splits the channels into groups that do not see each other
};
/// Two-dimensional cross-correlation, summed over the input channels of a group. A bias is added with `add`.
/// x: float [N, C, H, W].
/// w: filter [O, C / groups, KH, KW].
/// Gives y: [N, O, OH, OW] with OH = (H + padding - dilation * (KH - 1) - 1) / stride + 1.
Value conv2d(Value x, Value w, const Conv2dAttrs& attrs = {}, const Loc& loc = Loc::here());

struct Conv2dGradFilterAttrs {
  Ints stride = {1};  ///< step of the window: one number, or height and width
  Ints padding = {0};  ///< zeros around the input: one number, height and width, or top, left, bottom, right
  Ints dilation = {1};  ///< distance of the taps: one number, or height and width
  int64_t groups = 1;  ///< splits the channels into groups that do not see each other
  Type filter = {};  ///< type of conv2d's filter (required)
};
/// Gradient of conv2d with respect to its filter: a sum over samples and positions.
/// x: conv2d's input.
/// dy: gradient of conv2d's result.
/// Gives dw: of type `filter`.
Value conv2d_grad_filter(Value x, Value dy, const Conv2dGradFilterAttrs& attrs, const Loc& loc = Loc::here());

struct Conv2dGradInputAttrs {
  Ints stride = {1};  ///< step of the window: one number, or height and width
  Ints padding = {0};  ///< zeros around the input: one number, height and width, or top, left, bottom, right
  Ints dilation = {1};  ///< distance of the taps: one number, or height and width
  int64_t groups = 1;  ///< splits the channels into groups that do not see each other
  Type input = {};  ///< type of conv2d's input (required)
};
/// Gradient of conv2d with respect to its input: every element gathers from the windows that cover it.
/// dy: gradient of conv2d's result.
/// w: conv2d's filter.
/// Gives dx: of type `input`.
Value conv2d_grad_input(Value dy, Value w, const Conv2dGradInputAttrs& attrs, const Loc& loc = Loc::here());

/// x's elements in memory of their own.
/// x: any tensor.
/// Gives y: like x.
Value copy(Value x, const Loc& loc = Loc::here());

/// a / b.
/// a: float tensor.
/// b: same dtype, broadcasts with a.
/// Gives y: the broadcast shape.
Value div(Value a, Value b, const Loc& loc = Loc::here());

struct DropoutAttrs {
  double p = 0.5;  ///< probability of being dropped
};
/// Sets elements to 0 with probability `p` and scales the others by 1 / (1 - p). The identity in eval and predict.
/// x: float tensor.
/// rng: i64[3]: seed, run counter, first global sample.
/// Gives y: same type as x.
Value dropout(Value x, Value rng, const DropoutAttrs& attrs = {}, const Loc& loc = Loc::here());

struct Dropout2dAttrs {
  double p = 0.5;  ///< probability of being dropped
};
/// Sets whole channels to 0 with probability `p` and scales the others by 1 / (1 - p). The identity in eval and predict.
/// x: float [N, C, ...].
/// rng: i64[3]: seed, run counter, first global sample.
/// Gives y: same type as x.
Value dropout2d(Value x, Value rng, const Dropout2dAttrs& attrs = {}, const Loc& loc = Loc::here());

/// e to the power of x.
/// x: float tensor.
/// Gives y: like x.
Value exp(Value x, const Loc& loc = Loc::here());

struct FillAttrs {
  Type type = {};  ///< of the result (required)
  double value = 0.0;  ///< of every element
};
/// A tensor of one constant.
/// Gives y: of the given type.
Value fill(ir::Graph& graph, const FillAttrs& attrs, const Loc& loc = Loc::here());

/// Whether a > b.
/// a: any tensor.
/// b: same dtype, broadcasts with a.
/// Gives y: bool, the broadcast shape.
Value greater(Value a, Value b, const Loc& loc = Loc::here());

/// The natural logarithm of x.
/// x: float tensor.
/// Gives y: like x.
Value log(Value x, const Loc& loc = Loc::here());

struct MatmulAttrs {
  bool transpose_a = false;  ///< a is [..., k, m]
  bool transpose_b = false;  ///< b is [..., n, k]
};
/// The matrix product of the last two dimensions; those before broadcast.
/// a: float tensor [..., m, k].
/// b: same dtype, [..., k, n].
/// Gives y: [..., m, n].
Value matmul(Value a, Value b, const MatmulAttrs& attrs = {}, const Loc& loc = Loc::here());

struct MaxPool2dAttrs {
  Ints kernel = {};  ///< size of the window (required)
  Ints stride = {};  ///< step of the window; none: the kernel's size
  Ints padding = {0};  ///< around the input
  Ints dilation = {1};  ///< distance of the taps
};
/// Largest element of each window; ties go to the first in row-major order, padding is minus infinity, and NaN wins.
/// x: float [N, C, H, W].
/// Gives y: [N, C, OH, OW].
/// Gives position: of the largest element in its window, row-major: u8, or i32 for a window of more than 256 taps.
Value max_pool2d(Value x, const MaxPool2dAttrs& attrs, const Loc& loc = Loc::here());

struct MaxPool2dGradAttrs {
  Ints kernel = {};  ///< as max_pool2d's (required)
  Ints stride = {};  ///< as max_pool2d's
  Ints padding = {0};  ///< as max_pool2d's
  Ints dilation = {1};  ///< as max_pool2d's
  Type input = {};  ///< type of max_pool2d's input (required)
};
/// Gradient of max_pool2d: every element gathers from the windows whose largest element it is.
/// dy: gradient of max_pool2d's result.
/// position: its second result.
/// Gives dx: of type `input`.
Value max_pool2d_grad(Value dy, Value position, const MaxPool2dGradAttrs& attrs, const Loc& loc = Loc::here());

struct MomentumAttrs {
  double mu = 0.9;  ///< how much of the velocity is kept
  bool nesterov = false;  ///< looks ahead by one step
  double weight_decay = 0.0;  ///< times the parameter, added to the gradient
};
/// Gradient descent with momentum, as PyTorch's SGD without dampening: velocity = mu * velocity + grad; the step is lr * velocity, or lr * (grad + mu * velocity) with `nesterov`.
/// param: float tensor.
/// grad: same type as param.
/// lr: float scalar: the learning rate.
/// update: i64 scalar: updates done before this one.
/// velocity: same type as param.
/// Gives new_param: same type as param.
/// Gives new_velocity: same type as param.
Values momentum(Value param, Value grad, Value lr, Value update, Value velocity, const MomentumAttrs& attrs = {}, const Loc& loc = Loc::here());

/// a * b.
/// a: number tensor.
/// b: same dtype, broadcasts with a.
/// Gives y: the broadcast shape.
Value mul(Value a, Value b, const Loc& loc = Loc::here());

/// -x.
/// x: number tensor.
/// Gives y: like x.
Value neg(Value x, const Loc& loc = Loc::here());

struct NormalAttrs {
  Type type = {};  ///< of the result (required)
  double mean = 0.0;  ///< of the distribution
  double std = 1.0;  ///< its standard deviation
};
/// Independent normally distributed numbers: the same for the same seed, stream and logical index in every place, up to rounding.
/// seed: i64 scalar.
/// Gives y: of the given type.
Value normal(Value seed, const NormalAttrs& attrs, const Loc& loc = Loc::here());

struct NumelAttrs {
  Type of = {};  ///< the type whose elements are counted; also the result's dtype (required)
};
/// How many elements a tensor of type `of` has, the batch of the running step included.
/// Gives n: scalar.
Value numel(ir::Graph& graph, const NumelAttrs& attrs, const Loc& loc = Loc::here());

struct OneHotAttrs {
  Type to = {};  ///< type of the result: label's shape and the number of classes (required)
};
/// 1 in the class that the label names, 0 in the others; all 0 for a label out of range.
/// label: integer tensor.
/// Gives y: of type `to`.
Value one_hot(Value label, const OneHotAttrs& attrs, const Loc& loc = Loc::here());

/// The element of each row that the label names; a label out of range is reported and read as the nearest class.
/// x: float [..., C].
/// label: integer, x's shape without C.
/// Gives y: label's shape.
Value pick(Value x, Value label, const Loc& loc = Loc::here());

/// max(x, 0).
/// x: float tensor.
/// Gives y: like x.
Value relu(Value x, const Loc& loc = Loc::here());

struct ReshapeAttrs {
  Type to = {};  ///< its shape is the result's; its dtype is not used (required)
};
/// x's elements, in row-major order, under another shape.
/// x: any tensor.
/// Gives y: x's dtype.
Value reshape(Value x, const ReshapeAttrs& attrs, const Loc& loc = Loc::here());

/// a where the condition holds, else b.
/// condition: bool tensor.
/// a: any tensor.
/// b: same dtype as a.
/// Gives y: a's dtype, the shape that all three broadcast to.
Value select(Value condition, Value a, Value b, const Loc& loc = Loc::here());

struct SgdAttrs {
  double weight_decay = 0.0;  ///< times the parameter, added to the gradient
};
/// Gradient descent: param - lr * grad.
/// param: float tensor.
/// grad: same type as param.
/// lr: float scalar: the learning rate.
/// update: i64 scalar: updates done before this one.
/// Gives new_param: same type as param.
Value sgd(Value param, Value grad, Value lr, Value update, const SgdAttrs& attrs = {}, const Loc& loc = Loc::here());

/// (x - target)^2, element by element.
/// x: float tensor.
/// target: same type as x.
/// Gives loss: same type as x.
Value square_error(Value x, Value target, const Loc& loc = Loc::here());

/// a - b.
/// a: number tensor.
/// b: same dtype, broadcasts with a.
/// Gives y: the broadcast shape.
Value sub(Value a, Value b, const Loc& loc = Loc::here());

struct SumAttrs {
  Ints axes = {};  ///< to reduce; negative ones count from the end; none: all
  bool keep_dims = false;  ///< reduced axes stay, with extent 1
};
/// The sum along `axes`; 0 over none. Floats add in f32 or wider.
/// x: number tensor.
/// Gives y: x's dtype.
Value sum(Value x, const SumAttrs& attrs = {}, const Loc& loc = Loc::here());

struct UniformAttrs {
  Type type = {};  ///< of the result (required)
  double low = 0.0;  ///< least value
  double high = 1.0;  ///< upper bound
};
/// Independent numbers, uniform in [low, high): the same for the same seed, stream and logical index in every place and dtype.
/// seed: i64 scalar.
/// Gives y: of the given type.
Value uniform(Value seed, const UniformAttrs& attrs, const Loc& loc = Loc::here());

}  // namespace fluid
