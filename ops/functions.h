// Generated from the op table by fluid_opgen.
// clang-format off
#pragma once

#include "ops/ints.h"
#include "ops/record.h"
#include "ops/required.h"

namespace fluid {

/// |x|. Its gradient at 0 is 0.
/// x: number tensor.
/// Gives y: like x.
Value abs(Value x, const Loc& loc = Loc::here());

/// How many rows have their largest element in the labelled class, and how many rows there are: the accuracy is their quotient. Ties go to the first class.
/// x: float scores [..., C].
/// label: integer classes, x's shape without C.
/// Gives correct: f64 scalar.
/// Gives rows: f64 scalar.
Value accuracy(Value x, Value label, const Loc& loc = Loc::here());

/// Means of windows of nearly equal size, as many as asked for: window i of n over m elements is [floor(i m / n), ceil((i + 1) m / n)).
/// x: float [N, C, H, W].
/// attrs.output: number of windows: one, or height and width (required).
/// Gives y: [N, C, OH, OW].
struct AdaptiveAvgPool2dAttrs { Required<Ints> output; };
Value adaptive_avg_pool2d(Value x, const AdaptiveAvgPool2dAttrs& attrs, const Loc& loc = Loc::here());

/// Largest elements of windows of nearly equal size, as many as asked for (see adaptive_avg_pool2d); the first in row-major order wins ties, and NaN wins.
/// x: float [N, C, H, W].
/// attrs.output: number of windows: one, or height and width (required).
/// Gives y: [N, C, OH, OW].
/// Gives position: of the largest element in a window of the largest size, row-major: u8, or i32 where that has more than 256 elements.
struct AdaptiveMaxPool2dAttrs { Required<Ints> output; };
Value adaptive_max_pool2d(Value x, const AdaptiveMaxPool2dAttrs& attrs, const Loc& loc = Loc::here());

/// a + b.
/// a: number tensor.
/// b: same dtype, broadcasts with a.
/// Gives y: the broadcast shape.
Value add(Value a, Value b, const Loc& loc = Loc::here());

/// Where along `axis` the largest element first occurs. A nan counts as largest.
/// x: number tensor, with elements along the axis.
/// attrs.axis: to search; a negative one counts from the end.
/// attrs.keep_dims: the axis stays, with extent 1.
/// Gives index: i64.
struct ArgmaxAttrs { int64_t axis = -1; bool keep_dims = false; };
Value argmax(Value x, const ArgmaxAttrs& attrs = {}, const Loc& loc = Loc::here());

/// Mean of each window.
/// x: float [N, C, H, W].
/// attrs.kernel: size of the window (required).
/// attrs.stride: step of the window; none: the kernel's size.
/// attrs.padding: zeros around the input.
/// attrs.count_include_pad: whether the padding counts as elements.
/// Gives y: [N, C, OH, OW].
struct AvgPool2dAttrs { Required<Ints> kernel; Ints stride = {}; Ints padding = {0}; bool count_include_pad = true; };
Value avg_pool2d(Value x, const AvgPool2dAttrs& attrs, const Loc& loc = Loc::here());

/// x repeated along the dimensions in which `to` is larger, as NumPy broadcasts.
/// x: any tensor.
/// attrs.to: its shape is the result's; its dtype is not used (required).
/// Gives y: x's dtype.
struct BroadcastToAttrs { Required<Type> to; };
Value broadcast_to(Value x, const BroadcastToAttrs& attrs, const Loc& loc = Loc::here());

/// x in another dtype: floats to integers towards zero, to bool by != 0, to halves to the nearest, ties to even.
/// x: any tensor.
/// attrs.to: its dtype is the result's; its shape is not used (required).
/// Gives y: x's shape.
struct CastAttrs { Required<Type> to; };
Value cast(Value x, const CastAttrs& attrs, const Loc& loc = Loc::here());

/// The operands one after another along `axis`.
/// xs: tensors of one dtype, of equal extents but along the axis.
/// attrs.axis: to join; not the batch; a negative one counts from the end.
/// Gives y: their dtype.
struct ConcatAttrs { int64_t axis = 0; };
Value concat(const Values& xs, const ConcatAttrs& attrs = {}, const Loc& loc = Loc::here());

/// Two-dimensional cross-correlation, summed over the input channels of a group. A bias is added with `add`.
/// x: float [N, C, H, W].
/// w: filter [O, C / groups, KH, KW].
/// attrs.stride: step of the window: one number, or height and width.
/// attrs.padding: zeros around the input: one number, height and width, or top, left, bottom, right.
/// attrs.dilation: distance of the taps: one number, or height and width.
/// attrs.groups: splits the channels into groups that do not see each other.
/// Gives y: [N, O, OH, OW] with OH = (H + padding - dilation * (KH - 1) - 1) / stride + 1.
struct Conv2dAttrs { Ints stride = {1}; Ints padding = {0}; Ints dilation = {1}; int64_t groups = 1; };
Value conv2d(Value x, Value w, const Conv2dAttrs& attrs = {}, const Loc& loc = Loc::here());

/// a / b.
/// a: float tensor.
/// b: same dtype, broadcasts with a.
/// Gives y: the broadcast shape.
Value div(Value a, Value b, const Loc& loc = Loc::here());

/// Whether a == b.
/// a: any tensor.
/// b: same dtype, broadcasts with a.
/// Gives y: bool, the broadcast shape.
Value equal(Value a, Value b, const Loc& loc = Loc::here());

/// The error function.
/// x: float tensor.
/// Gives y: like x.
Value erf(Value x, const Loc& loc = Loc::here());

/// e to the power of x.
/// x: float tensor.
/// Gives y: like x.
Value exp(Value x, const Loc& loc = Loc::here());

/// exp(x) - 1, exact near 0.
/// x: float tensor.
/// Gives y: like x.
Value expm1(Value x, const Loc& loc = Loc::here());

/// A tensor of one constant.
/// attrs.type: of the result (required).
/// attrs.value: of every element.
/// Gives y: of the given type.
struct FillAttrs { Required<Type> type; double value = 0.0; };
Value fill(ir::Graph& graph, const FillAttrs& attrs, const Loc& loc = Loc::here());

/// x with the dimensions from `axis` on made one.
/// x: any tensor.
/// attrs.axis: the first dimension that is merged.
/// Gives y: x's dtype, rank axis + 1.
struct FlattenAttrs { int64_t axis = 1; };
Value flatten(Value x, const FlattenAttrs& attrs = {}, const Loc& loc = Loc::here());

/// x times the probability that a standard normal number is below x.
/// x: float tensor.
/// attrs.approximate: "tanh": the approximation by tanh.
/// Gives y: like x.
struct GeluAttrs { std::string approximate = "none"; };
Value gelu(Value x, const GeluAttrs& attrs = {}, const Loc& loc = Loc::here());

/// Whether a > b.
/// a: any tensor.
/// b: same dtype, broadcasts with a.
/// Gives y: bool, the broadcast shape.
Value greater(Value a, Value b, const Loc& loc = Loc::here());

/// Whether a >= b.
/// a: any tensor.
/// b: same dtype, broadcasts with a.
/// Gives y: bool, the broadcast shape.
Value greater_equal(Value a, Value b, const Loc& loc = Loc::here());

/// Whether x is neither infinite nor nan.
/// x: float tensor.
/// Gives y: bool, of x's shape.
Value is_finite(Value x, const Loc& loc = Loc::here());

/// Whether a < b.
/// a: any tensor.
/// b: same dtype, broadcasts with a.
/// Gives y: bool, the broadcast shape.
Value less(Value a, Value b, const Loc& loc = Loc::here());

/// Whether a <= b.
/// a: any tensor.
/// b: same dtype, broadcasts with a.
/// Gives y: bool, the broadcast shape.
Value less_equal(Value a, Value b, const Loc& loc = Loc::here());

/// The natural logarithm of x.
/// x: float tensor.
/// Gives y: like x.
Value log(Value x, const Loc& loc = Loc::here());

/// log(1 + x), exact near 0.
/// x: float tensor.
/// Gives y: like x.
Value log1p(Value x, const Loc& loc = Loc::here());

/// Logarithm of softmax along `axis`, without taking the logarithm of small numbers.
/// x: float tensor, rank >= 1.
/// attrs.axis: axis to normalise; negative counts from the end.
/// Gives y: same type as x.
struct LogSoftmaxAttrs { int64_t axis = -1; };
Value log_softmax(Value x, const LogSoftmaxAttrs& attrs = {}, const Loc& loc = Loc::here());

/// Whether a and b both hold.
/// a: bool tensor.
/// b: same dtype, broadcasts with a.
/// Gives y: the broadcast shape.
Value logical_and(Value a, Value b, const Loc& loc = Loc::here());

/// Whether x is false.
/// x: bool tensor.
/// Gives y: like x.
Value logical_not(Value x, const Loc& loc = Loc::here());

/// Whether a or b holds.
/// a: bool tensor.
/// b: same dtype, broadcasts with a.
/// Gives y: the broadcast shape.
Value logical_or(Value a, Value b, const Loc& loc = Loc::here());

/// The matrix product of the last two dimensions; those before broadcast.
/// a: float tensor [..., m, k].
/// b: same dtype, [..., k, n].
/// attrs.transpose_a: a is [..., k, m].
/// attrs.transpose_b: b is [..., n, k].
/// Gives y: [..., m, n].
struct MatmulAttrs { bool transpose_a = false; bool transpose_b = false; };
Value matmul(Value a, Value b, const MatmulAttrs& attrs = {}, const Loc& loc = Loc::here());

/// The largest element along `axes`; nan when one is nan. Ties share the gradient.
/// x: number tensor, with elements along the axes.
/// attrs.axes: to reduce; negative ones count from the end; none: all.
/// attrs.keep_dims: reduced axes stay, with extent 1.
/// Gives y: x's dtype.
struct MaxAttrs { Ints axes = {}; bool keep_dims = false; };
Value max(Value x, const MaxAttrs& attrs = {}, const Loc& loc = Loc::here());

/// The largest element along `axes` and where it first occurs, as a row-major position among the reduced elements. A nan counts as largest.
/// x: number tensor, with elements along the axes.
/// attrs.axes: to reduce; negative ones count from the end; none: all.
/// attrs.keep_dims: reduced axes stay, with extent 1.
/// Gives value: x's dtype.
/// Gives index: i64, of value's shape.
struct MaxIndexAttrs { Ints axes = {}; bool keep_dims = false; };
Values max_index(Value x, const MaxIndexAttrs& attrs = {}, const Loc& loc = Loc::here());

/// Largest element of each window; ties go to the first in row-major order, padding is minus infinity, and NaN wins.
/// x: float [N, C, H, W].
/// attrs.kernel: size of the window (required).
/// attrs.stride: step of the window; none: the kernel's size.
/// attrs.padding: around the input.
/// attrs.dilation: distance of the taps.
/// Gives y: [N, C, OH, OW].
/// Gives position: of the largest element in its window, row-major: u8, or i32 for a window of more than 256 taps; 0 where all of it is minus infinity.
struct MaxPool2dAttrs { Required<Ints> kernel; Ints stride = {}; Ints padding = {0}; Ints dilation = {1}; };
Value max_pool2d(Value x, const MaxPool2dAttrs& attrs, const Loc& loc = Loc::here());

/// The larger of a and b; nan when either is nan. Ties share the gradient.
/// a: number tensor.
/// b: same dtype, broadcasts with a.
/// Gives y: the broadcast shape.
Value maximum(Value a, Value b, const Loc& loc = Loc::here());

/// The mean along `axes`; nan over none. Over the batch it divides by the step's batch.
/// x: float tensor.
/// attrs.axes: to reduce; negative ones count from the end; none: all.
/// attrs.keep_dims: reduced axes stay, with extent 1.
/// Gives y: x's dtype.
struct MeanAttrs { Ints axes = {}; bool keep_dims = false; };
Value mean(Value x, const MeanAttrs& attrs = {}, const Loc& loc = Loc::here());

/// A figure of its own making: it reads as sum / weight, and over the steps of an epoch sums and weights add up.
/// sum: float scalar.
/// weight: of sum's type.
/// Gives total: sum.
/// Gives count: weight.
Value metric(Value sum, Value weight, const Loc& loc = Loc::here());

/// The smallest element along `axes`; nan when one is nan. Ties share the gradient.
/// x: number tensor, with elements along the axes.
/// attrs.axes: to reduce; negative ones count from the end; none: all.
/// attrs.keep_dims: reduced axes stay, with extent 1.
/// Gives y: x's dtype.
struct MinAttrs { Ints axes = {}; bool keep_dims = false; };
Value min(Value x, const MinAttrs& attrs = {}, const Loc& loc = Loc::here());

/// The smaller of a and b; nan when either is nan. Ties share the gradient.
/// a: number tensor.
/// b: same dtype, broadcasts with a.
/// Gives y: the broadcast shape.
Value minimum(Value a, Value b, const Loc& loc = Loc::here());

/// (x - target)^2, element by element.
/// x: float tensor.
/// target: same type as x.
/// Gives loss: same type as x.
Value mse_loss(Value x, Value target, const Loc& loc = Loc::here());

/// a * b.
/// a: number tensor.
/// b: same dtype, broadcasts with a.
/// Gives y: the broadcast shape.
Value mul(Value a, Value b, const Loc& loc = Loc::here());

/// -x.
/// x: number tensor.
/// Gives y: like x.
Value neg(Value x, const Loc& loc = Loc::here());

/// Whether a != b.
/// a: any tensor.
/// b: same dtype, broadcasts with a.
/// Gives y: bool, the broadcast shape.
Value not_equal(Value a, Value b, const Loc& loc = Loc::here());

/// 1 in the class that the label names, 0 in the others; all 0 for a label out of range.
/// label: integer tensor.
/// attrs.to: type of the result: label's shape and the number of classes (required).
/// Gives y: of type `to`.
struct OneHotAttrs { Required<Type> to; };
Value one_hot(Value label, const OneHotAttrs& attrs, const Loc& loc = Loc::here());

/// x with `low` values before, `high` after and `interior` between its elements.
/// x: number tensor.
/// attrs.low: one a dimension; none: 0.
/// attrs.high: one a dimension; none: 0.
/// attrs.interior: one a dimension; none: 0.
/// attrs.value: what is put there.
/// Gives y: x's dtype and rank.
struct PadAttrs { Ints low = {}; Ints high = {}; Ints interior = {}; double value = 0.0; };
Value pad(Value x, const PadAttrs& attrs = {}, const Loc& loc = Loc::here());

/// a to the power of b.
/// a: float tensor.
/// b: same dtype, broadcasts with a.
/// Gives y: the broadcast shape.
Value pow(Value a, Value b, const Loc& loc = Loc::here());

/// max(x, 0).
/// x: float tensor.
/// Gives y: like x.
Value relu(Value x, const Loc& loc = Loc::here());

/// x's elements, in row-major order, under another shape.
/// x: any tensor.
/// attrs.to: its shape is the result's; its dtype is not used (required).
/// Gives y: x's dtype.
struct ReshapeAttrs { Required<Type> to; };
Value reshape(Value x, const ReshapeAttrs& attrs, const Loc& loc = Loc::here());

/// Images in another size. `mode` nearest takes element floor(i in / out) along each axis; bilinear goes straight between the elements around (i + 1/2) in / out - 1/2.
/// x: float [N, C, H, W].
/// attrs.output: the size: one number, or height and width (required).
/// attrs.mode: nearest or bilinear.
/// Gives y: [N, C, OH, OW].
struct Resize2dAttrs { Required<Ints> output; std::string mode = "nearest"; };
Value resize2d(Value x, const Resize2dAttrs& attrs, const Loc& loc = Loc::here());

/// 1 / sqrt(x).
/// x: float tensor.
/// Gives y: like x.
Value rsqrt(Value x, const Loc& loc = Loc::here());

/// 1 / (1 + exp(-x)).
/// x: float tensor.
/// Gives y: like x.
Value sigmoid(Value x, const Loc& loc = Loc::here());

/// Elements starts, starts + steps, ... before stops, along some dimensions.
/// x: any tensor.
/// attrs.starts: negative ones count from the end (required).
/// attrs.stops: exclusive; clamped; negative from the end (required).
/// attrs.steps: positive; none: 1.
/// attrs.axes: the dimensions; none: the first ones.
/// Gives y: x's dtype and rank.
struct SliceAttrs { Required<Ints> starts; Required<Ints> stops; Ints steps = {}; Ints axes = {}; };
Value slice(Value x, const SliceAttrs& attrs, const Loc& loc = Loc::here());

/// exp(x) normalised to sum 1 along `axis`.
/// x: float tensor, rank >= 1.
/// attrs.axis: axis to normalise; negative counts from the end.
/// Gives y: same type as x.
struct SoftmaxAttrs { int64_t axis = -1; };
Value softmax(Value x, const SoftmaxAttrs& attrs = {}, const Loc& loc = Loc::here());

/// -log(softmax(x)[label]) of every row: the loss of a classifier. A label out of range is reported.
/// x: float logits [..., C].
/// label: integer classes, x's shape without C.
/// Gives loss: one a row.
Value softmax_cross_entropy(Value x, Value label, const Loc& loc = Loc::here());

/// The square root of x; nan below 0.
/// x: float tensor.
/// Gives y: like x.
Value sqrt(Value x, const Loc& loc = Loc::here());

/// x * x.
/// x: number tensor.
/// Gives y: like x.
Value square(Value x, const Loc& loc = Loc::here());

/// a - b.
/// a: number tensor.
/// b: same dtype, broadcasts with a.
/// Gives y: the broadcast shape.
Value sub(Value a, Value b, const Loc& loc = Loc::here());

/// The sum along `axes`; 0 over none. Floats add in f32 or wider; bools are counted.
/// x: any tensor.
/// attrs.axes: to reduce; negative ones count from the end; none: all.
/// attrs.keep_dims: reduced axes stay, with extent 1.
/// Gives y: x's dtype; i64 of bools.
struct SumAttrs { Ints axes = {}; bool keep_dims = false; };
Value sum(Value x, const SumAttrs& attrs = {}, const Loc& loc = Loc::here());

/// The element of each row that the label names; a label out of range is reported and read as the nearest class.
/// x: float [..., C].
/// label: integer, x's shape without C.
/// Gives y: label's shape.
Value take_along_axis(Value x, Value label, const Loc& loc = Loc::here());

/// The hyperbolic tangent.
/// x: float tensor.
/// Gives y: like x.
Value tanh(Value x, const Loc& loc = Loc::here());

/// x with its dimensions permuted.
/// x: any tensor.
/// attrs.perm: dimension d of y is dimension perm[d] of x; none: the order reversed.
/// Gives y: x's dtype.
struct TransposeAttrs { Ints perm = {}; };
Value transpose(Value x, const TransposeAttrs& attrs = {}, const Loc& loc = Loc::here());

/// a where the condition holds, else b.
/// condition: bool tensor.
/// a: any tensor.
/// b: same dtype as a.
/// Gives y: a's dtype, the shape that all three broadcast to.
Value where(Value condition, Value a, Value b, const Loc& loc = Loc::here());

}  // namespace fluid
