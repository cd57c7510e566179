// Generated from the op table by fluid_opgen.
// clang-format off
#pragma once

#include <cmath>

#include "ops/ints.h"
#include "ops/record.h"
#include "ops/required.h"

namespace fluid {

/// |x|. Its gradient at 0 is 0.
/// x: numeric tensor.
/// Gives y: like x.
Value abs(Value x, const Loc& loc = Loc::here());

/// Fraction of rows whose argmax is the label. The first of equal maxima wins.
/// x: float scores [..., C].
/// label: integer class indices, x's shape without C.
/// Gives statistics: f64 [2]: number of such rows, number of rows.
Value accuracy(Value x, Value label, const Loc& loc = Loc::here());

/// The arccosine of x in radians; NaN outside [-1, 1]. Its gradient at -1 and 1 is infinite.
/// x: float tensor.
/// Gives y: like x.
Value acos(Value x, const Loc& loc = Loc::here());

/// Average pooling with a given output size. Window i of n over m elements is [floor(i m / n), ceil((i + 1) m / n)).
/// x: float [N, C, H, W].
/// attrs.output: output size: one number, or height and width (required).
/// Gives y: [N, C, OH, OW].
struct AdaptiveAvgPool2dAttrs { Required<Ints> output; };
Value adaptive_avg_pool2d(Value x, const AdaptiveAvgPool2dAttrs& attrs, const Loc& loc = Loc::here());

/// Max pooling with a given output size; adaptive_avg_pool2d defines the windows. The first of equal maxima in row-major order wins. NaN counts as the largest value.
/// x: float [N, C, H, W].
/// attrs.output: output size: one number, or height and width (required).
/// Gives y: [N, C, OH, OW].
/// Gives position: argmax indices, row-major within a window of the largest size: u8, or i32 if such a window has more than 256 elements.
struct AdaptiveMaxPool2dAttrs { Required<Ints> output; };
Value adaptive_max_pool2d(Value x, const AdaptiveMaxPool2dAttrs& attrs, const Loc& loc = Loc::here());

/// a + b.
/// a: numeric tensor.
/// b: same dtype as a; shape broadcasts with a's.
/// Gives y: the broadcast shape.
Value add(Value a, Value b, const Loc& loc = Loc::here());

/// Bias of attention with linear biases (ALiBi; Press, Smith and Lewis, 2022), an additive mask: y[h, q, k] = -slope[h] * |k - (q + K - Q)|. The last query is aligned with the last key. Attribute `alibi` of scaled_dot_product_attention adds the same bias without storing it.
/// attrs.type: type [heads, Q, K] of the result (required).
/// Gives y: of type `type`.
struct AlibiAttrs { Required<Type> type; };
Value alibi(ir::Graph& graph, const AlibiAttrs& attrs, const Loc& loc = Loc::here());

/// Whether all elements along `axes` are true; true over zero elements.
/// x: bool tensor.
/// attrs.axes: axes to reduce; negative: counted from the end; empty: all.
/// attrs.keep_dims: keeps the reduced axes with extent 1.
/// Gives y: bool.
struct AllAttrs { Ints axes = {}; bool keep_dims = false; };
Value all(Value x, const AllAttrs& attrs = {}, const Loc& loc = Loc::here());

/// Whether any element along `axes` is true; false over zero elements.
/// x: bool tensor.
/// attrs.axes: axes to reduce; negative: counted from the end; empty: all.
/// attrs.keep_dims: keeps the reduced axes with extent 1.
/// Gives y: bool.
struct AnyAttrs { Ints axes = {}; bool keep_dims = false; };
Value any(Value x, const AnyAttrs& attrs = {}, const Loc& loc = Loc::here());

/// Rotates pairs (a, b) of the first R elements along the last dimension of x to (a * cos - b * sin, b * cos + a * sin), as RotaryEmbedding of ONNX. The other elements stay.
/// x: float [..., D].
/// cos: cosines [..., R / 2], broadcast to x; x's dtype or f32.
/// sin: sines, same type as cos.
/// attrs.interleaved: true: pairs are neighbours (GPT-J); false: element i is paired with i + R / 2 (Llama).
/// Gives y: same type as x.
struct ApplyRotaryEmbeddingAttrs { bool interleaved = false; };
Value apply_rotary_embedding(Value x, Value cos, Value sin, const ApplyRotaryEmbeddingAttrs& attrs = {}, const Loc& loc = Loc::here());

/// The numbers start, start + step, start + 2 * step, ...
/// attrs.type: type [n] of the result (required).
/// attrs.start: first element.
/// attrs.step: difference of consecutive elements.
/// Gives y: of type `type`.
struct ArangeAttrs { Required<Type> type; double start = 0.0; double step = 1.0; };
Value arange(ir::Graph& graph, const ArangeAttrs& attrs, const Loc& loc = Loc::here());

/// Index of the first maximum along `axis`. NaN counts as the largest value.
/// x: numeric tensor, not empty along `axis`.
/// attrs.axis: axis to reduce; negative: counted from the end.
/// attrs.keep_dims: keeps the reduced axis with extent 1.
/// Gives index: i64.
struct ArgmaxAttrs { int64_t axis = -1; bool keep_dims = false; };
Value argmax(Value x, const ArgmaxAttrs& attrs = {}, const Loc& loc = Loc::here());

/// Index of the first minimum along `axis`. NaN counts as the smallest value.
/// x: numeric tensor, not empty along `axis`.
/// attrs.axis: axis to reduce; negative: counted from the end.
/// attrs.keep_dims: keeps the reduced axis with extent 1.
/// Gives index: i64.
struct ArgminAttrs { int64_t axis = -1; bool keep_dims = false; };
Value argmin(Value x, const ArgminAttrs& attrs = {}, const Loc& loc = Loc::here());

/// Indices that sort x along `axis`; equal elements keep their order, and NaN counts as the largest value, as in torch.argsort with stable=True.
/// x: numeric tensor, rank >= 1.
/// attrs.axis: axis to sort along, not the batch dimension; negative: counted from the end.
/// attrs.descending: whether the largest value comes first.
/// Gives index: i64, x's shape: indices along the axis.
struct ArgsortAttrs { int64_t axis = -1; bool descending = false; };
Value argsort(Value x, const ArgsortAttrs& attrs = {}, const Loc& loc = Loc::here());

/// The arcsine of x in radians; NaN outside [-1, 1]. Its gradient at -1 and 1 is infinite.
/// x: float tensor.
/// Gives y: like x.
Value asin(Value x, const Loc& loc = Loc::here());

/// The arctangent of x in radians.
/// x: float tensor.
/// Gives y: like x.
Value atan(Value x, const Loc& loc = Loc::here());

/// Average pooling, like torch.nn.functional.avg_pool1d. `dilation` is as in ONNX.
/// x: float [N, C, L].
/// attrs.kernel: window size: one number (required).
/// attrs.stride: stride of the window: one number; empty: the kernel.
/// attrs.padding: padding: one number or two (before, after).
/// attrs.dilation: spacing of the window's taps: one number.
/// attrs.ceil_mode: whether the number of windows is rounded up; the last window then extends beyond the padding.
/// attrs.count_include_pad: whether the divisor includes the padding; elements beyond it never count.
/// attrs.divisor_override: divisor of every window; 0: its number of taps.
/// Gives y: [N, C, OL].
struct AvgPool1dAttrs { Required<Ints> kernel; Ints stride = {}; Ints padding = {0}; Ints dilation = {1}; bool ceil_mode = false; bool count_include_pad = true; int64_t divisor_override = 0; };
Value avg_pool1d(Value x, const AvgPool1dAttrs& attrs, const Loc& loc = Loc::here());

/// Average pooling, like torch.nn.functional.avg_pool2d. `dilation` is as in ONNX.
/// x: float [N, C, H, W].
/// attrs.kernel: window size: one number, or one for the height and one for the width (required).
/// attrs.stride: stride of the window: one number, or one for the height and one for the width; empty: the kernel.
/// attrs.padding: padding: one number, two (height, width) or four (top, left, bottom, right).
/// attrs.dilation: spacing of the window's taps: one number, or one for the height and one for the width.
/// attrs.ceil_mode: whether the number of windows is rounded up; the last window then extends beyond the padding.
/// attrs.count_include_pad: whether the divisor includes the padding; elements beyond it never count.
/// attrs.divisor_override: divisor of every window; 0: its number of taps.
/// Gives y: [N, C, OH, OW].
struct AvgPool2dAttrs { Required<Ints> kernel; Ints stride = {}; Ints padding = {0}; Ints dilation = {1}; bool ceil_mode = false; bool count_include_pad = true; int64_t divisor_override = 0; };
Value avg_pool2d(Value x, const AvgPool2dAttrs& attrs, const Loc& loc = Loc::here());

/// Average pooling, like torch.nn.functional.avg_pool3d. `dilation` is as in ONNX.
/// x: float [N, C, D, H, W].
/// attrs.kernel: window size: one number, or one each for the depth, the height and the width (required).
/// attrs.stride: stride of the window: one number, or one each for the depth, the height and the width; empty: the kernel.
/// attrs.padding: padding: one number, three (depth, height, width) or six (all before, then all after).
/// attrs.dilation: spacing of the window's taps: one number, or one each for the depth, the height and the width.
/// attrs.ceil_mode: whether the number of windows is rounded up; the last window then extends beyond the padding.
/// attrs.count_include_pad: whether the divisor includes the padding; elements beyond it never count.
/// attrs.divisor_override: divisor of every window; 0: its number of taps.
/// Gives y: [N, C, OD, OH, OW].
struct AvgPool3dAttrs { Required<Ints> kernel; Ints stride = {}; Ints padding = {0}; Ints dilation = {1}; bool ceil_mode = false; bool count_include_pad = true; int64_t divisor_override = 0; };
Value avg_pool3d(Value x, const AvgPool3dAttrs& attrs, const Loc& loc = Loc::here());

/// y[..., o] = sum of a[..., i] * w[o, i, j] * b[..., j] over i and j, plus bias[o], like torch.nn.functional.bilinear.
/// a: float [..., I].
/// b: same dtype, [..., J].
/// w: same dtype, [O, I, J].
/// bias: same dtype, [O].
/// Gives y: [..., O].
Value bilinear(Value a, Value b, Value w, const Loc& loc = Loc::here());
Value bilinear(Value a, Value b, Value w, Value bias, const Loc& loc = Loc::here());

/// Binary cross-entropy of probabilities: -(target * log(x) + (1 - target) * log(1 - x)). Logarithms are at least -100. binary_cross_entropy_with_logits is more accurate.
/// x: float tensor of probabilities.
/// target: same type as x, in [0, 1].
/// attrs.reduction: "none", or "mean" or "sum" over all elements of the loss.
/// Gives loss: same type as x, or a scalar.
struct BinaryCrossEntropyAttrs { std::string reduction = "none"; };
Value binary_cross_entropy(Value x, Value target, const BinaryCrossEntropyAttrs& attrs = {}, const Loc& loc = Loc::here());

/// Binary cross-entropy of p = sigmoid(x): -(pos_weight * target * log(p) + (1 - target) * log(1 - p)), computed in a numerically stable form.
/// x: float tensor of logits.
/// target: same type as x, in [0, 1].
/// pos_weight: weight of target 1, x's dtype; broadcasts to x's shape.
/// attrs.reduction: "none", or "mean" or "sum" over all elements of the loss.
/// Gives loss: same type as x, or a scalar.
struct BinaryCrossEntropyWithLogitsAttrs { std::string reduction = "none"; };
Value binary_cross_entropy_with_logits(Value x, Value target, const BinaryCrossEntropyWithLogitsAttrs& attrs = {}, const Loc& loc = Loc::here());
Value binary_cross_entropy_with_logits(Value x, Value target, Value pos_weight, const BinaryCrossEntropyWithLogitsAttrs& attrs = {}, const Loc& loc = Loc::here());

/// Broadcasts x to the shape of `to`, by NumPy's rules.
/// x: any tensor.
/// attrs.to: gives the shape of the result; its dtype is ignored (required).
/// Gives y: x's dtype.
struct BroadcastToAttrs { Required<Type> to; };
Value broadcast_to(Value x, const BroadcastToAttrs& attrs, const Loc& loc = Loc::here());

/// Converts x to another dtype. Floats convert to integers by truncation, to bool by != 0, and to half precision by rounding to nearest even.
/// x: any tensor.
/// attrs.to: gives the dtype of the result; its shape is ignored (required).
/// Gives y: x's shape.
struct CastAttrs { Required<Type> to; };
Value cast(Value x, const CastAttrs& attrs, const Loc& loc = Loc::here());

/// The smallest integer that is not below x. Its gradient is 0.
/// x: float tensor.
/// Gives y: like x.
Value ceil(Value x, const Loc& loc = Loc::here());

/// x where x is positive, else `alpha` * (exp(x / `alpha`) - 1): an elu with a continuous derivative (Barron, 2017).
/// x: float tensor.
/// attrs.alpha: negated limit of the result at minus infinity; not 0.
/// Gives y: like x.
struct CeluAttrs { double alpha = 1.0; };
Value celu(Value x, const CeluAttrs& attrs = {}, const Loc& loc = Loc::here());

/// min(max(x, `min`), `max`). NaN stays NaN. The gradient is 0 where x is at a bound or beyond it.
/// x: numeric tensor.
/// attrs.min: lower bound; minus infinity: none.
/// attrs.max: upper bound; infinity: none.
/// Gives y: like x.
struct ClipAttrs { double min = -INFINITY; double max = INFINITY; };
Value clip(Value x, const ClipAttrs& attrs = {}, const Loc& loc = Loc::here());

/// Concatenates the operands along `axis`.
/// xs: tensors of one dtype, with equal extents except along `axis`.
/// attrs.axis: axis to concatenate, not the batch dimension; negative: counted from the end.
/// Gives y: dtype of the operands.
struct ConcatAttrs { int64_t axis = 0; };
Value concat(const Values& xs, const ConcatAttrs& attrs = {}, const Loc& loc = Loc::here());

/// 1-d convolution (cross-correlation) over the input channels of each group, like torch.nn.functional.conv1d. It has no bias; use `add`.
/// x: float [N, C, L].
/// w: filter [O, C / groups, KL].
/// attrs.stride: stride of the window: one number.
/// attrs.padding: zero padding: one number or two (before, after).
/// attrs.dilation: spacing of the filter's taps: one number.
/// attrs.groups: number of groups; a filter sees only the input channels of its group.
/// Gives y: [N, O, OL], each spatial extent (x + padding - dilation * (k - 1) - 1) / stride + 1.
struct Conv1dAttrs { Ints stride = {1}; Ints padding = {0}; Ints dilation = {1}; int64_t groups = 1; };
Value conv1d(Value x, Value w, const Conv1dAttrs& attrs = {}, const Loc& loc = Loc::here());

/// Transposed convolution, like torch.nn.functional.conv_transpose1d: the gradient of conv1d with respect to its input. It has no bias; use `add`.
/// x: float [N, C, L].
/// w: filter [C, O / groups, KL].
/// attrs.stride: stride of the window: one number.
/// attrs.padding: zero padding: one number or two (before, after).
/// attrs.dilation: spacing of the filter's taps: one number.
/// attrs.groups: number of groups; a filter sees only the input channels of its group.
/// attrs.output_padding: added to the extents of the result, after the elements: one number; below the stride or the dilation.
/// Gives y: [N, O, OL], each spatial extent (x - 1) * stride - padding + dilation * (k - 1) + output_padding + 1.
struct Conv1dTransposeAttrs { Ints stride = {1}; Ints padding = {0}; Ints dilation = {1}; int64_t groups = 1; Ints output_padding = {0}; };
Value conv1d_transpose(Value x, Value w, const Conv1dTransposeAttrs& attrs = {}, const Loc& loc = Loc::here());

/// 2-d convolution (cross-correlation) over the input channels of each group, like torch.nn.functional.conv2d. It has no bias; use `add`.
/// x: float [N, C, H, W].
/// w: filter [O, C / groups, KH, KW].
/// attrs.stride: stride of the window: one number, or one for the height and one for the width.
/// attrs.padding: zero padding: one number, two (height, width) or four (top, left, bottom, right).
/// attrs.dilation: spacing of the filter's taps: one number, or one for the height and one for the width.
/// attrs.groups: number of groups; a filter sees only the input channels of its group.
/// Gives y: [N, O, OH, OW], each spatial extent (x + padding - dilation * (k - 1) - 1) / stride + 1.
struct Conv2dAttrs { Ints stride = {1}; Ints padding = {0}; Ints dilation = {1}; int64_t groups = 1; };
Value conv2d(Value x, Value w, const Conv2dAttrs& attrs = {}, const Loc& loc = Loc::here());

/// Transposed convolution, like torch.nn.functional.conv_transpose2d: the gradient of conv2d with respect to its input. It has no bias; use `add`.
/// x: float [N, C, H, W].
/// w: filter [C, O / groups, KH, KW].
/// attrs.stride: stride of the window: one number, or one for the height and one for the width.
/// attrs.padding: zero padding: one number, two (height, width) or four (top, left, bottom, right).
/// attrs.dilation: spacing of the filter's taps: one number, or one for the height and one for the width.
/// attrs.groups: number of groups; a filter sees only the input channels of its group.
/// attrs.output_padding: added to the extents of the result, after the elements: one number, or one for the height and one for the width; below the stride or the dilation.
/// Gives y: [N, O, OH, OW], each spatial extent (x - 1) * stride - padding + dilation * (k - 1) + output_padding + 1.
struct Conv2dTransposeAttrs { Ints stride = {1}; Ints padding = {0}; Ints dilation = {1}; int64_t groups = 1; Ints output_padding = {0}; };
Value conv2d_transpose(Value x, Value w, const Conv2dTransposeAttrs& attrs = {}, const Loc& loc = Loc::here());

/// 3-d convolution (cross-correlation) over the input channels of each group, like torch.nn.functional.conv3d. It has no bias; use `add`.
/// x: float [N, C, D, H, W].
/// w: filter [O, C / groups, KD, KH, KW].
/// attrs.stride: stride of the window: one number, or one each for the depth, the height and the width.
/// attrs.padding: zero padding: one number, three (depth, height, width) or six (all before, then all after).
/// attrs.dilation: spacing of the filter's taps: one number, or one each for the depth, the height and the width.
/// attrs.groups: number of groups; a filter sees only the input channels of its group.
/// Gives y: [N, O, OD, OH, OW], each spatial extent (x + padding - dilation * (k - 1) - 1) / stride + 1.
struct Conv3dAttrs { Ints stride = {1}; Ints padding = {0}; Ints dilation = {1}; int64_t groups = 1; };
Value conv3d(Value x, Value w, const Conv3dAttrs& attrs = {}, const Loc& loc = Loc::here());

/// Transposed convolution, like torch.nn.functional.conv_transpose3d: the gradient of conv3d with respect to its input. It has no bias; use `add`.
/// x: float [N, C, D, H, W].
/// w: filter [C, O / groups, KD, KH, KW].
/// attrs.stride: stride of the window: one number, or one each for the depth, the height and the width.
/// attrs.padding: zero padding: one number, three (depth, height, width) or six (all before, then all after).
/// attrs.dilation: spacing of the filter's taps: one number, or one each for the depth, the height and the width.
/// attrs.groups: number of groups; a filter sees only the input channels of its group.
/// attrs.output_padding: added to the extents of the result, after the elements: one number, or one each for the depth, the height and the width; below the stride or the dilation.
/// Gives y: [N, O, OD, OH, OW], each spatial extent (x - 1) * stride - padding + dilation * (k - 1) + output_padding + 1.
struct Conv3dTransposeAttrs { Ints stride = {1}; Ints padding = {0}; Ints dilation = {1}; int64_t groups = 1; Ints output_padding = {0}; };
Value conv3d_transpose(Value x, Value w, const Conv3dTransposeAttrs& attrs = {}, const Loc& loc = Loc::here());

/// The cosine of x in radians; NaN for infinities.
/// x: float tensor.
/// Gives y: like x.
Value cos(Value x, const Loc& loc = Loc::here());

/// The hyperbolic cosine.
/// x: float tensor.
/// Gives y: like x.
Value cosh(Value x, const Loc& loc = Loc::here());

/// 1 - cos(a, b) for target 1, and max(0, cos(a, b) - margin) for target -1, of the rows of a and b. The loss of any other target is 0. The target has no gradient.
/// a: float rows [..., D].
/// b: same type as a.
/// target: -1 or 1 per row: a's shape without D, a's dtype or an integer dtype.
/// attrs.margin: cosine from which on rows of target -1 have a loss.
/// attrs.reduction: "none", or "mean" or "sum" over all elements of the loss.
/// Gives loss: one value per row, or a scalar.
struct CosineEmbeddingLossAttrs { double margin = 0.0; std::string reduction = "none"; };
Value cosine_embedding_loss(Value a, Value b, Value target, const CosineEmbeddingLossAttrs& attrs = {}, const Loc& loc = Loc::here());

/// Cumulative product along `axis`, like torch.cumprod, and CumProd of ONNX. Half precision is multiplied in f32. The gradient is exact where elements are 0.
/// x: numeric tensor, rank >= 1.
/// attrs.axis: axis of the products, not the batch dimension; negative: counted from the end.
/// attrs.exclusive: whether an element is left out of its own product.
/// attrs.reverse: whether products start at the end of the axis.
/// Gives y: same type as x.
struct CumprodAttrs { int64_t axis = -1; bool exclusive = false; bool reverse = false; };
Value cumprod(Value x, const CumprodAttrs& attrs = {}, const Loc& loc = Loc::here());

/// Cumulative sum along `axis`, like torch.cumsum, and CumSum of ONNX. Half precision is summed in f32.
/// x: numeric tensor, rank >= 1.
/// attrs.axis: axis of the sums, not the batch dimension; negative: counted from the end.
/// attrs.exclusive: whether an element is left out of its own sum.
/// attrs.reverse: whether sums start at the end of the axis.
/// Gives y: same type as x.
struct CumsumAttrs { int64_t axis = -1; bool exclusive = false; bool reverse = false; };
Value cumsum(Value x, const CumsumAttrs& attrs = {}, const Loc& loc = Loc::here());

/// Converts integers to floats: (x - zero_point) * scale, like ONNX's DequantizeLinear. For inference only.
/// x: tensor of i8, u8 or i32.
/// scale: float; one element, or one per index of `axis`.
/// zero_point: same dtype as x; one element, or one per index of `axis`; absent: 0.
/// attrs.axis: axis of scale and zero_point; negative counts from the end.
/// Gives y: x's shape, scale's dtype.
struct DequantizeAttrs { int64_t axis = 1; };
Value dequantize(Value x, Value scale, const DequantizeAttrs& attrs = {}, const Loc& loc = Loc::here());
Value dequantize(Value x, Value scale, Value zero_point, const DequantizeAttrs& attrs = {}, const Loc& loc = Loc::here());

/// Dice loss of each sample (Milletari, Navab and Ahmadi, 2016, without squares in the denominator): 1 - (2 sum(x * target) + smooth) / (sum(x) + sum(target) + smooth), with sums over all dimensions but the first. PyTorch and ONNX have no such loss.
/// x: float tensor of probabilities, rank >= 2.
/// target: same type as x.
/// attrs.smooth: added to the numerator and to the denominator.
/// attrs.reduction: "none", or "mean" or "sum" over all elements of the loss.
/// Gives loss: one value per sample, or a scalar.
struct DiceLossAttrs { double smooth = 1.0; std::string reduction = "none"; };
Value dice_loss(Value x, Value target, const DiceLossAttrs& attrs = {}, const Loc& loc = Loc::here());

/// a / b.
/// a: float tensor.
/// b: same dtype as a; shape broadcasts with a's.
/// Gives y: the broadcast shape.
Value div(Value a, Value b, const Loc& loc = Loc::here());

/// Sum of products in Einstein notation, like torch.einsum: "bij,bjk->bik" is a batch of matrix products. Without "->" the result has the letters that occur once, in alphabetical order. "..." stands for leading dimensions that broadcast. A letter that an operand repeats selects its diagonal. Operands are contracted from left to right.
/// xs: float tensors of one dtype.
/// attrs.equation: letters of the operands and of the result (required).
/// Gives y: dtype of the operands.
struct EinsumAttrs { Required<std::string> equation; };
Value einsum(const Values& xs, const EinsumAttrs& attrs, const Loc& loc = Loc::here());

/// x where x is positive, else `alpha` * (exp(x) - 1) (Clevert, Unterthiner and Hochreiter, 2015).
/// x: float tensor.
/// attrs.alpha: negated limit of the result at minus infinity.
/// Gives y: like x.
struct EluAttrs { double alpha = 1.0; };
Value elu(Value x, const EluAttrs& attrs = {}, const Loc& loc = Loc::here());

/// Rows of a table at the indices, like torch.nn.functional.embedding. An index out of range raises an error.
/// table: float [V, D].
/// index: integer tensor of any shape.
/// attrs.padding_idx: row of the table that gets no gradient; negative: counted from the end; empty: none.
/// Gives y: table's dtype, index's shape followed by D.
struct EmbeddingAttrs { Ints padding_idx = {}; };
Value embedding(Value table, Value index, const EmbeddingAttrs& attrs = {}, const Loc& loc = Loc::here());

/// Sum, mean or maximum of the rows of a table at the indices of each bag, like torch.nn.functional.embedding_bag. A bag without rows gives 0. An index out of range raises an error.
/// table: float [V, D].
/// index: integer [N, L]: N bags of L indices.
/// weights: table's dtype, [N, L]: factors of the rows of a sum.
/// attrs.mode: "sum", "mean" or "max".
/// attrs.padding_idx: row of the table that is left out of the bags; negative: counted from the end; empty: none.
/// Gives y: table's dtype, [N, D].
struct EmbeddingBagAttrs { std::string mode = "mean"; Ints padding_idx = {}; };
Value embedding_bag(Value table, Value index, const EmbeddingBagAttrs& attrs = {}, const Loc& loc = Loc::here());
Value embedding_bag(Value table, Value index, Value weights, const EmbeddingBagAttrs& attrs = {}, const Loc& loc = Loc::here());

/// Whether a == b.
/// a: any tensor.
/// b: same dtype as a; shape broadcasts with a's.
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

/// 2 to the power of x, exact for integers.
/// x: float tensor.
/// Gives y: like x.
Value exp2(Value x, const Loc& loc = Loc::here());

/// exp(x) - 1, exact near 0.
/// x: float tensor.
/// Gives y: like x.
Value expm1(Value x, const Loc& loc = Loc::here());

/// 2 TP / (2 TP + FP + FN), where TP, FP and FN are the true positives, false positives and false negatives of a class; 0 if the divisor is 0. The predicted class is the argmax of the scores, as in accuracy. Equals scikit-learn's function of this purpose over the whole epoch.
/// x: float scores [..., C], or [...]: scores of class 1 of two classes.
/// label: integer class indices [...].
/// attrs.average: binary: the score of class 1 of two classes. micro: the score of the counts of all classes. macro: the mean over the classes that occur among the labels or predictions. weighted: their mean, weighted by the number of labels.
/// attrs.threshold: without a class axis, larger scores predict class 1.
/// Gives statistics: f64 [C, C]: number of samples by label and predicted class.
struct F1ScoreAttrs { std::string average = "macro"; double threshold = 0.0; };
Value f1_score(Value x, Value label, const F1ScoreAttrs& attrs = {}, const Loc& loc = Loc::here());

/// A tensor filled with a constant.
/// attrs.type: type of the result (required).
/// attrs.value: value of every element.
/// Gives y: of type `type`.
struct FillAttrs { Required<Type> type; double value = 0.0; };
Value fill(ir::Graph& graph, const FillAttrs& attrs, const Loc& loc = Loc::here());

/// Merges the dimensions of x from `axis` on into one.
/// x: any tensor.
/// attrs.axis: first dimension to merge.
/// Gives y: x's dtype, rank axis + 1.
struct FlattenAttrs { int64_t axis = 1; };
Value flatten(Value x, const FlattenAttrs& attrs = {}, const Loc& loc = Loc::here());

/// Reverses the order of the elements along `axes`.
/// x: any tensor.
/// attrs.axes: axes to reverse, not the batch dimension; negative: counted from the end; empty: none (required).
/// Gives y: like x.
struct FlipAttrs { Required<Ints> axes; };
Value flip(Value x, const FlipAttrs& attrs, const Loc& loc = Loc::here());

/// The largest integer that is not above x. Its gradient is 0.
/// x: float tensor.
/// Gives y: like x.
Value floor(Value x, const Loc& loc = Loc::here());

/// Focal loss (Lin et al., 2017) of binary logits: alpha_t * (1 - p_t)^gamma * -log(p_t), where p_t is the probability of the target class, and alpha_t is alpha for target 1 and 1 - alpha for target 0. Equals sigmoid_focal_loss of torchvision.
/// x: float tensor of logits.
/// target: same type as x, in [0, 1].
/// attrs.alpha: weight of target 1; negative: no weights.
/// attrs.gamma: exponent of the focusing factor.
/// attrs.reduction: "none", or "mean" or "sum" over all elements of the loss.
/// Gives loss: same type as x, or a scalar.
struct FocalLossAttrs { double alpha = 0.25; double gamma = 2.0; std::string reduction = "none"; };
Value focal_loss(Value x, Value target, const FocalLossAttrs& attrs = {}, const Loc& loc = Loc::here());

/// Sums of the columns of x at the places of their windows (col2im), like torch.nn.functional.fold, and Col2Im of ONNX in two dimensions.
/// x: float [N, C * KH * KW, windows].
/// attrs.output: height and width of the result (required).
/// attrs.kernel: height and width of the window (required).
/// attrs.stride: step of the window.
/// attrs.padding: zero padding on each side: one number, (height, width), or (top, left, bottom, right).
/// attrs.dilation: distance of the taps of the window.
/// Gives y: x's dtype, [N, C, H, W].
struct FoldAttrs { Required<Ints> output; Required<Ints> kernel; Ints stride = {1}; Ints padding = {0}; Ints dilation = {1}; };
Value fold(Value x, const FoldAttrs& attrs, const Loc& loc = Loc::here());

/// Slices of x along `axis` at the indices, as Gather of ONNX and torch.index_select: y[i..., j..., k...] = x[i..., index[j...], k...]. An index out of range raises an error.
/// x: any tensor, rank >= 1.
/// index: integer tensor of any shape.
/// attrs.axis: axis that the index addresses, not the batch dimension; negative: counted from the end.
/// Gives y: x's dtype; index's shape in the place of `axis`.
struct GatherAttrs { int64_t axis = 0; };
Value gather(Value x, Value index, const GatherAttrs& attrs = {}, const Loc& loc = Loc::here());

/// Slices of x at the indices, as GatherND of ONNX: y[b..., p..., s...] = x[b..., i_1, ..., i_K, s...] with i_k = index[b..., p..., k]. An index out of range raises an error.
/// x: any tensor [batch..., indexed..., slice...].
/// index: integer tensor [batch..., positions..., K].
/// attrs.batch_dims: number of leading dimensions of x and index that correspond to each other.
/// Gives y: x's dtype, [batch..., positions..., slice...].
struct GatherNdAttrs { int64_t batch_dims = 0; };
Value gather_nd(Value x, Value index, const GatherNdAttrs& attrs = {}, const Loc& loc = Loc::here());

/// x * Phi(x), where Phi is the standard normal distribution function (Hendrycks and Gimpel, 2016).
/// x: float tensor.
/// attrs.approximate: "tanh": uses the tanh approximation.
/// Gives y: like x.
struct GeluAttrs { std::string approximate = "none"; };
Value gelu(Value x, const GeluAttrs& attrs = {}, const Loc& loc = Loc::here());

/// The gradients of the sum of y with respect to each x, like torch.autograd.grad(y.sum(), xs, create_graph=True). They are values of the program, so a loss may depend on them (gradient penalties). y must depend on each x. Integer and bool values between them pass no gradient, as with stop_gradient; the other ops between them must have gradients. If a loss depends on the result, the gradients of these ops must, too.
/// y: float tensor.
/// xs: float tensors.
/// Gives dxs: types of the xs.
Values gradients(Value y, const Values& xs, const Loc& loc = Loc::here());

/// Whether a > b.
/// a: any tensor.
/// b: same dtype as a; shape broadcasts with a's.
/// Gives y: bool, the broadcast shape.
Value greater(Value a, Value b, const Loc& loc = Loc::here());

/// Whether a >= b.
/// a: any tensor.
/// b: same dtype as a; shape broadcasts with a's.
/// Gives y: bool, the broadcast shape.
Value greater_equal(Value a, Value b, const Loc& loc = Loc::here());

/// min(max(`alpha` * x + `beta`, 0), 1).
/// x: float tensor.
/// attrs.alpha: slope, positive.
/// attrs.beta: value at 0.
/// Gives y: like x.
struct HardSigmoidAttrs { double alpha = 0.16666666666666666; double beta = 0.5; };
Value hard_sigmoid(Value x, const HardSigmoidAttrs& attrs = {}, const Loc& loc = Loc::here());

/// x * relu6(x + 3) / 6 (Howard et al., "Searching for MobileNetV3", 2019).
/// x: float tensor.
/// Gives y: like x.
Value hard_swish(Value x, const Loc& loc = Loc::here());

/// Hinge loss of a binary classifier (Cortes and Vapnik, 1995): max(0, 1 - target * x). PyTorch has no such loss; its hinge_embedding_loss has another definition.
/// x: float tensor of scores.
/// target: same type as x: -1 or 1.
/// attrs.reduction: "none", or "mean" or "sum" over all elements of the loss.
/// Gives loss: same type as x, or a scalar.
struct HingeLossAttrs { std::string reduction = "none"; };
Value hinge_loss(Value x, Value target, const HingeLossAttrs& attrs = {}, const Loc& loc = Loc::here());

/// Huber loss (1964): (x - target)^2 / 2 where |x - target| < delta, and delta * (|x - target| - delta / 2) elsewhere.
/// x: float tensor.
/// target: same type as x.
/// attrs.delta: error at which the loss becomes linear.
/// attrs.reduction: "none", or "mean" or "sum" over all elements of the loss.
/// Gives loss: same type as x, or a scalar.
struct HuberLossAttrs { double delta = 1.0; std::string reduction = "none"; };
Value huber_loss(Value x, Value target, const HuberLossAttrs& attrs = {}, const Loc& loc = Loc::here());

/// x with alpha * updates[i..., n, k...] added to x[i..., index[n], k...] for all n in ascending order, like torch.index_add. An index out of range raises an error.
/// x: numeric tensor.
/// index: integer vector.
/// updates: x's type, but index's extent along `axis`.
/// attrs.axis: axis that the index addresses, not the batch dimension; negative: counted from the end.
/// attrs.alpha: factor of the updates.
/// Gives y: same type as x.
struct IndexAddAttrs { int64_t axis = 0; double alpha = 1.0; };
Value index_add(Value x, Value index, Value updates, const IndexAddAttrs& attrs = {}, const Loc& loc = Loc::here());

/// Whether x is neither infinite nor NaN.
/// x: float tensor.
/// Gives y: bool, same shape as x.
Value is_finite(Value x, const Loc& loc = Loc::here());

/// Whether x is infinite.
/// x: float tensor.
/// attrs.detect_positive: whether infinity counts.
/// attrs.detect_negative: whether minus infinity counts.
/// Gives y: bool, same shape as x.
struct IsInfAttrs { bool detect_positive = true; bool detect_negative = true; };
Value is_inf(Value x, const IsInfAttrs& attrs = {}, const Loc& loc = Loc::here());

/// Whether x is NaN.
/// x: float tensor.
/// Gives y: bool, same shape as x.
Value is_nan(Value x, const Loc& loc = Loc::here());

/// Terms of the Kullback-Leibler divergence of the target from exp(x): target * (log(target) - x), and 0 - target * x where target is 0. A mean is over all elements; PyTorch's "batchmean" is the sum divided by the batch size.
/// x: float tensor of logarithms of probabilities.
/// target: same type as x: probabilities.
/// attrs.log_target: target holds logarithms of probabilities.
/// attrs.reduction: "none", or "mean" or "sum" over all elements of the loss.
/// Gives loss: same type as x, or a scalar.
struct KlDivAttrs { bool log_target = false; std::string reduction = "none"; };
Value kl_div(Value x, Value target, const KlDivAttrs& attrs = {}, const Loc& loc = Loc::here());

/// Absolute error |x - target|. Its gradient at 0 is 0.
/// x: float tensor.
/// target: same type as x.
/// attrs.reduction: "none", or "mean" or "sum" over all elements of the loss.
/// Gives loss: same type as x, or a scalar.
struct L1LossAttrs { std::string reduction = "none"; };
Value l1_loss(Value x, Value target, const L1LossAttrs& attrs = {}, const Loc& loc = Loc::here());

/// x where x is positive, else `negative_slope` * x (Maas et al., "Rectifier nonlinearities improve neural network acoustic models", 2013).
/// x: float tensor.
/// attrs.negative_slope: factor of negative elements.
/// Gives y: like x.
struct LeakyReluAttrs { double negative_slope = 0.01; };
Value leaky_relu(Value x, const LeakyReluAttrs& attrs = {}, const Loc& loc = Loc::here());

/// Whether a < b.
/// a: any tensor.
/// b: same dtype as a; shape broadcasts with a's.
/// Gives y: bool, the broadcast shape.
Value less(Value a, Value b, const Loc& loc = Loc::here());

/// Whether a <= b.
/// a: any tensor.
/// b: same dtype as a; shape broadcasts with a's.
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

/// The logarithm of x to base 2, exact for powers of 2.
/// x: float tensor.
/// Gives y: like x.
Value log2(Value x, const Loc& loc = Loc::here());

/// log(sigmoid(x)), computed in a numerically stable form.
/// x: float tensor.
/// Gives y: like x.
Value log_sigmoid(Value x, const Loc& loc = Loc::here());

/// log(softmax(x)) along `axis`, computed in a numerically stable form.
/// x: float tensor, rank >= 1.
/// attrs.axis: axis to normalise; negative: counted from the end.
/// Gives y: same type as x.
struct LogSoftmaxAttrs { int64_t axis = -1; };
Value log_softmax(Value x, const LogSoftmaxAttrs& attrs = {}, const Loc& loc = Loc::here());

/// Elementwise logical and.
/// a: bool tensor.
/// b: same dtype as a; shape broadcasts with a's.
/// Gives y: the broadcast shape.
Value logical_and(Value a, Value b, const Loc& loc = Loc::here());

/// Elementwise logical not.
/// x: bool tensor.
/// Gives y: like x.
Value logical_not(Value x, const Loc& loc = Loc::here());

/// Elementwise logical or.
/// a: bool tensor.
/// b: same dtype as a; shape broadcasts with a's.
/// Gives y: the broadcast shape.
Value logical_or(Value a, Value b, const Loc& loc = Loc::here());

/// Elementwise logical exclusive or.
/// a: bool tensor.
/// b: same dtype as a; shape broadcasts with a's.
/// Gives y: the broadcast shape.
Value logical_xor(Value a, Value b, const Loc& loc = Loc::here());

/// log(sum(exp(x))) along `axes`, computed in a numerically stable form; minus infinity over zero elements.
/// x: float tensor.
/// attrs.axes: axes to reduce; negative: counted from the end; empty: all.
/// attrs.keep_dims: keeps the reduced axes with extent 1.
/// Gives y: x's dtype.
struct LogsumexpAttrs { Ints axes = {}; bool keep_dims = false; };
Value logsumexp(Value x, const LogsumexpAttrs& attrs = {}, const Loc& loc = Loc::here());

/// x / max(norm, eps), where norm is the Lp norm of x along `axis`.
/// x: float tensor, rank >= 1.
/// attrs.axis: axis to normalise; negative: counted from the end.
/// attrs.p: 1: L1 norm; 2: L2 norm.
/// attrs.eps: smallest divisor.
/// Gives y: same type as x.
struct LpNormalizeAttrs { int64_t axis = -1; int64_t p = 2; double eps = 1e-12; };
Value lp_normalize(Value x, const LpNormalizeAttrs& attrs = {}, const Loc& loc = Loc::here());

/// Lp norm of each window, like LpPool of ONNX: (sum |x|^p)^(1 / p). For even p, or x not negative, like torch.nn.functional.lp_pool1d, 2d and 3d, but for the partial windows of ceil_mode, which PyTorch scales to the size of whole windows. The gradient of a norm that is 0 is 0.
/// x: float [N, C, ...] of 1 to 3 spatial dimensions.
/// attrs.kernel: window size: one number, or one per spatial dimension (required).
/// attrs.stride: stride of the window: one number, or one per spatial dimension; empty: the kernel.
/// attrs.padding: padding: one number, one per spatial dimension, or all before, then all after.
/// attrs.dilation: spacing of the window's taps: one number, or one per spatial dimension.
/// attrs.ceil_mode: whether the number of windows is rounded up; the last window then extends beyond the padding.
/// attrs.p: exponent, between 1 and 1024.
/// Gives y: [N, C, ...].
struct LpPoolAttrs { Required<Ints> kernel; Ints stride = {}; Ints padding = {0}; Ints dilation = {1}; bool ceil_mode = false; double p = 2.0; };
Value lp_pool(Value x, const LpPoolAttrs& attrs, const Loc& loc = Loc::here());

/// Local response normalisation (Krizhevsky, Sutskever and Hinton, 2012): x / (k + alpha * m)^beta, where m is the mean of x^2 over `size` channels, from size / 2 channels before a channel on. Channels out of range count as 0. ONNX places a window of even size one channel later.
/// x: float [N, C, ...].
/// attrs.size: number of channels in a window (required).
/// attrs.alpha: factor of the mean.
/// attrs.beta: exponent.
/// attrs.k: added to the mean.
/// Gives y: same type as x.
struct LrnAttrs { Required<int64_t> size; double alpha = 1e-04; double beta = 0.75; double k = 1.0; };
Value lrn(Value x, const LrnAttrs& attrs, const Loc& loc = Loc::here());

/// `value` where `mask` is true, and x elsewhere.
/// x: any tensor.
/// mask: bool tensor; shape broadcasts with x's.
/// attrs.value: value of the masked elements (required).
/// Gives y: x's dtype, the broadcast shape.
struct MaskedFillAttrs { Required<double> value; };
Value masked_fill(Value x, Value mask, const MaskedFillAttrs& attrs, const Loc& loc = Loc::here());

/// Matrix product over the last two dimensions. Leading dimensions broadcast.
/// a: float tensor [..., m, k].
/// b: same dtype, [..., k, n].
/// attrs.transpose_a: a is [..., k, m].
/// attrs.transpose_b: b is [..., n, k].
/// Gives y: [..., m, n].
struct MatmulAttrs { bool transpose_a = false; bool transpose_b = false; };
Value matmul(Value a, Value b, const MatmulAttrs& attrs = {}, const Loc& loc = Loc::here());

/// Maximum along `axes`; NaN if any element is NaN. Equal maxima share the gradient evenly.
/// x: numeric tensor, not empty along `axes`.
/// attrs.axes: axes to reduce; negative: counted from the end; empty: all.
/// attrs.keep_dims: keeps the reduced axes with extent 1.
/// Gives y: x's dtype.
struct MaxAttrs { Ints axes = {}; bool keep_dims = false; };
Value max(Value x, const MaxAttrs& attrs = {}, const Loc& loc = Loc::here());

/// Maximum along `axes` and the index of the first maximum, row-major among the reduced elements. NaN counts as the largest value.
/// x: numeric tensor, not empty along `axes`.
/// attrs.axes: axes to reduce; negative: counted from the end; empty: all.
/// attrs.keep_dims: keeps the reduced axes with extent 1.
/// Gives value: x's dtype.
/// Gives index: i64, same shape as value.
struct MaxIndexAttrs { Ints axes = {}; bool keep_dims = false; };
Values max_index(Value x, const MaxIndexAttrs& attrs = {}, const Loc& loc = Loc::here());

/// Max pooling, like torch.nn.functional.max_pool1d. The first of equal maxima in row-major order wins. Padding counts as minus infinity, and NaN as the largest value.
/// x: float [N, C, L].
/// attrs.kernel: window size: one number (required).
/// attrs.stride: stride of the window: one number; empty: the kernel.
/// attrs.padding: padding: one number or two (before, after).
/// attrs.dilation: spacing of the window's taps: one number.
/// attrs.ceil_mode: whether the number of windows is rounded up; the last window then extends beyond the padding.
/// Gives y: [N, C, OL].
/// Gives position: argmax indices, row-major within the window: u8, or i32 if a window has more than 256 taps; 0 if all its elements are minus infinity.
struct MaxPool1dAttrs { Required<Ints> kernel; Ints stride = {}; Ints padding = {0}; Ints dilation = {1}; bool ceil_mode = false; };
Value max_pool1d(Value x, const MaxPool1dAttrs& attrs, const Loc& loc = Loc::here());

/// Max pooling, like torch.nn.functional.max_pool2d. The first of equal maxima in row-major order wins. Padding counts as minus infinity, and NaN as the largest value.
/// x: float [N, C, H, W].
/// attrs.kernel: window size: one number, or one for the height and one for the width (required).
/// attrs.stride: stride of the window: one number, or one for the height and one for the width; empty: the kernel.
/// attrs.padding: padding: one number, two (height, width) or four (top, left, bottom, right).
/// attrs.dilation: spacing of the window's taps: one number, or one for the height and one for the width.
/// attrs.ceil_mode: whether the number of windows is rounded up; the last window then extends beyond the padding.
/// Gives y: [N, C, OH, OW].
/// Gives position: argmax indices, row-major within the window: u8, or i32 if a window has more than 256 taps; 0 if all its elements are minus infinity.
struct MaxPool2dAttrs { Required<Ints> kernel; Ints stride = {}; Ints padding = {0}; Ints dilation = {1}; bool ceil_mode = false; };
Value max_pool2d(Value x, const MaxPool2dAttrs& attrs, const Loc& loc = Loc::here());

/// Max pooling, like torch.nn.functional.max_pool3d. The first of equal maxima in row-major order wins. Padding counts as minus infinity, and NaN as the largest value.
/// x: float [N, C, D, H, W].
/// attrs.kernel: window size: one number, or one each for the depth, the height and the width (required).
/// attrs.stride: stride of the window: one number, or one each for the depth, the height and the width; empty: the kernel.
/// attrs.padding: padding: one number, three (depth, height, width) or six (all before, then all after).
/// attrs.dilation: spacing of the window's taps: one number, or one each for the depth, the height and the width.
/// attrs.ceil_mode: whether the number of windows is rounded up; the last window then extends beyond the padding.
/// Gives y: [N, C, OD, OH, OW].
/// Gives position: argmax indices, row-major within the window: u8, or i32 if a window has more than 256 taps; 0 if all its elements are minus infinity.
struct MaxPool3dAttrs { Required<Ints> kernel; Ints stride = {}; Ints padding = {0}; Ints dilation = {1}; bool ceil_mode = false; };
Value max_pool3d(Value x, const MaxPool3dAttrs& attrs, const Loc& loc = Loc::here());

/// Elementwise maximum; NaN if either operand is NaN. Equal operands share the gradient evenly.
/// a: numeric tensor.
/// b: same dtype as a; shape broadcasts with a's.
/// Gives y: the broadcast shape.
Value maximum(Value a, Value b, const Loc& loc = Loc::here());

/// Mean along `axes`; NaN over zero elements. A mean over the batch divides by the batch size of the step.
/// x: float tensor.
/// attrs.axes: axes to reduce; negative: counted from the end; empty: all.
/// attrs.keep_dims: keeps the reduced axes with extent 1.
/// Gives y: x's dtype.
struct MeanAttrs { Ints axes = {}; bool keep_dims = false; };
Value mean(Value x, const MeanAttrs& attrs = {}, const Loc& loc = Loc::here());

/// Mean of abs(prediction - target) over all elements.
/// prediction: float tensor.
/// target: of prediction's type.
/// Gives statistics: f64 [2]: sum over the elements, number of elements.
Value mean_absolute_error(Value prediction, Value target, const Loc& loc = Loc::here());

/// Mean of (prediction - target)^2 over all elements.
/// prediction: float tensor.
/// target: of prediction's type.
/// Gives statistics: f64 [2]: sum over the elements, number of elements.
Value mean_squared_error(Value prediction, Value target, const Loc& loc = Loc::here());

/// A user-defined metric. Its value is sum / weight. Over the steps of an epoch the sums and the weights are added separately.
/// sum: float scalar.
/// weight: of sum's type.
/// Gives statistics: f64 [2]: sum, weight.
Value metric(Value sum, Value weight, const Loc& loc = Loc::here());

/// Minimum along `axes`; NaN if any element is NaN. Equal minima share the gradient evenly.
/// x: numeric tensor, not empty along `axes`.
/// attrs.axes: axes to reduce; negative: counted from the end; empty: all.
/// attrs.keep_dims: keeps the reduced axes with extent 1.
/// Gives y: x's dtype.
struct MinAttrs { Ints axes = {}; bool keep_dims = false; };
Value min(Value x, const MinAttrs& attrs = {}, const Loc& loc = Loc::here());

/// Elementwise minimum; NaN if either operand is NaN. Equal operands share the gradient evenly.
/// a: numeric tensor.
/// b: same dtype as a; shape broadcasts with a's.
/// Gives y: the broadcast shape.
Value minimum(Value a, Value b, const Loc& loc = Loc::here());

/// x * tanh(softplus(x)) (Misra, 2019).
/// x: float tensor.
/// Gives y: like x.
Value mish(Value x, const Loc& loc = Loc::here());

/// Remainder a - floor(a / b) * b, which has the sign of b, like torch.remainder. Integers modulo 0 are 0.
/// a: numeric tensor.
/// b: same dtype as a; shape broadcasts with a's.
/// Gives y: the broadcast shape.
Value mod(Value a, Value b, const Loc& loc = Loc::here());

/// Squared error (x - target)^2.
/// x: float tensor.
/// target: same type as x.
/// attrs.reduction: "none", or "mean" or "sum" over all elements of the loss.
/// Gives loss: same type as x, or a scalar.
struct MseLossAttrs { std::string reduction = "none"; };
Value mse_loss(Value x, Value target, const MseLossAttrs& attrs = {}, const Loc& loc = Loc::here());

/// a * b.
/// a: numeric tensor.
/// b: same dtype as a; shape broadcasts with a's.
/// Gives y: the broadcast shape.
Value mul(Value a, Value b, const Loc& loc = Loc::here());

/// -x.
/// x: numeric tensor.
/// Gives y: like x.
Value neg(Value x, const Loc& loc = Loc::here());

/// Negative log-likelihood -weight[label] * x[label] of each row of log-probabilities x. A label out of range raises an error. With weight or ignore_index, a mean divides by the sum of the weights of the rows; such a mean does not decompose into micro-batches or ranks.
/// x: float log-probabilities, C classes along `axis`.
/// label: integer class indices, x's shape without C.
/// weight: weight of each class [C], x's dtype.
/// attrs.axis: axis of the classes; negative: counted from the end.
/// attrs.ignore_index: label of rows whose loss and weight are 0; empty: none.
/// attrs.reduction: "none", or "mean" or "sum" over all elements of the loss.
/// Gives loss: one value per row, or a scalar.
struct NllLossAttrs { int64_t axis = -1; Ints ignore_index = {}; std::string reduction = "none"; };
Value nll_loss(Value x, Value label, const NllLossAttrs& attrs = {}, const Loc& loc = Loc::here());
Value nll_loss(Value x, Value label, Value weight, const NllLossAttrs& attrs = {}, const Loc& loc = Loc::here());

/// L1 norm along `axes`: the sum of absolute values. The gradient of an element that is 0 is 0.
/// x: float tensor.
/// attrs.axes: axes to reduce; negative: counted from the end; empty: all.
/// attrs.keep_dims: keeps the reduced axes with extent 1.
/// Gives y: x's dtype.
struct NormL1Attrs { Ints axes = {}; bool keep_dims = false; };
Value norm_l1(Value x, const NormL1Attrs& attrs = {}, const Loc& loc = Loc::here());

/// L2 norm along `axes`: the square root of the sum of squares. The gradient of a norm that is 0 is 0.
/// x: float tensor.
/// attrs.axes: axes to reduce; negative: counted from the end; empty: all.
/// attrs.keep_dims: keeps the reduced axes with extent 1.
/// Gives y: x's dtype.
struct NormL2Attrs { Ints axes = {}; bool keep_dims = false; };
Value norm_l2(Value x, const NormL2Attrs& attrs = {}, const Loc& loc = Loc::here());

/// Whether a != b.
/// a: any tensor.
/// b: same dtype as a; shape broadcasts with a's.
/// Gives y: bool, the broadcast shape.
Value not_equal(Value a, Value b, const Loc& loc = Loc::here());

/// One-hot encoding of class indices: 1 at the index, 0 elsewhere. A label out of range gives a row of zeros.
/// label: integer tensor.
/// attrs.to: type of the result, whose shape is label's shape followed by the number of classes (required).
/// Gives y: of type `to`.
struct OneHotAttrs { Required<Type> to; };
Value one_hot(Value label, const OneHotAttrs& attrs, const Loc& loc = Loc::here());

/// Pads x: `low` values before, `high` values after and `interior` values between the elements. The values are `value`, the elements mirrored at the first and the last one (reflect), or the first and the last element (edge).
/// x: numeric tensor.
/// attrs.low: one number per dimension; empty: 0.
/// attrs.high: one number per dimension; empty: 0.
/// attrs.interior: one number per dimension; empty: 0.
/// attrs.value: padding value of mode "constant".
/// attrs.mode: "constant", "reflect" (padding below the extent) or "edge" (PyTorch's replicate); the last two take no interior padding.
/// Gives y: x's dtype and rank.
struct PadAttrs { Ints low = {}; Ints high = {}; Ints interior = {}; double value = 0.0; std::string mode = "constant"; };
Value pad(Value x, const PadAttrs& attrs = {}, const Loc& loc = Loc::here());

/// Exponential of the mean of -log(softmax(x)[label]) over the rows of the epoch, without the rows whose label is ignore_index.
/// x: float logits [..., C].
/// label: integer class indices, x's shape without C.
/// attrs.ignore_index: label to ignore; empty: none.
/// Gives statistics: f64 [2]: sum of the losses, number of rows that count.
struct PerplexityAttrs { Ints ignore_index = {}; };
Value perplexity(Value x, Value label, const PerplexityAttrs& attrs = {}, const Loc& loc = Loc::here());

/// a to the power of b.
/// a: float tensor.
/// b: same dtype as a; shape broadcasts with a's.
/// Gives y: the broadcast shape.
Value pow(Value a, Value b, const Loc& loc = Loc::here());

/// TP / (TP + FP), where TP, FP and FN are the true positives, false positives and false negatives of a class; 0 if the divisor is 0. The predicted class is the argmax of the scores, as in accuracy. Equals scikit-learn's function of this purpose over the whole epoch.
/// x: float scores [..., C], or [...]: scores of class 1 of two classes.
/// label: integer class indices [...].
/// attrs.average: binary: the score of class 1 of two classes. micro: the score of the counts of all classes. macro: the mean over the classes that occur among the labels or predictions. weighted: their mean, weighted by the number of labels.
/// attrs.threshold: without a class axis, larger scores predict class 1.
/// Gives statistics: f64 [C, C]: number of samples by label and predicted class.
struct PrecisionAttrs { std::string average = "macro"; double threshold = 0.0; };
Value precision(Value x, Value label, const PrecisionAttrs& attrs = {}, const Loc& loc = Loc::here());

/// x where x is positive, else weight * x (He et al., "Delving deep into rectifiers", 2015).
/// x: float tensor.
/// weight: same dtype as x: one number, or [C] along axis 1 of x.
/// Gives y: like x.
Value prelu(Value x, Value weight, const Loc& loc = Loc::here());

/// Product along `axes`; 1 over zero elements. Floats accumulate in f32 or wider. Bools are multiplied as 0 and 1. The gradient is exact where elements are 0, the second derivative is not: use `cumprod` for it.
/// x: any tensor.
/// attrs.axes: axes to reduce; negative: counted from the end; empty: all.
/// attrs.keep_dims: keeps the reduced axes with extent 1.
/// Gives y: x's dtype; i64 if x is bool.
struct ProdAttrs { Ints axes = {}; bool keep_dims = false; };
Value prod(Value x, const ProdAttrs& attrs = {}, const Loc& loc = Loc::here());

/// Converts floats to 8-bit integers: round(x / scale) + zero_point, which saturates at the limits of the dtype, like ONNX's QuantizeLinear. Halves round to the even integer. NaN becomes 0, but any integer in the result of a convolution or product of 8-bit integers. For inference only.
/// x: float tensor.
/// scale: x's dtype, positive; one element, or one per index of `axis`.
/// zero_point: of dtype `to`; the integer for 0; one element, or one per index of `axis`; absent: 0.
/// attrs.to: gives the dtype of the result, i8 or u8; its shape is ignored (required).
/// attrs.axis: axis of scale and zero_point; negative counts from the end.
/// Gives y: x's shape.
struct QuantizeAttrs { Required<Type> to; int64_t axis = 1; };
Value quantize(Value x, Value scale, const QuantizeAttrs& attrs, const Loc& loc = Loc::here());
Value quantize(Value x, Value scale, Value zero_point, const QuantizeAttrs& attrs, const Loc& loc = Loc::here());

/// Coefficient of determination, as sklearn.metrics.r2_score: 1 minus the sum of squared errors divided by the sum of squared differences of the targets from their mean. The mean over the outputs [D...]. Targets whose mean is 1e6 times their deviation lose 4 digits.
/// prediction: float tensor [N] or [N, D...].
/// target: of prediction's type.
/// Gives statistics: f64 [3 D + 1]: sums of squared errors, of targets and of squared targets by output; N.
Value r2_score(Value prediction, Value target, const Loc& loc = Loc::here());

/// TP / (TP + FN), where TP, FP and FN are the true positives, false positives and false negatives of a class; 0 if the divisor is 0. The predicted class is the argmax of the scores, as in accuracy. Equals scikit-learn's function of this purpose over the whole epoch.
/// x: float scores [..., C], or [...]: scores of class 1 of two classes.
/// label: integer class indices [...].
/// attrs.average: binary: the score of class 1 of two classes. micro: the score of the counts of all classes. macro: the mean over the classes that occur among the labels or predictions. weighted: their mean, weighted by the number of labels.
/// attrs.threshold: without a class axis, larger scores predict class 1.
/// Gives statistics: f64 [C, C]: number of samples by label and predicted class.
struct RecallAttrs { std::string average = "macro"; double threshold = 0.0; };
Value recall(Value x, Value label, const RecallAttrs& attrs = {}, const Loc& loc = Loc::here());

/// 1 / x.
/// x: float tensor.
/// Gives y: like x.
Value reciprocal(Value x, const Loc& loc = Loc::here());

/// max(x, 0).
/// x: float tensor.
/// Gives y: like x.
Value relu(Value x, const Loc& loc = Loc::here());

/// min(max(x, 0), 6).
/// x: float tensor.
/// Gives y: like x.
Value relu6(Value x, const Loc& loc = Loc::here());

/// Gives x's elements, in row-major order, a new shape.
/// x: any tensor.
/// attrs.to: gives the shape of the result; its dtype is ignored (required).
/// Gives y: x's dtype.
struct ReshapeAttrs { Required<Type> to; };
Value reshape(Value x, const ReshapeAttrs& attrs, const Loc& loc = Loc::here());

/// Resizes images, like torch.nn.functional.interpolate. Along each axis, `mode` nearest reads element floor(i in / out); bilinear and bicubic (coefficient -0.75) interpolate at (i + 1/2) in / out - 1/2, or with align_corners at i (in - 1) / (out - 1).
/// x: float [N, C, H, W].
/// attrs.output: output size: one number, or height and width (required).
/// attrs.mode: nearest, bilinear or bicubic.
/// attrs.align_corners: whether the corner elements of x and y coincide; not in mode nearest.
/// Gives y: [N, C, OH, OW].
struct Resize2dAttrs { Required<Ints> output; std::string mode = "nearest"; bool align_corners = false; };
Value resize2d(Value x, const Resize2dAttrs& attrs, const Loc& loc = Loc::here());

/// Area under the ROC curve, as sklearn.metrics.roc_auc_score, exact over the whole epoch: scores and labels of all samples stay in host memory, 8 bytes each. With more than two `classes`, the mean over the classes, each against the rest (multi_class="ovr", average="macro"). NaN if a class has no sample, a label is no class or a score is NaN.
/// score: float [N]: scores of class 1; or [N, classes]: scores, such as probabilities, of more than two classes.
/// label: integer [N]: class indices.
/// attrs.classes: number of classes.
/// Gives statistics: f64 [N, 1 + scores of a sample]: scores and label.
struct RocAucAttrs { int64_t classes = 2; };
Value roc_auc(Value score, Value label, const RocAucAttrs& attrs = {}, const Loc& loc = Loc::here());

/// Moves the elements by `shifts` places along `axes`. Elements that leave at the end enter at the beginning.
/// x: any tensor.
/// attrs.shifts: number of places per axis, of either sign (required).
/// attrs.axes: axes, not the batch dimension; negative: counted from the end (required).
/// Gives y: like x.
struct RollAttrs { Required<Ints> shifts; Required<Ints> axes; };
Value roll(Value x, const RollAttrs& attrs, const Loc& loc = Loc::here());

/// Square root of the mean of (prediction - target)^2 over all elements of the epoch.
/// prediction: float tensor.
/// target: of prediction's type.
/// Gives statistics: f64 [2]: sum over the elements, number of elements.
Value root_mean_squared_error(Value prediction, Value target, const Loc& loc = Loc::here());

/// Rotary position embedding (RoFormer; Su et al., 2021): rotates pair i of the elements at position t by the angle t * theta^(-2 i / R), where R is the number of rotated elements. Angles are computed in f32 or wider.
/// x: float [..., T, D], such as queries or keys.
/// position: integer [..., T], broadcast to x; omitted: 0, 1, ..., T - 1.
/// attrs.theta: base of the angles.
/// attrs.interleaved: true: pairs are neighbours (GPT-J); false: element i is paired with i + R / 2 (Llama).
/// attrs.dims: R, the leading elements that are rotated; 0: all.
/// Gives y: same type as x.
struct RotaryEmbeddingAttrs { double theta = 10000.0; bool interleaved = false; int64_t dims = 0; };
Value rotary_embedding(Value x, const RotaryEmbeddingAttrs& attrs = {}, const Loc& loc = Loc::here());
Value rotary_embedding(Value x, Value position, const RotaryEmbeddingAttrs& attrs = {}, const Loc& loc = Loc::here());

/// x rounded to the nearest integer, and halves to the even one. Its gradient is 0.
/// x: float tensor.
/// Gives y: like x.
Value round(Value x, const Loc& loc = Loc::here());

/// 1 / sqrt(x).
/// x: float tensor.
/// Gives y: like x.
Value rsqrt(Value x, const Loc& loc = Loc::here());

/// x with updates along `axis`: y[..., index[..., t, ...], ...] is combined with updates[..., t, ...] in ascending order of t, like torch.Tensor.scatter and ScatterElements of ONNX. An index out of range raises an error.
/// x: numeric tensor.
/// index: integer, x's rank; besides `axis`, no extent above x's.
/// updates: x's dtype, index's shape.
/// attrs.axis: axis that the index addresses, not the batch dimension; negative: counted from the end.
/// attrs.reduce: "none": the last update of an element counts, and gradients require distinct indices; "add", "mul", "max", "min".
/// Gives y: same type as x.
struct ScatterAttrs { int64_t axis = 0; std::string reduce = "none"; };
Value scatter(Value x, Value index, Value updates, const ScatterAttrs& attrs = {}, const Loc& loc = Loc::here());

/// x with updates at the indices, as ScatterND of ONNX: y[b..., i_1, ..., i_K, s...] with i_k = index[b..., p..., k] is combined with updates[b..., p..., s...] in ascending order of p. An index out of range raises an error.
/// x: numeric tensor [batch..., indexed..., slice...].
/// index: integer tensor [batch..., positions..., K].
/// updates: x's dtype, [batch..., positions..., slice...].
/// attrs.batch_dims: number of leading dimensions of x and index that correspond to each other.
/// attrs.reduce: "none": the last update of an element counts, and gradients require distinct indices; "add", "mul", "max", "min".
/// Gives y: same type as x.
struct ScatterNdAttrs { int64_t batch_dims = 0; std::string reduce = "none"; };
Value scatter_nd(Value x, Value index, Value updates, const ScatterNdAttrs& attrs = {}, const Loc& loc = Loc::here());

/// Sums of the slices of x that have one segment id, as unsorted_segment_sum of TensorFlow: y[s, k...] is the sum of x[i..., k...] over all i with ids[i...] = s. The ids need not be sorted. A slice whose id is out of range is dropped.
/// x: float tensor.
/// ids: integer tensor; its shape is the beginning of x's shape.
/// attrs.segments: number of segments (required).
/// Gives y: x's dtype, [segments, k...].
struct SegmentSumAttrs { Required<int64_t> segments; };
Value segment_sum(Value x, Value ids, const SegmentSumAttrs& attrs, const Loc& loc = Loc::here());

/// 1.0507 * elu(x) with alpha = 1.6733, which keeps mean 0 and variance 1 over layers (Klambauer et al., 2017).
/// x: float tensor.
/// Gives y: like x.
Value selu(Value x, const Loc& loc = Loc::here());

/// 1 / (1 + exp(-x)).
/// x: float tensor.
/// Gives y: like x.
Value sigmoid(Value x, const Loc& loc = Loc::here());

/// 1 where x is positive, -1 where it is negative, else 0. Its gradient is 0.
/// x: numeric tensor.
/// Gives y: like x.
Value sign(Value x, const Loc& loc = Loc::here());

/// x * sigmoid(x), also called swish.
/// x: float tensor.
/// Gives y: like x.
Value silu(Value x, const Loc& loc = Loc::here());

/// The sine of x in radians; NaN for infinities.
/// x: float tensor.
/// Gives y: like x.
Value sin(Value x, const Loc& loc = Loc::here());

/// The hyperbolic sine.
/// x: float tensor.
/// Gives y: like x.
Value sinh(Value x, const Loc& loc = Loc::here());

/// Strided slice: elements starts, starts + steps, ... before stops along `axes`. A negative step runs backwards, and `stops` then lies below `starts`.
/// x: any tensor.
/// attrs.starts: first index per axis, clamped; negative: counted from the end (required).
/// attrs.stops: end index per axis, exclusive and clamped; negative: counted from the end, so that only an index below minus the extent includes element 0 in a backward slice (required).
/// attrs.steps: step per axis, not 0; empty: 1.
/// attrs.axes: axes to slice; empty: the leading axes.
/// Gives y: x's dtype and rank.
struct SliceAttrs { Required<Ints> starts; Required<Ints> stops; Ints steps = {}; Ints axes = {}; };
Value slice(Value x, const SliceAttrs& attrs, const Loc& loc = Loc::here());

/// Smooth L1 loss (Girshick, 2015): (x - target)^2 / (2 beta) where |x - target| < beta, and |x - target| - beta / 2 elsewhere.
/// x: float tensor.
/// target: same type as x.
/// attrs.beta: error at which the loss becomes linear; 0: l1_loss.
/// attrs.reduction: "none", or "mean" or "sum" over all elements of the loss.
/// Gives loss: same type as x, or a scalar.
struct SmoothL1LossAttrs { double beta = 1.0; std::string reduction = "none"; };
Value smooth_l1_loss(Value x, Value target, const SmoothL1LossAttrs& attrs = {}, const Loc& loc = Loc::here());

/// exp(x) normalised to sum 1 along `axis`.
/// x: float tensor, rank >= 1.
/// attrs.axis: axis to normalise; negative: counted from the end.
/// Gives y: same type as x.
struct SoftmaxAttrs { int64_t axis = -1; };
Value softmax(Value x, const SoftmaxAttrs& attrs = {}, const Loc& loc = Loc::here());

/// Cross-entropy of softmax(x) and the target, per row: -weight[label] * log(softmax(x)[label]) for class indices, -sum(weight * target * log(softmax(x))) for probabilities. It is cross_entropy of PyTorch. A label out of range raises an error. With class indices and weight or ignore_index, a mean divides by the sum of the weights of the rows; such a mean does not decompose into micro-batches or ranks.
/// x: float logits, C classes along `axis`.
/// target: integer class indices of x's shape without C, or probabilities of x's type.
/// weight: weight of each class [C], x's dtype.
/// attrs.axis: axis of the classes; negative: counted from the end.
/// attrs.ignore_index: label of rows whose loss and weight are 0; empty: none.
/// attrs.reduction: "none", or "mean" or "sum" over all elements of the loss.
/// attrs.label_smoothing: in [0, 1]: share of the uniform distribution in the target distribution.
/// Gives loss: one value per row, or a scalar.
struct SoftmaxCrossEntropyAttrs { int64_t axis = -1; Ints ignore_index = {}; std::string reduction = "none"; double label_smoothing = 0.0; };
Value softmax_cross_entropy(Value x, Value target, const SoftmaxCrossEntropyAttrs& attrs = {}, const Loc& loc = Loc::here());
Value softmax_cross_entropy(Value x, Value target, Value weight, const SoftmaxCrossEntropyAttrs& attrs = {}, const Loc& loc = Loc::here());

/// log(1 + exp(`beta` * x)) / `beta`, or x where `beta` * x is above `threshold`.
/// x: float tensor.
/// attrs.beta: sharpness; not 0.
/// attrs.threshold: the function is linear above it.
/// Gives y: like x.
struct SoftplusAttrs { double beta = 1.0; double threshold = 20.0; };
Value softplus(Value x, const SoftplusAttrs& attrs = {}, const Loc& loc = Loc::here());

/// x / (1 + |x|).
/// x: float tensor.
/// Gives y: like x.
Value softsign(Value x, const Loc& loc = Loc::here());

/// Sorts along `axis`; equal elements keep their order, and NaN counts as the largest value, as in torch.sort with stable=True. The gradient of a value goes to the element that it comes from.
/// x: numeric tensor, rank >= 1.
/// attrs.axis: axis to sort along, not the batch dimension; negative: counted from the end.
/// attrs.descending: whether the largest value comes first.
/// Gives value: same type as x.
/// Gives index: i64, x's shape: indices along the axis.
struct SortAttrs { int64_t axis = -1; bool descending = false; };
Values sort(Value x, const SortAttrs& attrs = {}, const Loc& loc = Loc::here());

/// Splits x along `axis` into slices of extents `sizes`.
/// x: any tensor.
/// attrs.sizes: extent of each result along `axis` (required).
/// attrs.axis: axis to split, not the batch dimension; negative: counted from the end.
/// Gives ys: x's dtype and rank.
struct SplitAttrs { Required<Ints> sizes; int64_t axis = 0; };
Values split(Value x, const SplitAttrs& attrs, const Loc& loc = Loc::here());

/// Square root of x; NaN below 0.
/// x: float tensor.
/// Gives y: like x.
Value sqrt(Value x, const Loc& loc = Loc::here());

/// x * x.
/// x: numeric tensor.
/// Gives y: like x.
Value square(Value x, const Loc& loc = Loc::here());

/// Removes those of the dimensions `axes` that have extent 1.
/// x: any tensor.
/// attrs.axes: dimensions to remove; negative: counted from the end; empty: all.
/// Gives y: x's dtype.
struct SqueezeAttrs { Ints axes = {}; };
Value squeeze(Value x, const SqueezeAttrs& attrs = {}, const Loc& loc = Loc::here());

/// Joins the operands along a new dimension `axis`.
/// xs: tensors of one type.
/// attrs.axis: index of the new dimension in the result; negative: counted from the end.
/// Gives y: dtype of the operands, their rank + 1.
struct StackAttrs { int64_t axis = 0; };
Value stack(const Values& xs, const StackAttrs& attrs = {}, const Loc& loc = Loc::here());

/// Standard deviation along `axes`: the square root of `var`. Its gradient is 0 where it is 0.
/// x: float tensor.
/// attrs.axes: axes to reduce; negative: counted from the end; empty: all.
/// attrs.keep_dims: keeps the reduced axes with extent 1.
/// attrs.correction: subtracted from the number of elements in the divisor; 0: biased variance.
/// Gives y: x's dtype.
struct StdAttrs { Ints axes = {}; bool keep_dims = false; int64_t correction = 1; };
Value std(Value x, const StdAttrs& attrs = {}, const Loc& loc = Loc::here());

/// x, without a gradient, like torch.Tensor.detach.
/// x: any tensor.
/// Gives y: like x.
Value stop_gradient(Value x, const Loc& loc = Loc::here());

/// a - b.
/// a: numeric tensor.
/// b: same dtype as a; shape broadcasts with a's.
/// Gives y: the broadcast shape.
Value sub(Value a, Value b, const Loc& loc = Loc::here());

/// Sum along `axes`; 0 over zero elements. Floats accumulate in f32 or wider. Bools are counted.
/// x: any tensor.
/// attrs.axes: axes to reduce; negative: counted from the end; empty: all.
/// attrs.keep_dims: keeps the reduced axes with extent 1.
/// Gives y: x's dtype; i64 if x is bool.
struct SumAttrs { Ints axes = {}; bool keep_dims = false; };
Value sum(Value x, const SumAttrs& attrs = {}, const Loc& loc = Loc::here());

/// Elements of x at the indices along `axis`, as numpy.take_along_axis, torch.gather and GatherElements of ONNX: y[i..., t, k...] = x[i..., index[i..., t, k...], k...]. An index out of range raises an error.
/// x: any tensor, rank >= 1.
/// index: integer, x's rank; besides `axis`, no extent above x's.
/// attrs.axis: axis that the index addresses, not the batch dimension; negative: counted from the end.
/// Gives y: x's dtype, index's shape.
struct TakeAlongAxisAttrs { int64_t axis = -1; };
Value take_along_axis(Value x, Value index, const TakeAlongAxisAttrs& attrs = {}, const Loc& loc = Loc::here());

/// The tangent of x in radians; NaN for infinities.
/// x: float tensor.
/// Gives y: like x.
Value tan(Value x, const Loc& loc = Loc::here());

/// The hyperbolic tangent.
/// x: float tensor.
/// Gives y: like x.
Value tanh(Value x, const Loc& loc = Loc::here());

/// Repeats x `repeats` times along each dimension. Repeats beyond x's rank add leading dimensions; missing ones are 1 for the leading dimensions.
/// x: any tensor.
/// attrs.repeats: number of repetitions of the trailing dimensions; 1 for the batch dimension (required).
/// Gives y: x's dtype.
struct TileAttrs { Required<Ints> repeats; };
Value tile(Value x, const TileAttrs& attrs, const Loc& loc = Loc::here());

/// Fraction of rows whose label is among the k classes of the largest scores. Of equal scores, that of the lower class is larger.
/// x: float scores [..., C].
/// label: integer class indices, x's shape without C.
/// attrs.k: number of classes that count.
/// Gives statistics: f64 [2]: number of such rows, number of rows.
struct TopKAccuracyAttrs { int64_t k = 5; };
Value top_k_accuracy(Value x, Value label, const TopKAccuracyAttrs& attrs = {}, const Loc& loc = Loc::here());

/// The k largest or smallest elements along `axis` and their indices, like torch.topk and TopK of ONNX. Among equal elements those of smaller index are taken. NaN counts as the largest value.
/// x: numeric tensor, rank >= 1.
/// attrs.k: number of elements to take (required).
/// attrs.axis: axis to take elements along, not the batch dimension; negative: counted from the end.
/// attrs.largest: whether to take the largest elements, or the smallest.
/// attrs.sorted: true: the best element comes first; false: elements keep the order of x.
/// Gives value: x's dtype, extent k along `axis`.
/// Gives index: i64, value's shape: indices along the axis.
struct TopkAttrs { Required<int64_t> k; int64_t axis = -1; bool largest = true; bool sorted = true; };
Values topk(Value x, const TopkAttrs& attrs, const Loc& loc = Loc::here());

/// Permutes the dimensions of x.
/// x: any tensor.
/// attrs.perm: dimension d of y is dimension perm[d] of x; empty: reversed order.
/// Gives y: x's dtype.
struct TransposeAttrs { Ints perm = {}; };
Value transpose(Value x, const TransposeAttrs& attrs = {}, const Loc& loc = Loc::here());

/// The lower triangle of each matrix: elements above `diagonal` are 0.
/// x: any tensor [..., M, N].
/// attrs.diagonal: column minus row of the diagonal that bounds the triangle; 0: the main one.
/// Gives y: like x.
struct TrilAttrs { int64_t diagonal = 0; };
Value tril(Value x, const TrilAttrs& attrs = {}, const Loc& loc = Loc::here());

/// max(0, d(anchor, positive) - d(anchor, negative) + margin) of each row, where d(a, b) is the Lp norm of a - b + eps (Balntas et al., 2016).
/// anchor: float rows [..., D].
/// positive: same type as anchor.
/// negative: same type as anchor.
/// attrs.margin: difference of the distances from which on the loss is 0.
/// attrs.p: 1: L1 norm; 2: L2 norm.
/// attrs.eps: added to each difference.
/// attrs.swap: replaces d(anchor, negative) by d(positive, negative) where that is smaller.
/// attrs.reduction: "none", or "mean" or "sum" over all elements of the loss.
/// Gives loss: one value per row, or a scalar.
struct TripletMarginLossAttrs { double margin = 1.0; int64_t p = 2; double eps = 1e-06; bool swap = false; std::string reduction = "none"; };
Value triplet_margin_loss(Value anchor, Value positive, Value negative, const TripletMarginLossAttrs& attrs = {}, const Loc& loc = Loc::here());

/// The upper triangle of each matrix: elements below `diagonal` are 0.
/// x: any tensor [..., M, N].
/// attrs.diagonal: column minus row of the diagonal that bounds the triangle; 0: the main one.
/// Gives y: like x.
struct TriuAttrs { int64_t diagonal = 0; };
Value triu(Value x, const TriuAttrs& attrs = {}, const Loc& loc = Loc::here());

/// x rounded towards 0. Its gradient is 0.
/// x: float tensor.
/// Gives y: like x.
Value trunc(Value x, const Loc& loc = Loc::here());

/// The windows of x as columns (im2col), like torch.nn.functional.unfold: y[n, (c, ky, kx), (wy, wx)] is tap (ky, kx) of window (wy, wx) in channel c.
/// x: float [N, C, H, W].
/// attrs.kernel: height and width of the window (required).
/// attrs.stride: step of the window.
/// attrs.padding: zero padding on each side: one number, (height, width), or (top, left, bottom, right).
/// attrs.dilation: distance of the taps of the window.
/// Gives y: x's dtype, [N, C * KH * KW, windows].
struct UnfoldAttrs { Required<Ints> kernel; Ints stride = {1}; Ints padding = {0}; Ints dilation = {1}; };
Value unfold(Value x, const UnfoldAttrs& attrs, const Loc& loc = Loc::here());

/// Inserts dimensions of extent 1.
/// x: any tensor.
/// attrs.axes: indices of the new dimensions in the result; negative: counted from the end (required).
/// Gives y: x's dtype.
struct UnsqueezeAttrs { Required<Ints> axes; };
Value unsqueeze(Value x, const UnsqueezeAttrs& attrs, const Loc& loc = Loc::here());

/// Variance along `axes`: the sum of squared differences from the mean, divided by the number of elements minus `correction`. NaN or infinite if this divisor is not positive.
/// x: float tensor.
/// attrs.axes: axes to reduce; negative: counted from the end; empty: all.
/// attrs.keep_dims: keeps the reduced axes with extent 1.
/// attrs.correction: subtracted from the number of elements in the divisor; 0: biased variance.
/// Gives y: x's dtype.
struct VarAttrs { Ints axes = {}; bool keep_dims = false; int64_t correction = 1; };
Value var(Value x, const VarAttrs& attrs = {}, const Loc& loc = Loc::here());

/// Selects a where `condition` is true, and b elsewhere.
/// condition: bool tensor.
/// a: any tensor.
/// b: same dtype as a.
/// Gives y: a's dtype, the shape that all three broadcast to.
Value where(Value condition, Value a, Value b, const Loc& loc = Loc::here());

}  // namespace fluid
