#pragma once

#include "ops/nn/attention.h"

namespace fluid {

/// Operand numbers of the gradient ops of attention.
struct AttentionGradOperands {
  static constexpr int kQuery = 0, kKeyTransposed = 1, kValueTransposed = 2, kOutputGradient = 3,
                       kLogsumexp = 4, kDelta = 5;
  /// The optional mask of attention_grad_key_value. The optional random key follows it.
  static constexpr int kKeyValueOptions = 6;
  /// attention_grad_query: k of attention before its transposition.
  static constexpr int kKey = 6;
  /// The optional mask of attention_grad_query. The optional random key follows it.
  static constexpr int kQueryOptions = 7;
};
/// Definitions of the operands of attention_grad_key_value, without the optional ones.
std::vector<PortDef> attention_grad_inputs();
/// Throws UserError (by c.fail()) unless the operands have matching types. `options` is the operand
/// number of the optional mask.
void require_attention_grad_operands(const InferCtx& c, size_t options);

/// The softmax weights of a tile of queries and a tile of keys, and the gradients of its scores:
///   p = exp(score - logsumexp), ds = p * (f dy v^T - delta) * scale, delta = sum(dy * y),
/// where f is the factor of dropout, or 1.
class AttentionGradTiles {
 public:
  AttentionGradTiles(KernelWriter& writer, const LoopsCtx& c, const AttentionShape& shape,
                     size_t options);
  AttentionTiles& tiles() { return tiles_; }

  /// Writes code that computes the offsets of the tiles of `block` in scratch memory.
  void compute_tile_offsets(const Expr& block);
  /// Writes code that loads the transposed keys and values of a tile of `count` keys.
  void load_keys(const Expr& group, const Expr& first_key, const Expr& count);
  /// Computes the weights and the gradients of the scores, for the tile of queries from
  /// `first_query` on and the loaded keys. Rows after the last query are 0.
  void compute_score_tile(const Expr& head, const Expr& first_query, const Expr& first_key,
                          const Expr& count);
  /// The softmax weight after dropout: p * f.
  Expr weight(const Expr& query, const Expr& key) const;
  Expr score_gradient(const Expr& query, const Expr& key) const;

 private:
  /// Applies dropout to a tile whose weights are p and whose gradients are dy v^T.
  void apply_dropout(const Expr& head, const Expr& first_query, const Expr& first_key,
                     const Expr& count);
  /// Returns `query`, or the last query if `query` is past the end.
  Expr clamped(const Expr& query) const;
  /// Returns the element of operand `operand`, [B, H, T], for a query, as clamped() gives it.
  Expr statistic(size_t operand, const Expr& head, const Expr& query) const;

  KernelWriter& k_;
  AttentionShape shape_;
  AttentionTiles tiles_;
  double scale_;
  KernelWriter::Array key_tiles_, value_tiles_, weights_, gradients_;
  Expr key_tile_, value_tile_, score_tile_;
};

/// Returns the extents of attention, given the operands of a gradient op of attention.
AttentionShape attention_grad_shape(const std::vector<Type>& operands);

}  // namespace fluid
