#include "frontend/transformer.h"

#include <cmath>
#include <limits>

#include "frontend/cache.h"
#include "frontend/checked_index.h"
#include "frontend/layer_parameters.h"
#include "frontend/random.h"
#include "ops/operators.h"
#include "ops/record.h"

namespace fluid {
namespace {

void require_sequence(Value x, const char* layer, const char* what, const Loc& loc) {
  const Shape& shape = x.shape();
  require_float_type(x.type(), shape.rank() == 3 && !shape[1].batch && shape[2].is_constant(),
                     std::string(layer) + ": " + what, "[N, T, features]", loc);
}

void check_options(const MultiHeadAttention& layer, const Loc& loc) {
  const std::string subject = "multi_head_attention: ";
  require_probability(layer.attention_dropout, subject + "attention_dropout", loc);
  require(!layer.mask || *layer.mask, loc, subject + "the mask is an empty value");
}

/// Number of query heads, number of key/value heads, and features per head.
struct Heads {
  int64_t queries, keys, depth;
};

Heads heads_of(Value x, const MultiHeadAttention& layer, const Loc& loc) {
  const int64_t features = x.shape()[2].size, heads = *layer.heads;
  const int64_t key_heads = layer.key_heads == 0 ? heads : layer.key_heads;
  const std::string subject = "multi_head_attention: ";
  require(heads > 0 && features % heads == 0, loc,
          subject + std::to_string(heads) + " heads do not divide " + std::to_string(features) +
              " features");
  require(key_heads > 0 && heads % key_heads == 0, loc,
          subject + std::to_string(layer.key_heads) + " heads of keys do not divide " +
              std::to_string(heads) + " heads");
  return {heads, key_heads, features / heads};
}

template <class Layer>
Value sublayer(Value x, int64_t units, const Layer& layer, const std::string& name, Act act,
               const Loc& loc) {
  return linear(x,
                {.units = units,
                 .bias = layer.bias,
                 .act = act,
                 .weight_init = layer.weight_init,
                 .trainable = layer.trainable,
                 .lr_scale = layer.lr_scale,
                 .weight_decay = layer.weight_decay,
                 .name = name},
                loc);
}

/// Splits the features: [N, T, heads * D] -> [N, heads, T, D].
Value split_heads(Value x, int64_t heads, int64_t depth, const Loc& loc) {
  const Shape& s = x.shape();
  const Value split = reshape(x, {.to = Type{x.dtype(), {s[0], s[1], heads, depth}, {}}}, loc);
  return transpose(split, {.perm = {0, 2, 1, 3}}, loc);
}

/// Merges the heads: [N, heads, T, D] -> [N, T, heads * D].
Value join_heads(Value x, const Loc& loc) {
  const Shape& s = x.shape();
  const int64_t features = s[1].size * s[3].size;
  const Value joined = transpose(x, {.perm = {0, 2, 1, 3}}, loc);
  return reshape(joined, {.to = Type{x.dtype(), {s[0], s[2], features}, {}}}, loc);
}

/// Computes attention from the projections q [N, T, heads * D], k and v, and projects the result.
Value attend(Value q, Value k, Value v, const Heads& heads, const MultiHeadAttention& layer,
             const Loc& loc) {
  const Value y = scaled_dot_product_attention(
      split_heads(q, heads.queries, heads.depth, loc), split_heads(k, heads.keys, heads.depth, loc),
      split_heads(v, heads.keys, heads.depth, loc), layer.mask.value_or(Value()),
      {.causal = layer.causal, .alibi = layer.alibi, .dropout = layer.attention_dropout}, loc);
  return sublayer(join_heads(y, loc), heads.queries * heads.depth, layer, "out", Act::none, loc);
}

void check_cache(Value x, const MultiHeadAttention& layer, const Loc& loc) {
  const Shape& shape = x.shape();
  const Value position = *layer.cache->position;
  const std::string subject = "multi_head_attention: ";
  require(shape[0].is_constant() && shape[1].is(1), loc,
          subject + "with a cache, the input is " + x.type().str() + ", not [N, 1, features]");
  require(*layer.cache->length > 0 && !layer.mask, loc,
          subject + "a cache needs a positive length and no mask");
  require(position && is_integer(position.dtype()) && position.shape().empty(), loc,
          subject + "the position of a cache is " + (position ? position.type().str() : "empty") +
              ", not an integer scalar");
}

/// Returns the positions 0, 1, ... of a cache, with shape `shape`.
Value positions(const AttentionCache& attention, const Shape& shape, const Loc& loc) {
  ir::Graph& graph = *attention.position->op()->graph();
  return reshape(arange(graph, {.type = Type{i64, {*attention.length}, {}}}, loc), shape, loc);
}

/// Returns the cached keys or values of all positions, [N, heads, length, D], after writing x [N,
/// heads, 1, D] at the current position.
Value cached(Value x, const std::string& name, const AttentionCache& attention, const Loc& loc) {
  ir::Graph& graph = *x.op()->graph();
  const Shape& s = x.shape();
  const int64_t length = *attention.length;
  const Value before = cache(graph, name, {s[0], s[1], length, s[3]}, x.dtype(), loc);
  const Value is_new = equal(positions(attention, {length, 1}, loc), *attention.position, loc);
  const Value all = where(is_new, x, before, loc);
  update_cache(before, all, loc);
  return all;
}

/// Returns the biases of ALiBi between the current position and all positions of a cache, [heads,
/// 1, length].
Value biases_of_cache(const AttentionCache& attention, int64_t heads, const Loc& loc) {
  ir::Graph& graph = *attention.position->op()->graph();
  const Value at_distance_1 = slice(alibi(graph, {.type = Type{f32, {heads, 1, 2}, {}}}, loc),
                                    {.starts = 0, .stops = 1, .axes = 2}, loc);
  const Value distance =
      sub(*attention.position, positions(attention, {1, 1, *attention.length}, loc), loc);
  return mul(at_distance_1, cast(distance, f32, loc), loc);
}

/// Attention of one position to itself and to all earlier positions.
Value attend_to_cache(Value q, Value k, Value v, const Heads& heads,
                      const MultiHeadAttention& layer, const Loc& loc) {
  check_cache(q, layer, loc);
  const AttentionCache attention = {
      .length = *layer.cache->length,
      .position = checked_index(*layer.cache->position, *layer.cache->length, loc)};
  const Value keys = cached(split_heads(k, heads.keys, heads.depth, loc), "keys", attention, loc);
  const Value values =
      cached(split_heads(v, heads.keys, heads.depth, loc), "values", attention, loc);
  const Value seen =
      less_equal(positions(attention, {1, 1, 1, *attention.length}, loc), *attention.position, loc);
  Value mask = seen;
  if (layer.alibi) {
    const Value biases = biases_of_cache(attention, heads.queries, loc);
    const Value hidden = scalar_like(biases, -std::numeric_limits<double>::infinity());
    mask = cast(where(seen, biases, hidden, loc), q.dtype(), loc);
  }
  const Value y =
      scaled_dot_product_attention(split_heads(q, heads.queries, heads.depth, loc), keys, values,
                                   mask, {.dropout = layer.attention_dropout}, loc);
  return sublayer(join_heads(y, loc), heads.queries * heads.depth, layer, "out", Act::none, loc);
}

}  // namespace

Value scaled_dot_product_attention(Value q, Value k, Value v,
                                   const ScaledDotProductAttention& options, const Loc& loc) {
  return scaled_dot_product_attention(q, k, v, Value(), options, loc);
}

Value scaled_dot_product_attention(Value q, Value k, Value v, Value mask,
                                   const ScaledDotProductAttention& options, const Loc& loc) {
  ir::Graph& graph = input_graph(q, "scaled_dot_product_attention", loc);
  Attrs attrs = {{"causal", options.causal}, {"scale", options.scale}, {"alibi", options.alibi}};
  if (options.dropout == 0) {
    return record(graph, "scaled_dot_product_attention", {q, k, v, mask}, attrs, loc)[0];
  }
  attrs.set("dropout", options.dropout);
  const Value rng = random_state(graph, loc);
  return record(graph, "scaled_dot_product_attention_dropout", {q, k, v, rng, mask}, attrs, loc)[0];
}

Value embedding(Value index, const Embedding& layer, const Loc& loc) {
  ir::Graph& graph = input_graph(index, "embedding", loc);
  const int64_t rows = *layer.rows, units = *layer.units;
  require(is_integer(index.dtype()), loc,
          "embedding: the input is " + index.type().str() + ", not integer indices");
  require(rows > 0 && units > 0, loc,
          "embedding: rows and units must be positive, not " + std::to_string(rows) + " and " +
              std::to_string(units));
  ir::ScopedRecording as(graph, layer_recording(graph, "embedding", layer.name));
  LayerParameters parameters(graph, "embedding", layer, loc);
  const DType dtype = layer.weight && *layer.weight ? layer.weight->dtype() : layer.dtype;
  const Type table{dtype, {rows, units}, {}};
  require_float_type(table, true, "embedding: the table", "[rows, units]", loc);
  const Value w =
      parameters.get("weight", "w", table, layer.weight, layer.weight_init, Init::normal(0, 1));
  parameters.check_options();
  Ints padding;
  if (layer.padding) padding.push_back(*layer.padding);
  return embedding(w, index, {.padding_idx = padding}, loc);
}

Value multi_head_attention(Value x, const MultiHeadAttention& layer, const Loc& loc) {
  ir::Graph& graph = input_graph(x, "multi_head_attention", loc);
  require_sequence(x, "multi_head_attention", "the input", loc);
  check_options(layer, loc);
  const Heads heads = heads_of(x, layer, loc);
  ir::ScopedRecording as(graph, layer_recording(graph, "attention", layer.name));
  const int64_t q = heads.queries * heads.depth, kv = heads.keys * heads.depth;
  const Value all = sublayer(x, q + 2 * kv, layer, "qkv", Act::none, loc);
  const Values parts = split(all, {.sizes = {q, kv, kv}, .axis = 2}, loc);
  return layer.cache ? attend_to_cache(parts[0], parts[1], parts[2], heads, layer, loc)
                     : attend(parts[0], parts[1], parts[2], heads, layer, loc);
}

Value multi_head_attention(Value x, Value memory, const MultiHeadAttention& layer, const Loc& loc) {
  ir::Graph& graph = input_graph(x, "multi_head_attention", loc);
  input_graph(memory, "multi_head_attention", loc);
  require_sequence(x, "multi_head_attention", "the input", loc);
  require_sequence(memory, "multi_head_attention", "the memory", loc);
  require(!layer.cache, loc, "multi_head_attention: only self-attention has a cache");
  check_options(layer, loc);
  const Heads heads = heads_of(x, layer, loc);
  ir::ScopedRecording as(graph, layer_recording(graph, "attention", layer.name));
  const int64_t kv = heads.keys * heads.depth;
  const Value q = sublayer(x, heads.queries * heads.depth, layer, "q", Act::none, loc);
  const Value both = sublayer(memory, 2 * kv, layer, "kv", Act::none, loc);
  const Values parts = split(both, {.sizes = {kv, kv}, .axis = 2}, loc);
  return attend(q, parts[0], parts[1], heads, layer, loc);
}

Value transformer_block(Value x, const TransformerBlock& layer, const Loc& loc) {
  ir::Graph& graph = input_graph(x, "transformer_block", loc);
  require_sequence(x, "transformer_block", "the input", loc);
  require(layer.hidden >= 0, loc,
          "transformer_block: hidden must not be negative, but is " + std::to_string(layer.hidden));
  require_probability(layer.dropout, "transformer_block: dropout", loc);
  ir::ScopedRecording as(graph, layer_recording(graph, "block", layer.name));
  const int64_t features = x.shape()[2].size;
  const auto normalise = [&](Value v, const char* name) {
    return layer_norm(v,
                      {.eps = layer.eps,
                       .bias = layer.bias,
                       .trainable = layer.trainable,
                       .lr_scale = layer.lr_scale,
                       .weight_decay = layer.weight_decay,
                       .name = name},
                      loc);
  };
  const auto residual = [&](Value v, const char* norm, const auto& apply) {
    Value change = apply(layer.norm_first ? normalise(v, norm) : v);
    if (layer.dropout != 0) change = dropout(change, {.p = layer.dropout}, loc);
    const Value sum = add(v, change, loc);
    return layer.norm_first ? sum : normalise(sum, norm);
  };
  const MultiHeadAttention attention{.heads = *layer.heads,
                                     .key_heads = layer.key_heads,
                                     .causal = layer.causal,
                                     .alibi = layer.alibi,
                                     .mask = layer.mask,
                                     .cache = layer.cache,
                                     .attention_dropout = layer.attention_dropout,
                                     .bias = layer.bias,
                                     .weight_init = layer.weight_init,
                                     .trainable = layer.trainable,
                                     .lr_scale = layer.lr_scale,
                                     .weight_decay = layer.weight_decay,
                                     .name = "attention"};
  const Value attended =
      residual(x, "ln0", [&](Value v) { return multi_head_attention(v, attention, loc); });
  return residual(attended, "ln1", [&](Value v) {
    const int64_t hidden = layer.hidden == 0 ? 4 * features : layer.hidden;
    return sublayer(sublayer(v, hidden, layer, "fc0", layer.act, loc), features, layer, "fc1",
                    Act::none, loc);
  });
}

Value positional_encoding(Value x, const Loc& loc) {
  ir::Graph& graph = input_graph(x, "positional_encoding", loc);
  require_sequence(x, "positional_encoding", "the input", loc);
  const Dim length = x.shape()[1];
  const int64_t features = x.shape()[2].size, pairs = features / 2;
  require(features % 2 == 0, loc,
          "positional_encoding: " + std::to_string(features) + " features are not even");
  const DType dtype = compute_dtype(x.dtype());
  const Value position = arange(graph, {.type = Type{dtype, {length}, {}}}, loc);
  const Value pair = arange(graph, {.type = Type{dtype, {pairs}, {}}}, loc);
  const double rate = -2 * std::log(10000.0) / static_cast<double>(features);
  const Value angle = unsqueeze(position, {.axes = {1}}, loc) * exp(pair * rate, loc);
  const Value both = stack({sin(angle, loc), cos(angle, loc)}, {.axis = 2}, loc);
  const Value encoding = reshape(both, {.to = Type{dtype, {length, features}, {}}}, loc);
  return add(x, cast(encoding, x.dtype()), loc);
}

}  // namespace fluid
