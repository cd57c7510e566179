#include "tests/support/random_vocabulary.h"

#include <functional>

#include "frontend/layers.h"
#include "frontend/recurrent.h"
#include "frontend/scan.h"
#include "frontend/transformer.h"
#include "ops/functions.h"
#include "ops/operators.h"

namespace fluid::testing {
namespace {

struct Choice {
  RandomSources& random;
  Value x;
  const std::function<Value(Value)>& partner;

  int64_t axis() const { return random.axis_of(x); }
  bool coin() const { return random.coin(); }
  const Shape& shape() const { return x.shape(); }
  int64_t rank() const { return x.shape().rank(); }
  /// A value of x's shape.
  Value twin() const { return partner(x) + x * 0.5; }
  /// Numbers in (0, 1).
  Value probability(Value v) const { return sigmoid(v); }
  Dim last() const {
    if (x.shape().back().batch) throw UserError("batch");
    return x.shape().back();
  }
  void require_rank(int64_t least) const {
    if (rank() < least) throw UserError("rank");
  }
};

using Make = Value (*)(const Choice&);

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
    [](const Choice& c) { return prelu(c.x, c.random.parameter({1})); },
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

constexpr Make kNormalizations[] = {
    [](const Choice& c) { return layer_norm(c.x, {.axis = -1}); },
    [](const Choice& c) { return rms_norm(c.x, {.axis = -1}); },
    [](const Choice& c) {
      c.require_rank(2);
      return group_norm(c.x, {.groups = 1});
    },
    [](const Choice& c) {
      c.require_rank(3);
      return instance_norm(c.x, {.affine = c.coin()});
    },
    [](const Choice& c) { return lp_normalize(c.x, {.axis = c.axis()}); },
    [](const Choice& c) {
      c.require_rank(2);
      return lrn(c.x, {.size = 3, .alpha = 0.1});
    },
};

constexpr Make kShapes[] = {
    [](const Choice& c) { return transpose(c.x, {.perm = Ints{}}); },
    [](const Choice& c) {
      Ints repeats(c.shape().size(), 1);
      repeats.back() = 2;
      return tile(c.x, {.repeats = repeats});
    },
    [](const Choice& c) {
      return concat({c.x, c.twin()}, {.axis = c.axis()});
    },
    [](const Choice& c) {
      const int64_t size = c.last().size;
      const Values parts = split(c.x, {.sizes = {1, size - 1}, .axis = -1});
      return concat({parts[1], parts[0]}, {.axis = -1});
    },
    [](const Choice& c) {
      const int64_t axis = c.axis();
      return sum(stack({c.x, c.twin()}, {.axis = axis}), {.axes = axis});
    },
    [](const Choice& c) {
      return slice(c.x, {.starts = {c.last().size - 1},
                         .stops = {-c.last().size - 1},
                         .steps = {-2},
                         .axes = {-1}});
    },
    [](const Choice& c) { return flip(c.x, {.axes = {c.axis()}}); },
    [](const Choice& c) { return roll(c.x, {.shifts = {1}, .axes = {c.axis()}}); },
    [](const Choice& c) {
      Ints width(c.shape().size(), 0);
      width.back() = 1;
      return pad(c.x, {.low = width,
                       .high = width,
                       .mode = c.random.one_of<std::string>({"constant", "reflect", "edge"})});
    },
    [](const Choice& c) { return squeeze(unsqueeze(c.x, {.axes = {c.axis()}})); },
    [](const Choice& c) {
      c.require_rank(2);
      return tril(c.x, {.diagonal = 1});
    },
    [](const Choice& c) {
      c.require_rank(2);
      return triu(c.x);
    },
    [](const Choice& c) {
      return masked_fill(c.x, greater(c.x, scalar_like(c.x, 2)), {.value = 2});
    },
    [](const Choice& c) { return flatten(c.x, {.axis = c.axis()}); },
    [](const Choice& c) { return stop_gradient(tanh(c.x)) * c.x; },
};

constexpr Make kIndices[] = {
    [](const Choice& c) { return gather(c.x, c.random.labels({3}, c.last().size), {.axis = -1}); },
    [](const Choice& c) {
      const int64_t rows = c.random.extent();
      return embedding(c.random.parameter({rows, 5}), c.random.labels({kBatch, 2}, rows));
    },
    [](const Choice& c) {
      const int64_t rows = c.random.extent();
      const auto mode = c.random.one_of<std::string>({"sum", "mean", "max"});
      return embedding_bag(c.random.parameter({rows, 3}), c.random.labels({kBatch, 4}, rows),
                           {.mode = mode});
    },
    [](const Choice& c) {
      Shape updates = c.shape();
      updates.back() = 2;
      return index_add(c.x, c.random.labels({2}, c.last().size), c.random.feed(updates),
                       {.axis = -1, .alpha = 0.5});
    },
    [](const Choice& c) {
      const Value index = argsort(stop_gradient(c.twin()), {.axis = -1});
      return scatter(c.x, index, c.twin(),
                     {.axis = -1, .reduce = c.random.one_of<std::string>({"none", "add"})});
    },
    [](const Choice& c) {
      const Value table = c.random.parameter({6, 4});
      const Value place = reshape(c.random.labels({kBatch}, 6), {kBatch, 1});
      return gather_nd(table, place);
    },
    [](const Choice& c) {
      const Value place = reshape(c.random.labels({3}, 6), {3, 1});
      return scatter_nd(c.random.parameter({6, 4}), place, c.random.parameter({3, 4}),
                        {.reduce = c.random.one_of<std::string>({"add", "mul"})});
    },
    [](const Choice& c) {
      const Value p = c.random.parameter({6, 4});
      return segment_sum(p, c.random.labels({6}, 3), {.segments = 3});
    },
};

constexpr Make kLosses[] = {
    [](const Choice& c) { return mse_loss(c.x, c.twin()); },
    [](const Choice& c) { return l1_loss(c.x, c.twin()); },
    [](const Choice& c) { return smooth_l1_loss(c.x, c.twin()); },
    [](const Choice& c) { return huber_loss(c.x, c.twin(), {.delta = 0.5}); },
    [](const Choice& c) { return kl_div(log_softmax(c.x), stop_gradient(softmax(c.twin()))); },
    [](const Choice& c) { return hinge_loss(c.x, stop_gradient(tanh(c.twin()))); },
    [](const Choice& c) {
      return binary_cross_entropy_with_logits(c.x, stop_gradient(sigmoid(c.twin())));
    },
    [](const Choice& c) { return focal_loss(c.x, stop_gradient(sigmoid(c.twin()))); },
    [](const Choice& c) {
      return binary_cross_entropy(sigmoid(c.x), stop_gradient(sigmoid(c.twin())));
    },
    [](const Choice& c) {
      const Shape rows(c.shape().begin(), c.shape().end() - 1);
      return nll_loss(log_softmax(c.x), c.random.labels(rows, c.last().size),
                      {.ignore_index = {0}});
    },
    [](const Choice& c) {
      const Shape rows(c.shape().begin(), c.shape().end() - 1);
      return softmax_cross_entropy(c.x, c.random.labels(rows, c.last().size),
                                   {.label_smoothing = 0.1});
    },
    [](const Choice& c) {
      c.require_rank(2);
      return dice_loss(sigmoid(c.x), stop_gradient(sigmoid(c.twin())));
    },
    [](const Choice& c) {
      const Shape rows(c.shape().begin(), c.shape().end() - 1);
      const Value side = c.random.labels(rows, 2) * 2 - 1;
      return cosine_embedding_loss(c.x, c.random.parameter({c.last()}) + c.x, side);
    },
    [](const Choice& c) {
      return triplet_margin_loss(c.x, c.twin(), c.random.parameter({c.last()}) + c.x);
    },
};

/// [N, C, D, H, W] of images.
Value volume(const Choice& c) {
  c.require_rank(4);
  return unsqueeze(c.x, {.axes = {2}});
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
      return bilinear(c.x, c.twin(), c.random.parameter({2, c.last(), c.last()}));
    },
    [](const Choice& c) { return linear(c.x, {.units = c.random.extent(), .act = Act::gelu}); },
    [](const Choice& c) {
      c.require_rank(3);
      return conv1d(c.x, {.filters = 3, .kernel = 2, .padding = {1}, .act = Act::silu});
    },
    [](const Choice& c) {
      c.require_rank(3);
      return conv1d_transpose(c.x, {.filters = 2, .kernel = 3, .stride = 2});
    },
    [](const Choice& c) {
      c.require_rank(3);
      return max_pool1d(c.x, {.kernel = 2, .stride = {1}, .ceil_mode = c.coin()});
    },
    [](const Choice& c) {
      c.require_rank(3);
      return avg_pool1d(c.x, {.kernel = 2, .stride = {2}, .ceil_mode = c.coin()});
    },
    [](const Choice& c) {
      c.require_rank(4);
      return conv2d_transpose(c.x, {.filters = 2, .kernel = 2, .stride = 2});
    },
    [](const Choice& c) {
      c.require_rank(4);
      return resize2d(c.x,
                      {.output = {5, 3},
                       .mode = c.random.one_of<std::string>({"nearest", "bilinear", "bicubic"})});
    },
    [](const Choice& c) {
      c.require_rank(4);
      const Value columns = unfold(c.x, {.kernel = {2}});
      const Shape& shape = c.shape();
      return fold(tanh(columns), {.output = {shape[2].size, shape[3].size}, .kernel = {2}});
    },
    [](const Choice& c) {
      c.require_rank(4);
      return adaptive_max_pool2d(c.x, {.output = {2, 3}});
    },
    [](const Choice& c) {
      c.require_rank(3);
      return lp_pool(c.x, {.kernel = {2}, .stride = {1}, .p = 2});
    },
    [](const Choice& c) { return conv3d(volume(c), {.filters = 2, .kernel = 2, .padding = {1}}); },
    [](const Choice& c) {
      return conv3d_transpose(volume(c), {.filters = 2, .kernel = 2, .stride = 2});
    },
    [](const Choice& c) {
      return max_pool3d(volume(c), {.kernel = {1, 2, 2}, .stride = {1}, .padding = {0, 1, 1}});
    },
    [](const Choice& c) { return avg_pool3d(volume(c), {.kernel = {2}, .padding = {1}}); },
    [](const Choice& c) {
      c.require_rank(4);
      return unfold(c.x, {.kernel = {2}, .padding = {1}});
    },
};

/// [N, T, F] of a value of any shape with a batch.
Value sequence(const Choice& c) {
  if (c.rank() != 3 || !c.shape()[0].batch) throw UserError("no sequence");
  return c.x;
}

constexpr Make kSequences[] = {
    [](const Choice& c) {
      return multi_head_attention(sequence(c), {.heads = 1, .causal = c.coin()});
    },
    [](const Choice& c) {
      const Value x = unsqueeze(sequence(c), {.axes = {1}});
      return scaled_dot_product_attention(x, x * 0.5, tanh(x), {.causal = c.coin()});
    },
    [](const Choice& c) { return transformer_block(sequence(c), {.heads = 1, .hidden = 3}); },
    [](const Choice& c) {
      const Value x = unsqueeze(sequence(c), {.axes = {1}});
      const Dim length = c.shape()[1];
      const Value bias =
          alibi(*c.x.op()->graph(), {.type = Type{c.x.dtype(), {1, length, length}, {}}});
      return scaled_dot_product_attention(x, tanh(x), x * 0.5, bias);
    },
    [](const Choice& c) { return rotary_embedding(sequence(c), {.interleaved = c.coin()}); },
    [](const Choice& c) { return positional_encoding(sequence(c)); },
    [](const Choice& c) { return rnn(sequence(c), {.units = 3}).output; },
    [](const Choice& c) {
      return gru(sequence(c), {.units = 2, .bidirectional = c.coin()}).output;
    },
    [](const Choice& c) {
      return lstm(sequence(c), {.units = 3, .layers = 1 + (c.coin() ? 1 : 0)}).output;
    },
    [](const Choice&
           c) {  // a decayed sum of the elements, over one of whose steps the carry is read
      const Value steps = transpose(sequence(c), {.perm = {1, 0, 2}});
      const Value decay = c.random.parameter({c.last()});
      const Value start = sum(c.x, {.axes = 1}) * 0.1;
      const auto result = scan({start}, {steps},
                               [&](const Values& carries, const Values& elements) {
                                 const Value next = tanh(carries[0] * decay + elements[0]);
                                 return ScanStep{{next}, {next * elements[0]}};
                               },
                               {.reverse = c.coin()});
      return transpose(result.collected[0], {.perm = {1, 0, 2}});
    },
};

template <size_t N>
Value pick(const Choice& c, const Make (&makes)[N]) {
  return makes[c.random.below(N)](c);
}

}  // namespace

Value random_op(RandomSources& sources, Value x, const std::function<Value(Value)>& partner) {
  const Choice c{sources, x, partner};
  switch (sources.below(9)) {
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
    default:
      return pick(c, kElementwise);
  }
}

}  // namespace fluid::testing
