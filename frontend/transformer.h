#pragma once

// Layers of transformers: Vaswani et al., "Attention is all you need", NeurIPS 2017.

#include <optional>
#include <string>

#include "frontend/layers.h"

namespace fluid {

/// Options of an embedding. See Conv for parameter names.
struct Embedding {
  Required<int64_t> rows;               ///< number of table rows, such as the vocabulary size
  Required<int64_t> units;              ///< features per row
  DType dtype = f32;                    ///< dtype of the table
  std::optional<int64_t> padding = {};  ///< padding_idx: the row of this index gets no gradient
  /// Table [rows, units] supplied by the caller. `dtype` is then ignored.
  std::optional<Value> weight = {};
  std::optional<Init> weight_init = {};  ///< default: normal with mean 0 and standard deviation 1
  bool trainable = true;
  double lr_scale = 1;
  bool weight_decay = true;
  bool sparse = false;  ///< see ParameterOptions
  std::string name = {};
};
/// Embedding: integer indices of any shape [...] -> rows of a table [..., units]. An out-of-range
/// index makes the step fail. Adds the parameter embedding0.w.
Value embedding(Value index, const Embedding& layer, const Loc& loc = Loc::here());

/// Options of scaled_dot_product_attention().
struct ScaledDotProductAttention {
  bool causal = false;  ///< whether query i attends only to keys 0 to i
  double scale = 0;     ///< scale of the scores q k^T; 0: 1 / sqrt(D)
  bool alibi = false;   ///< whether the biases of ALiBi are added to the scores, see alibi()
  double dropout = 0;   ///< probability that an attention weight is dropped, in [0, 1]
};
/// softmax(q k^T * scale + mask) v per head, like torch.nn.functional.scaled_dot_product_attention
/// with enable_gqa=True: q [B, H, T, D], k [B, G, S, D], v [B, G, S, E] -> [B, H, T, E]. Query head
/// h reads head h * G / H of k and v. The mask broadcasts to [B, H, T, S]. A bool mask masks out
/// keys where it is false. A mask of q's dtype is added to the scores. The mask gets no gradient.
/// The result is 0 for a query whose keys are all masked out.
///
/// Dropout zeroes random attention weights and scales the others by 1 / (1 - dropout). It has no
/// effect in eval and predict steps. Neither the scores, nor the biases of ALiBi, nor the random
/// numbers are stored: memory is linear in T and S.
Value scaled_dot_product_attention(Value q, Value k, Value v,
                                   const ScaledDotProductAttention& options = {},
                                   const Loc& loc = Loc::here());
Value scaled_dot_product_attention(Value q, Value k, Value v, Value mask,
                                   const ScaledDotProductAttention& options = {},
                                   const Loc& loc = Loc::here());

/// KV cache of a decoder: the keys and values of earlier positions. Persists between predict steps
/// (see cache.h).
struct AttentionCache {
  Required<int64_t> length;  ///< maximum number of positions
  Required<Value> position;  ///< integer scalar: the position of the input, from 0 to length - 1
};

/// Options of multi-head attention. See Conv for parameter names and initialisers.
struct MultiHeadAttention {
  Required<int64_t> heads;  ///< number of heads; divides the features
  /// Number of key/value heads, a divisor of `heads`, for grouped-query attention (Ainslie et al.,
  /// "GQA", EMNLP 2023). 0: equal to `heads`.
  int64_t key_heads = 0;
  bool causal = false;  ///< whether position i attends to positions 0 to i only
  /// Whether the scores get linear biases, a position encoding: ALiBi, Press et al., ICLR 2022.
  bool alibi = false;
  /// Mask that broadcasts to [N, heads, T, S]. A bool mask masks out keys where it is false. A
  /// float mask is added to the scores.
  std::optional<Value> mask = {};
  /// KV cache for self-attention. Each predict step decodes one position: x [N, 1, E], with a
  /// constant N, attends to all positions up to `position`. The cache implies a causal mask, so
  /// `mask` must be empty. Adds the caches attention0.keys and attention0.values.
  std::optional<AttentionCache> cache = {};
  /// Probability that an attention weight is dropped, as in torch.nn.MultiheadAttention.
  double attention_dropout = 0;
  bool bias = true;
  std::optional<Init> weight_init = {};  ///< initialiser of all weights
  bool trainable = true;
  double lr_scale = 1;
  bool weight_decay = true;
  std::string name = {};
};
/// Multi-head self-attention: x [N, T, E] -> [N, T, E]. Adds the linear layers attention0.qkv and
/// attention0.out. The outputs of attention0.qkv are the queries, keys and values, in this order.
Value multi_head_attention(Value x, const MultiHeadAttention& layer, const Loc& loc = Loc::here());
/// Multi-head cross-attention: x [N, T, E] attends to `memory` [N, S, M]. Returns [N, T, E]. Adds
/// the linear layers attention0.q, attention0.kv and attention0.out.
Value multi_head_attention(Value x, Value memory, const MultiHeadAttention& layer,
                           const Loc& loc = Loc::here());

/// Options of a transformer block. See Conv for parameter names and initialisers.
struct TransformerBlock {
  Required<int64_t> heads;
  int64_t key_heads = 0;  ///< see MultiHeadAttention
  int64_t hidden = 0;     ///< hidden units of the feed-forward network; 0: 4 * features of x
  bool causal = false;
  bool alibi = false;                        ///< see MultiHeadAttention
  std::optional<Value> mask = {};            ///< see MultiHeadAttention
  std::optional<AttentionCache> cache = {};  ///< see MultiHeadAttention
  Act act = Act::gelu;
  /// Whether layer normalisation precedes each sublayer (pre-norm), or follows the residual
  /// addition (post-norm, as in Vaswani et al., 2017).
  bool norm_first = true;
  /// Dropout probability after the attention and after the feed-forward network.
  double dropout = 0;
  double attention_dropout = 0;          ///< see MultiHeadAttention
  double eps = 1e-5;                     ///< epsilon of the layer normalisations
  bool bias = true;                      ///< bias of the linear layers and of the normalisations
  std::optional<Init> weight_init = {};  ///< initialiser of all weights
  bool trainable = true;
  double lr_scale = 1;
  bool weight_decay = true;
  std::string name = {};
};
/// Transformer encoder block, or decoder block if `causal`: x [N, T, E] -> [N, T, E].
/// Self-attention and a feed-forward network, each with a residual connection and a layer
/// normalisation. Adds the layers block0.attention, block0.fc0, block0.fc1, block0.ln0 and
/// block0.ln1.
Value transformer_block(Value x, const TransformerBlock& layer, const Loc& loc = Loc::here());

/// Adds the sinusoidal positional encoding of Vaswani et al. (2017) to x [N, T, E]: sin(t w_i) to
/// feature 2i and cos(t w_i) to feature 2i + 1, where w_i = 10000^(-2i / E). E must be even.
Value positional_encoding(Value x, const Loc& loc = Loc::here());

}  // namespace fluid
