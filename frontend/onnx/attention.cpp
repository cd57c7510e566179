// Attention and rotary embeddings.

#include <cmath>

#include "frontend/onnx/context.h"
#include "frontend/transformer.h"
#include "ops/operators.h"

namespace fluid::onnx {
namespace {

/// Inputs of Attention.
enum AttentionInput : size_t { kQ, kK, kV, kMask, kPastKey, kPastValue, kLengths };

/// Reshapes [B, T, H * D] to [B, T, H, D] and transposes the result to [B, H, T, D].
Value split_heads(const Context& c, Value x, int64_t heads) {
  if (heads <= 0) c.fail_unsupported("the number of heads is missing");
  const int64_t size = extent(c, x, 2) / heads;
  return transpose(reshape(x, {x.shape()[0], x.shape()[1], heads, size}), {.perm = {0, 2, 1, 3}});
}

Value merge_heads(Value x) {
  const Shape& shape = x.shape();
  const Dim merged = Shape{shape[1], shape[3]}.numel();
  return reshape(transpose(x, {.perm = {0, 2, 1, 3}}), {shape[0], shape[2], merged});
}

/// Returns a && b, or b if a is null.
Value and_also(Value a, Value b) { return a ? logical_and(a, b) : b; }

/// Computes the causal, sliding-window and key padding mask.
class Visibility {
 public:
  Visibility(const Context& c, Value q, Value k)
      : c_(c), t_(extent(c, q, 2)), s_(extent(c, k, 2)) {}

  /// Returns the bool mask [B, 1, T, S] or [T, S] given by `is_causal`, the window sizes and the
  /// key lengths; null if every query attends to all keys. If n keys precede query 0, query i is at
  /// position i + n.
  Value mask() const {
    const int64_t left = c_.int_attr("left_window_size", -1),
                  right = c_.int_attr("right_window_size", -1);
    Value mask;
    if (c_.bool_attr("is_causal", false) || left >= 0 || right >= 0) {
      const Value distance = position() - indices(s_);  // query position - key position
      if (c_.bool_attr("is_causal", false)) mask = not_below(distance, 0);
      if (left >= 0) mask = and_also(mask, not_below(neg(distance), -left));
      if (right >= 0) mask = and_also(mask, not_below(distance, -right));
    }
    if (!c_.has_input(kLengths)) return mask;
    return and_also(mask, less(indices(s_), lengths()));
  }

 private:
  Value indices(int64_t n) const { return arange(c_.graph(), {.type = Type{i64, {n}, {}}}); }
  /// Number of keys of each sequence, excluding padding (nonpad_kv_seqlen), as [B, 1, 1, 1].
  Value lengths() const {
    const Value n = cast(c_.input(kLengths), i64);
    return reshape(n, {n.shape()[0], 1, 1, 1});
  }
  Value position() const {
    const Value i = reshape(indices(t_), {t_, 1});
    if (c_.has_input(kPastKey)) return i + static_cast<double>(extent(c_, c_.input(kPastKey), 2));
    return c_.has_input(kLengths) ? i + (lengths() - static_cast<double>(t_)) : i;
  }
  static Value not_below(Value v, int64_t bound) {
    return greater_equal(v, scalar_like(v, static_cast<double>(bound)));
  }

