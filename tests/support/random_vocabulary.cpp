#include "tests/support/random_vocabulary.h"

#include <algorithm>

#include "frontend/ctc_loss.h"
#include "frontend/layers.h"
#include "frontend/random.h"
#include "frontend/recurrent.h"
#include "frontend/scan.h"
#include "frontend/spectral_norm.h"
#include "frontend/transformer.h"
#include "tests/support/random_choice.h"
#include "tests/support/random_exact.h"
#include "tests/support/random_windows.h"

namespace fluid::testing {
namespace {

/// Smooth functions, with operands in the range in which they are.
constexpr Make kElementwise[] = {
    [](const Choice& c) { return sin(c.x); },
    [](const Choice& c) { return cos(c.x); },
    [](const Choice& c) { return atan(c.x); },
    [](const Choice& c) { return tan(tanh(c.x)); },
    [](const Choice& c) { return sinh(tanh(c.x)); },
    [](const Choice& c) { return cosh(tanh(c.x)); },
    [](const Choice& c) { return asin(tanh(c.x) * 0.9); },
    [](const Choice& c) { return acos(tanh(c.x) * 0.9); },
    [](const Choice& c) { return exp(tanh(c.x)); },
    [](const Choice& c) { return exp2(tanh(c.x)); },
    [](const Choice& c) { return expm1(tanh(c.x)); },
    [](const Choice& c) { return log(square(c.x) + 1.0); },
    [](const Choice& c) { return log2(square(c.x) + 1.0); },
    [](const Choice& c) { return log1p(square(c.x)); },
    [](const Choice& c) { return sqrt(square(c.x) + 1.0); },
    [](const Choice& c) { return rsqrt(square(c.x) + 1.0); },
    [](const Choice& c) { return reciprocal(square(c.x) + 1.0); },
    [](const Choice& c) { return pow(square(c.x) + 0.5, tanh(c.partner(c.x))); },
    [](const Choice& c) { return c.x / (square(c.partner(c.x)) + 1.0); },
    [](const Choice& c) { return clip(c.x, {.min = -1, .max = 1}); },
    [](const Choice& c) { return erf(c.x); },
    [](const Choice& c) {
      c.require_rank(2);
      return prelu(c.x, c.random.parameter({c.coin() ? Dim(1) : Dim(c.extent(1))}));
    },
    [](const Choice& c) { return -c.x - c.partner(c.x); },
    [](const Choice& c) { return softplus(c.x, {.beta = 2}); },
    [](const Choice& c) {
      const Value one = fill(*c.x.op()->graph(), {.type = Type{c.x.dtype(), {1}, {}}, .value = 1});
      return where(is_finite(c.x), c.x, one) + where(is_nan(c.x), one, c.x);
    },
    [](const Choice& c) { return where(is_inf(c.x), c.twin(), tanh(c.x)); },
    [](const Choice& c) { return relu6(c.x); },
    [](const Choice& c) { return leaky_relu(c.x, {.negative_slope = 0.1}); },
    [](const Choice& c) { return elu(c.x); },
    [](const Choice& c) { return selu(c.x); },
    [](const Choice& c) { return celu(c.x, {.alpha = 0.5}); },
    [](const Choice& c) { return gelu(c.x, {.approximate = c.coin() ? "tanh" : "none"}); },
    [](const Choice& c) { return silu(c.x); },
    [](const Choice& c) { return mish(c.x); },
    [](const Choice& c) { return softplus(c.x); },
    [](const Choice& c) { return softsign(c.x); },
    [](const Choice& c) { return hard_sigmoid(c.x); },
    [](const Choice& c) { return hard_swish(c.x); },
    [](const Choice& c) { return log_sigmoid(c.x); },
    // Step functions, with operands away from the steps.
    [](const Choice& c) { return floor(tanh(c.x) * 0.4 + 0.5) + c.x; },
    [](const Choice& c) { return ceil(tanh(c.x) * 0.4 + 0.5) * c.x; },
    [](const Choice& c) { return round(tanh(c.x) * 0.4) + c.x; },
    [](const Choice& c) { return trunc(tanh(c.x) * 0.9) - c.x; },
    [](const Choice& c) {
      const Value one = scalar_like(c.x, 1);
      const QuantizeAttrs to{.to = Type{c.coin() ? i8 : u8, {}, {}}};
      return dequantize(quantize(tanh(c.x) * 0.4, one, to), one) + c.x;
    },
    [](const Choice& c) { return sign(square(c.x) + 1.0) * c.x; },
    [](const Choice& c) { return mod(tanh(c.x) + 2.0, scalar_like(c.x, 4)); },
    [](const Choice& c) {
      const Value outside = logical_or(greater(c.x, scalar_like(c.x, 2)),
                                       logical_not(greater(c.x, scalar_like(c.x, -2))));
      return where(outside, c.twin(), c.x);
    },
    [](const Choice& c) { return cast(cast(c.x, f64) * 0.5, c.x.dtype()); },
};

constexpr Make kReductions[] = {
    [](const Choice& c) { return prod(tanh(c.x), {.axes = c.axis(), .keep_dims = c.coin()}); },
    [](const Choice& c) { return logsumexp(c.x, {.axes = c.axis(), .keep_dims = c.coin()}); },
    [](const Choice& c) { return norm_l1(c.x, {.axes = c.axis(), .keep_dims = c.coin()}); },
    [](const Choice& c) { return norm_l2(c.x, {.axes = c.axis(), .keep_dims = c.coin()}); },
    [](const Choice& c) { return var(c.x, {.axes = c.axis(), .correction = 0}); },
    // The deviation is at least 1/4 (near 0, rounding decides the gradient), and not constant
    // (among equal elements, rounding decides which is the largest).
    [](const Choice& c) {
      const Value t = tanh(c.x);
      return std(stack({t, t * 0.5 + 1.0}, {.axis = 0}),
                 {.axes = {0, c.axis() + 1}, .correction = 0});
    },
    [](const Choice& c) {
      return cumsum(c.x, {.axis = c.axis(), .exclusive = c.coin(), .reverse = c.coin()});
    },
    [](const Choice& c) { return cumprod(tanh(c.x), {.axis = c.axis(), .reverse = c.coin()}); },
    [](const Choice& c) { return sort(c.x, {.axis = c.axis(), .descending = c.coin()})[0]; },
    [](const Choice& c) { return topk(c.x, {.k = 1, .axis = c.axis(), .largest = c.coin()})[0]; },
    [](const Choice& c) {
      const int64_t axis = c.axis();
      return take_along_axis(c.x, argsort(stop_gradient(c.x), {.axis = axis}), {.axis = axis});
    },
    [](const Choice& c) { return log_softmax(c.x, {.axis = c.axis()}); },
};

Value batch_normalized(const Choice& c) {
  c.require_rank(2);
  return batch_norm(c.x, {.act = c.one_of<Act>({Act::none, Act::relu})});
}

constexpr Make kNormalizations[] = {
    batch_normalized,
    [](const Choice& c) {
      return layer_norm(c.x, {.axis = c.axis(), .affine = c.coin(), .bias = c.coin()});
    },
    [](const Choice& c) { return rms_norm(c.x, {.axis = c.axis(), .affine = c.coin()}); },
    [](const Choice& c) {
      c.require_rank(2);
      const int64_t channels = c.extent(1);
      const int64_t groups = c.one_of<int64_t>({1, channels, channels % 2 == 0 ? 2 : 1});
      return group_norm(c.x, {.groups = groups, .affine = c.coin()});
    },
    [](const Choice& c) {
      c.require_rank(3);
      return instance_norm(c.x, {.affine = c.coin()});
    },
    [](const Choice& c) {
      return lp_normalize(c.x, {.axis = c.axis(), .p = c.one_of<int64_t>({1, 2})});
    },
    [](const Choice& c) {
      c.require_rank(2);
      return lrn(c.x, {.size = c.one_of<int64_t>({1, 2, 3}), .alpha = 0.1});
    },
};

constexpr Make kShapes[] = {
    [](const Choice& c) {
      Ints perm;
      for (int64_t d = 0; d < c.rank(); ++d) {
        perm.insert(perm.begin() + static_cast<int64_t>(c.below(perm.size() + 1)), d);
      }
      return transpose(c.x, {.perm = c.coin() ? perm : Ints{}});
    },
    [](const Choice& c) {
      Ints repeats(c.shape().size(), 1);
      repeats[static_cast<size_t>(c.axis())] = 2;
      return tile(c.x, {.repeats = repeats});
    },
    [](const Choice& c) {
      const int64_t axis = c.axis();
      if (c.coin()) return concat({c.x, c.twin()}, {.axis = axis});
      return concat({tanh(c.x), c.x, c.random.feed(c.with_extent(axis, 2))}, {.axis = axis});
    },
    // Compares an index that starts again at each operand of a concatenation.
    [](const Choice& c) {
      const int64_t axis = c.rank() - 1;
      const Type numbers{i64, {c.extent(axis)}, {}};
      const Value i =
          arange(*c.x.op()->graph(), {.type = numbers, .step = c.one_of<double>({1, -1, 3})});
      const Value again = concat({i, i, i}, {.axis = 0});
      const Value bound = scalar_like(again, c.one_of<double>({0, -2, 1, 5}));
      const Value condition = c.coin() ? less(again, bound) : equal(again, bound);
      const Value all = concat({c.x, c.twin(), tanh(c.x)}, {.axis = axis});
      return where(condition, all, all * 0.5);
    },
    [](const Choice& c) {
      const int64_t axis = c.axis(), size = c.extent(axis);
      const Values parts = split(c.x, {.sizes = {1, size - 1}, .axis = axis});
      return concat({parts[1], tanh(parts[0])}, {.axis = axis});
    },
    [](const Choice& c) {
      const int64_t axis = c.axis();
      const Value stacked = stack({c.x, c.twin()}, {.axis = axis});
      return c.coin() ? stacked : sum(stacked, {.axes = axis});
    },
    [](const Choice& c) {
      return slice(c.x, {.starts = {c.last().size - 1},
                         .stops = {-c.last().size - 1},
                         .steps = {-2},
                         .axes = {-1}});
    },
    [](const Choice& c) {
      return slice(c.x, {.starts = {c.one_of<int64_t>({0, 1, -2})},
                         .stops = {c.one_of<int64_t>({100, 3, -1})},
                         .steps = {c.one_of<int64_t>({1, 2, 3})},
                         .axes = {c.axis()}});
    },
    [](const Choice& c) { return flip(c.x, {.axes = {c.axis()}}); },
    [](const Choice& c) {
      return roll(c.x, {.shifts = {c.one_of<int64_t>({1, -2, 7})}, .axes = {c.axis()}});
    },
    [](const Choice& c) {
      const auto axis = static_cast<size_t>(c.axis());
      Ints low(c.shape().size(), 0), high = low, interior = low;
      low[axis] = c.one_of<int64_t>({0, 1, 2});
      high[axis] = c.one_of<int64_t>({0, 1, 3});
      const auto mode = c.one_of<std::string>({"constant", "reflect", "edge"});
      if (mode == "constant") interior[axis] = c.one_of<int64_t>({0, 0, 2});
      return pad(c.x, {.low = low, .high = high, .interior = interior, .value = 0.5, .mode = mode});
    },
    [](const Choice& c) { return squeeze(unsqueeze(c.x, {.axes = {c.axis()}})); },
    [](const Choice& c) {
      c.require_rank(2);
      return tril(c.x, {.diagonal = c.one_of<int64_t>({-1, 0, 1})});
    },
    [](const Choice& c) {
      c.require_rank(2);
      return triu(c.x, {.diagonal = c.one_of<int64_t>({-1, 0, 1})});
    },
    [](const Choice& c) {
      return masked_fill(c.x, greater(c.x, scalar_like(c.x, 2)), {.value = 2});
    },
    [](const Choice& c) { return flatten(c.x, {.axis = c.axis()}); },
    [](const Choice& c) {
      return reshape(c.x, {-1, c.last()});
    },
    [](const Choice& c) { return reshape(c.x, c.with_extent(c.axis(), -1)); },
    [](const Choice& c) { return stop_gradient(tanh(c.x)) * c.x; },
    [](const Choice& c) {
      return broadcast_to(mean(c.x, {.axes = c.axis(), .keep_dims = true}), c.shape());
    },
    [](const Choice& c) {
      const Type positions{c.x.dtype(), {c.last()}, {}};
      return c.x + arange(*c.x.op()->graph(), {.type = positions, .start = -1, .step = 0.25});
    },
};

/// Indices of a permutation of x along the last axis.
Value permutation(const Choice& c) { return argsort(stop_gradient(c.twin()), {.axis = -1}); }

constexpr Make kIndices[] = {
    [](const Choice& c) {
      const int64_t axis = c.axis();
      const Shape shape = c.coin() ? Shape{3} : Shape{2, 2};
      return gather(c.x, c.random.labels(shape, c.extent(axis)), {.axis = axis});
    },
    [](const Choice& c) {
      const int64_t axis = c.axis();
      const Value index = c.random.labels(c.with_extent(axis, 3), c.extent(axis));
      return take_along_axis(c.x, index, {.axis = axis});
    },
    [](const Choice& c) {
      const int64_t rows = c.random.extent();
      return embedding(c.random.parameter({rows, 5}), c.random.labels({kBatch, 2}, rows),
                       {.padding_idx = c.coin() ? Ints{0} : Ints{}});
    },
    [](const Choice& c) {
      const int64_t rows = c.random.extent();
      const Value index = c.random.labels({kBatch, 2}, rows);
      return embedding(index, {.rows = rows, .units = 5, .sparse = true});
    },
    [](const Choice& c) {
      const int64_t rows = c.random.extent();
      const Value index = c.random.labels({kBatch, 4}, rows);
      const Value table = c.random.parameter({rows, 3});
      const Ints padding = c.coin() ? Ints{rows - 1} : Ints{};
      const auto mode = c.one_of<std::string>({"sum", "mean", "max", "weighted"});
      if (mode != "weighted") {
        return embedding_bag(table, index, {.mode = mode, .padding_idx = padding});
      }
      const Value weights = tanh(c.random.feed({kBatch, 4}) + c.random.parameter({4}));
      return embedding_bag(table, index, weights, {.mode = "sum", .padding_idx = padding});
    },
    [](const Choice& c) {
      const int64_t axis = c.axis();
      return index_add(c.x, c.random.labels({2}, c.extent(axis)),
                       tanh(c.random.feed(c.with_extent(axis, 2))), {.axis = axis, .alpha = 0.5});
    },
    [](const Choice& c) {
      return scatter(c.x, permutation(c), c.twin(),
                     {.axis = -1, .reduce = c.one_of<std::string>({"none", "add"})});
    },
    [](const Choice& c) {
      const int64_t axis = c.axis();
      const Value index = c.random.labels(c.shape(), c.extent(axis));
      return scatter(c.x, index, tanh(c.twin()),
                     {.axis = axis, .reduce = c.one_of<std::string>({"add", "mul", "max", "min"})});
    },
    [](const Choice& c) {
      return gather_nd(c.random.parameter({6, 4}), c.random.labels({kBatch, 1}, 6));
    },
    [](const Choice& c) {
      return gather_nd(c.random.parameter({6, 4}), c.random.labels({3, 2}, 4));
    },
    [](const Choice& c) {  // rows of each sample
      c.require_rank(2);
      if (!c.shape()[0].batch) throw UserError("no batch");
      return gather_nd(c.x, c.random.labels({kBatch, 3, 1}, c.extent(1)), {.batch_dims = 1});
    },
    [](const Choice& c) {
      c.require_rank(2);
      if (!c.shape()[0].batch) throw UserError("no batch");
      return scatter_nd(c.x, c.random.labels({kBatch, 2, 1}, c.extent(1)),
                        tanh(c.random.feed(c.with_extent(1, 2))),
                        {.batch_dims = 1, .reduce = c.one_of<std::string>({"add", "mul", "max"})});
    },
    [](const Choice& c) {
      return scatter_nd(c.random.parameter({6, 4}), c.random.labels({3, 1}, 6),
                        c.random.parameter({3, 4}),
                        {.reduce = c.one_of<std::string>({"add", "mul", "max", "min"})});
    },
    [](const Choice& c) {
      return segment_sum(c.random.parameter({6, 4}), c.random.labels({6}, 3), {.segments = 3});
    },
    [](const Choice& c) {  // ids of 2 and 3 are out of range
      return segment_sum(c.x, c.random.labels({c.shape()[0]}, 4), {.segments = 2});
    },
};

/// Weights of the classes along `axis`.
Value class_weights(const Choice& c, int64_t axis) {
  return square(c.random.feed({c.extent(axis)})) + 0.5;
}

constexpr Make kLosses[] = {
    [](const Choice& c) { return mse_loss(c.x, c.twin(), {.reduction = c.reduction()}); },
    [](const Choice& c) { return l1_loss(c.x, c.twin(), {.reduction = c.reduction()}); },
    [](const Choice& c) { return smooth_l1_loss(c.x, c.twin(), {.reduction = c.reduction()}); },
    [](const Choice& c) {
      return huber_loss(c.x, c.twin(), {.delta = 0.5, .reduction = c.reduction()});
    },
    [](const Choice& c) {
      return kl_div(log_softmax(c.x), stop_gradient(softmax(c.twin())),
                    {.reduction = c.reduction()});
    },
    [](const Choice& c) {
      return kl_div(log_softmax(c.x), stop_gradient(log_softmax(c.twin())), {.log_target = true});
    },
    [](const Choice& c) { return hinge_loss(c.x, stop_gradient(tanh(c.twin()))); },
    [](const Choice& c) {
      return binary_cross_entropy_with_logits(c.x, stop_gradient(sigmoid(c.twin())),
                                              {.reduction = c.reduction()});
    },
    [](const Choice& c) {
      return binary_cross_entropy_with_logits(c.x, stop_gradient(sigmoid(c.twin())),
                                              class_weights(c, c.rank() - 1));
    },
    [](const Choice& c) {
      return focal_loss(c.x, stop_gradient(sigmoid(c.twin())),
                        {.alpha = c.one_of<double>({0.25, -1}), .reduction = c.reduction()});
    },
    [](const Choice& c) {
      return binary_cross_entropy(sigmoid(c.x), stop_gradient(sigmoid(c.twin())));
    },
    [](const Choice& c) {
      const int64_t axis = c.axis();
      const Value label = c.random.labels(c.without(axis), c.extent(axis));
      const Value logs = log_softmax(c.x, {.axis = axis});
      const Ints ignored = c.coin() ? Ints{0} : Ints{};
      if (c.coin()) return nll_loss(logs, label, {.axis = axis, .ignore_index = ignored});
      return nll_loss(logs, label, class_weights(c, axis), {.axis = axis, .ignore_index = ignored});
    },
    [](const Choice& c) {
      const int64_t axis = c.axis();
      const Value label = c.random.labels(c.without(axis), c.extent(axis));
      const double smoothing = c.one_of<double>({0, 0.1});
      if (c.coin()) {
        return softmax_cross_entropy(c.x, label, {.axis = axis, .label_smoothing = smoothing});
      }
      return softmax_cross_entropy(c.x, label, class_weights(c, axis),
                                   {.axis = axis, .label_smoothing = smoothing});
    },
    [](const Choice& c) {
      const int64_t axis = c.axis();
      return softmax_cross_entropy(c.x, stop_gradient(softmax(c.twin(), {.axis = axis})),
                                   {.axis = axis, .reduction = c.reduction()});
    },
    [](const Choice& c) {
      c.require_rank(2);
      return dice_loss(sigmoid(c.x), stop_gradient(sigmoid(c.twin())));
    },
    [](const Choice& c) {
      const Value side = c.random.labels(c.without(c.rank() - 1), 2) * 2 - 1;
      return cosine_embedding_loss(c.x, c.random.parameter({c.last()}) + c.x, side);
    },
    [](const Choice& c) {
      return triplet_margin_loss(c.x, c.twin(), c.random.parameter({c.last()}) + c.x,
                                 {.p = c.one_of<int64_t>({1, 2}), .swap = c.coin()});
    },
};

/// Matrices whose products have at most one batch dimension.
void require_matrices(const Choice& c) {
  c.require_rank(2);
  for (const int64_t axis : {c.rank() - 2, c.rank() - 1}) c.extent(axis);
}

constexpr Make kProducts[] = {
    [](const Choice& c) {
      return einsum({c.x, c.random.parameter({c.last(), 3})}, {.equation = "...i,ij->...j"});
    },
    [](const Choice& c) {
      c.require_rank(2);
      return einsum({c.x, c.twin()}, {.equation = "...ij,...ij->...i"});
    },
    [](const Choice& c) {
      require_matrices(c);
      return einsum({c.x, tanh(c.twin())},
                    {.equation = c.coin() ? "...ij,...kj->...ik" : "...ij,...ik->...jk"});
    },
    [](const Choice& c) {
      return einsum({c.x, c.random.parameter({2, c.last()}), c.random.parameter({2, 3})},
                    {.equation = "...i,ki,kj->...jk"});
    },
    [](const Choice& c) {
      const Value w = c.random.parameter({2, c.last(), c.last()});
      return c.coin() ? bilinear(c.x, c.twin(), w)
                      : bilinear(c.x, c.twin(), w, c.random.parameter({2}));
    },
    [](const Choice& c) {
      return linear(c.x, {.units = c.random.extent(),
                          .bias = c.coin(),
                          .act = c.one_of<Act>({Act::none, Act::gelu, Act::relu, Act::tanh})});
    },
    [](const Choice& c) {
      require_matrices(c);
      return matmul(c.x, tanh(c.twin()), {.transpose_b = true});
    },
    [](const Choice& c) {
      require_matrices(c);
      return matmul(tanh(c.twin()), c.x, {.transpose_a = true});
    },
    [](const Choice& c) {
      return linear(c.x, {.units = 4,
                          .weight = spectral_norm(c.random.parameter({c.last(), 4}),
                                                  {.dim = c.one_of<int64_t>({0, 1})})});
    },
};

/// [N, T, F] of a value of any shape with a batch.
Value sequence(const Choice& c) {
  if (c.rank() != 3 || !c.shape()[0].batch) throw UserError("no sequence");
  return c.x;
}

/// x with a number of heads that divides its features.
int64_t heads(const Choice& c) {
  const int64_t features = c.extent(2);
  return features % 4 == 0 ? c.one_of<int64_t>({1, 2, 4}) : 1;
}

/// [N, H, T, D]
Value query(const Choice& c) {
  const Value x = sequence(c);
  if (c.coin()) return unsqueeze(x, {.axes = {1}});
  return transpose(reshape(x, {kBatch, c.extent(1), heads(c), -1}), {.perm = {0, 2, 1, 3}});
}

/// A mask that leaves some key to each query.
Value attention_mask(const Choice& c) {
  const Dim length = sequence(c).shape()[1];
  const Shape shape = c.coin() ? Shape{length, length} : Shape{kBatch, 1, length, length};
  if (c.coin()) return cast(c.random.feed(shape), c.x.dtype());
  const Type ones{c.x.dtype(), {length, length}, {}};
  const Value diagonal = tril(triu(fill(*c.x.op()->graph(), {.type = ones, .value = 1})));
  const Value others = c.random.labels(shape, 2);
  return logical_or(greater(diagonal, scalar_like(diagonal, 0)),
                    greater(others, scalar_like(others, 0)));
}

Value sequence_scan(const Choice& c) {  // reads the carries of each step
  const Value steps = transpose(sequence(c), {.perm = {1, 0, 2}});
  const Value decay = c.random.parameter({c.last()});
  const Value mix = c.random.parameter({c.last(), c.last()});
  const Value start = sum(c.x, {.axes = 1}) * 0.1;
  const bool mixes = c.coin(), shares = c.coin();
  const auto result = scan({start, tanh(start)}, {steps},
                           [&](const Values& carries, const Values& elements) {
                             const Value a = tanh(carries[0] * decay + elements[0]);
                             const Value b = mixes ? tanh(matmul(carries[1], mix)) : carries[1];
                             const Value next = shares ? a : sigmoid(b - a);
                             return ScanStep{{next, a}, {next * elements[0], softmax(b)}};
                           },
                           {.reverse = c.coin()});
  return transpose(result.collected[0] + result.collected[1], {.perm = {1, 0, 2}}) +
         unsqueeze(result.carries[1], {.axes = {1}});
}

constexpr Make kSequences[] = {
    [](const Choice& c) {
      return multi_head_attention(sequence(c), {.heads = heads(c), .causal = c.coin()});
    },
    [](const Choice& c) {
      const int64_t all = heads(c);
      return multi_head_attention(sequence(c), {.heads = all,
                                                .key_heads = all > 1 ? all / 2 : 1,
                                                .mask = attention_mask(c),
                                                .attention_dropout = c.one_of<double>({0, 0.2})});
    },
    [](const Choice& c) {
      const Value memory = c.random.feed({kBatch, 3, 6});
      return multi_head_attention(sequence(c), memory, {.heads = heads(c), .bias = c.coin()});
    },
    [](const Choice& c) {
      const Value x = query(c);
      return scaled_dot_product_attention(
          x, x * 0.5, tanh(x), {.causal = c.coin(), .scale = c.one_of<double>({0, 0.3})});
    },
    [](const Choice& c) {
      const Value x = query(c);
      return scaled_dot_product_attention(tanh(x), x, x * 0.5, attention_mask(c),
                                          {.dropout = c.one_of<double>({0, 0.3})});
    },
    [](const Choice& c) {
      return transformer_block(sequence(c), {.heads = heads(c),
                                             .hidden = 3,
                                             .causal = c.coin(),
                                             .norm_first = c.coin(),
                                             .dropout = c.one_of<double>({0, 0.2})});
    },
    [](const Choice& c) {
      const Value x = unsqueeze(sequence(c), {.axes = {1}});
      const Dim length = c.shape()[1];
      const Value bias =
          alibi(*c.x.op()->graph(), {.type = Type{c.x.dtype(), {1, length, length}, {}}});
      return scaled_dot_product_attention(x, tanh(x), x * 0.5, bias);
    },
    [](const Choice& c) {
      const Value x = sequence(c);
      if (c.coin()) return rotary_embedding(x, {.interleaved = c.coin()});
      return rotary_embedding(x, c.random.labels({kBatch, c.shape()[1]}, 50),
                              {.theta = 100, .dims = c.one_of<int64_t>({0, 2})});
    },
    [](const Choice& c) {
      const Value angle = c.random.feed({c.last().size / 2});
      return apply_rotary_embedding(c.x, cos(angle), sin(angle), {.interleaved = c.coin()});
    },
    [](const Choice& c) { return positional_encoding(sequence(c)); },
    [](const Choice& c) { return rnn(sequence(c), {.units = 3, .relu = c.coin()}).output; },
    [](const Choice& c) {
      return gru(sequence(c), {.units = 2, .bidirectional = c.coin()}).output;
    },
    [](const Choice& c) {
      return lstm(sequence(c), {.units = 3,
                                .layers = 1 + (c.coin() ? 1 : 0),
                                .dropout = c.one_of<double>({0, 0.3})})
          .output;
    },
    [](const Choice& c) {
      const Value x = sequence(c);
      const Value lengths = c.random.labels({kBatch}, c.extent(1)) + 1;
      const RecurrentResult result =
          gru(x, {.units = 3, .bidirectional = c.coin(), .lengths = lengths});
      return c.coin() ? result.output : result.states[0];
    },
    sequence_scan,
    [](const Choice& c) {  // targets that have an alignment: half as long as the input
      const Value x = sequence(c);
      const int64_t steps = c.extent(1), classes = c.extent(2), length = (steps + 1) / 2;
      if (classes < 2) throw UserError("only blanks");
      const Value zeros = c.random.labels({kBatch}, 1);
      return ctc_loss(log_softmax(x), c.random.labels({kBatch, length}, classes - 1) + 1,
                      zeros + static_cast<double>(steps), c.random.labels({kBatch}, length + 1),
                      {.reduction = c.reduction()});
    },
};

/// Random numbers, which do not depend on the precision.
constexpr Make kRandom[] = {
    [](const Choice& c) {
      return dropout(c.x, {.p = c.one_of<double>({0, 0.25, 1})});
    },
    [](const Choice& c) {
      c.require_rank(4);
      return dropout2d(c.x, {.p = 0.25});
    },
    [](const Choice& c) {
      using enum StochasticDepth::Mode;
      return stochastic_depth(c.x, {.p = 0.25, .mode = c.one_of({row, batch})});
    },
    [](const Choice& c) { return c.x + random_uniform(c.x, {.low = -1}); },
    [](const Choice& c) { return c.x * random_normal(c.x, {.mean = 1, .std = 0.5}); },
    [](const Choice& c) {
      const Value p = cast(c.random.labels(c.shape(), 5), c.x.dtype()) * 0.25;
      return c.x * bernoulli(p);
    },
    [](const Choice& c) {
      const Value drawn = categorical(c.random.feed({kBatch, 4}));
      return embedding(c.random.parameter({4, 3}), drawn);
    },
};

Value random_differentiable_op(const Choice& c) {
  switch (c.below(8)) {
    case 0:
      return pick(c, kReductions);
    case 1:
      return random_window_op(c);
    case 2:
      return pick(c, kNormalizations);
    case 3:
      return pick(c, kShapes);
    case 4:
      return pick(c, kProducts);
    case 5:
      return pick(c, kSequences);
    case 6:
      return pick(c, kLosses);
    default:
      return pick(c, kElementwise);
  }
}

bool has_attention_dropout(const ir::Graph& graph) {
  return std::ranges::any_of(
      graph.ops, [](const auto& op) { return op->name == "scaled_dot_product_attention_dropout"; });
}

/// The gradient of an op, plus a feed, as a value of the program. It has a gradient itself unless
/// attention with dropout, which has no second derivatives, may be on the way. The gradient of some
/// ops is 0 but for rounding, as that of the sum of a layer norm's output: without the feed, a
/// comparison or a division by a norm would amplify the rounding error.
Value random_derivative(const Choice& c) {
  const Value y = random_differentiable_op(c);
  const Value dx = gradients(y, {c.x})[0];
  const Value gradient = has_attention_dropout(*y.op()->graph()) ? stop_gradient(dx) : dx;
  return gradient + c.random.feed(c.x.shape());
}

}  // namespace

Value random_op(RandomSources& sources, Value x, const std::function<Value(Value)>& partner) {
  const Choice c{sources, x, partner};
  switch (sources.below(15)) {
    case 0:
    case 1:
      return pick(c, kReductions);
    case 2:
      return pick(c, kNormalizations);
    case 3:
      return pick(c, kShapes);
    case 4:
      return pick(c, kIndices);
    case 5:
      return pick(c, kLosses);
    case 6:
      return pick(c, kProducts);
    case 7:
      return pick(c, kSequences);
    case 8:
      return pick(c, kRandom);
    case 9:
    case 10:
      return random_window_op(c);
    case 11:
      return random_exact_op(c);
    case 12:
      return random_tied_op(c);
    case 13:
      return random_derivative(c);
    default:
      return pick(c, kElementwise);
  }
}

}  // namespace fluid::testing