  const Context& c_;
  int64_t t_, s_;
};

/// Returns the node's attention mask, or null if it has none. Pads the mask to `keys` keys; the
/// added keys are masked out.
Value mask_of(const Context& c, int64_t keys) {
  if (!c.has_input(kMask)) return {};
  const Value mask = c.input(kMask);
  const int64_t missing = keys - extent(c, mask, -1);
  if (missing <= 0) return mask;
  Shape shape = mask.shape();
  shape.back() = missing;
  const double masked_out = mask.dtype() == boolean ? 0 : -double{INFINITY};
  const Value rest = fill(c.graph(), {.type = Type{mask.dtype(), shape, {}}, .value = masked_out});
  return concat({mask, rest}, {.axis = -1});
}

/// Combines the node's bool or additive attention mask with the bool mask `visible`. Both may be
/// null.
Value combined(Value mask, Value visible) {
  if (!mask || !visible) return mask ? mask : visible;
  if (mask.dtype() == boolean) return logical_and(mask, visible);
  return where(visible, mask, scalar_like(mask, -double{INFINITY}));
}

struct Attention {
  Value q, k, v, mask;
  double scale, softcap;
};

/// Attention by primitive ops, for nodes with softcap or the output qk_matmul_output. Returns Y and
/// qk_matmul_output. The attribute qk_matmul_output_mode selects the scaled scores q k^T (0), the
/// scores after softcap (1) or after the mask (2), or the probabilities (3).
Operands with_scores(const Context& c, const Attention& a) {
  const int64_t mode = c.int_attr("qk_matmul_output_mode", 0);
  const int64_t heads = extent(c, a.q, 1), groups = extent(c, a.k, 1);
  const auto repeat = [&](Value x) {  // repeats each key/value head for its group of query heads
    if (heads == groups) return x;
    const Shape& shape = x.shape();
    const Value each = unsqueeze(x, {.axes = 2});
    return reshape(broadcast_to(each, {shape[0], groups, heads / groups, shape[2], shape[3]}),
                   {shape[0], heads, shape[2], shape[3]});
  };
  Values scores = {matmul(a.q, repeat(a.k), {.transpose_b = true}) * a.scale};
  scores.push_back(a.softcap > 0 ? tanh(scores[0] / a.softcap) * a.softcap : scores[0]);
  Value masked = scores[1];
  if (a.mask && a.mask.dtype() == boolean) {
    masked = where(a.mask, masked, scalar_like(masked, -double{INFINITY}));
  } else if (a.mask) {
    masked = masked + a.mask;
  }
  scores.push_back(masked);
  const Value top = max(masked, {.axes = -1, .keep_dims = true});
  // A query whose keys are all masked out has probabilities of 0.
  const Value none = equal(top, scalar_like(top, -double{INFINITY}));
  const Value finite = where(none, scalar_like(masked, 0), masked);
  scores.push_back(where(none, scalar_like(masked, 0), softmax(finite, {.axis = -1})));
  return {matmul(scores[3], repeat(a.v)), scores.at(static_cast<size_t>(mode))};
}

Operands attended(const Context& c) {
  Attention a{
      .q = c.input(kQ), .k = c.input(kK), .v = c.input(kV), .mask = {}, .scale = 0, .softcap = 0};
  const bool merged = a.q.shape().rank() == 3;
  if (merged) {
    a.q = split_heads(c, a.q, c.int_attr("q_num_heads", 0));
    a.k = split_heads(c, a.k, c.int_attr("kv_num_heads", 0));
    a.v = split_heads(c, a.v, c.int_attr("kv_num_heads", 0));
  }
  if (c.has_input(kPastKey)) {
    a.k = concat({c.input(kPastKey), a.k}, {.axis = 2});
    a.v = concat({c.input(kPastValue), a.v}, {.axis = 2});
  }
  a.mask = combined(mask_of(c, extent(c, a.k, 2)), Visibility(c, a.q, a.k).mask());
  const double size = static_cast<double>(extent(c, a.q, 3));
  a.scale = c.float_attr("scale", 1 / std::sqrt(size));
  a.softcap = c.float_attr("softcap", 0);
  Operands outputs(4);
  if (a.softcap > 0 || c.has_output(3)) {
    const Operands results = with_scores(c, a);
    outputs[0] = results[0];
    outputs[3] = results[1];
  } else if (a.mask) {
    outputs[0] = scaled_dot_product_attention(a.q, a.k, a.v, a.mask, {.scale = a.scale}, c.loc());
  } else {
    outputs[0] = scaled_dot_product_attention(a.q, a.k, a.v, {.scale = a.scale}, c.loc());
  }
  if (merged) outputs[0] = merge_heads(outputs[0].value);
  outputs[1] = a.k;
  outputs[2] = a.v;
  return outputs;
}

/// Returns the cosines or sines of a rotary cache as [B, 1, T, R / 2], where R is the rotary
/// dimension. The cache is [positions, R / 2] if the node has position ids [B, T], which index its
/// rows, else [B, T, R / 2].
Value rows_of_cache(const Context& c, size_t cache) {
  const Value rows =
      c.has_input(3) ? gather(c.input(cache), c.input(3), {.axis = 0}) : c.input(cache);
  return unsqueeze(rows, {.axes = 1});
}

Operands rotated(const Context& c) {
  Value x = c.input(0);
  const bool merged = x.shape().rank() == 3;
  if (merged) x = split_heads(c, x, c.int_attr("num_heads", 0));
  const Value y = apply_rotary_embedding(x, rows_of_cache(c, 1), rows_of_cache(c, 2),
                                         {.interleaved = c.bool_attr("interleaved", false)});
  return {merged ? merge_heads(y) : y};
}

}  // namespace

void add_attention(Mappings& all) {
  all["Attention"] = attended;
  all["RotaryEmbedding"] = rotated;
}

}  // namespace fluid::onnx
