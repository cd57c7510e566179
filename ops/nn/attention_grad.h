#pragma once

#include "ops/nn/attention.h"

namespace fluid {

/// Operand numbers of the gradient ops of attention.
struct AttentionGradOperands {
  static constexpr int kQuery = 0, kKeyTransposed = 1, kValueTransposed = 2, kOutputGradient = 3,
                       kLogsumexp = 4, kDelta = 5;
  static constexpr int kKeyValueMask = 6;         ///< attention_grad_key_value: optional mask
  static constexpr int kKey = 6, kQueryMask = 7;  ///< attention_grad_query; the mask is optional
};
/// Definitions of the operands of attention_grad_key_value.
std::vector<PortDef> attention_grad_inputs();
/// Throws UserError (by c.fail()) unless the operands have matching types. `mask_operand` is the
/// operand number of the optional mask.
void require_attention_grad_operands(const InferCtx& c, size_t mask_operand);

/// Computes the probabilities p and the score gradients ds of a tile of queries and a tile of keys:
///   p = exp(score - logsumexp), ds = p * (dy v^T - delta) * scale, delta = sum(dy * y).
class AttentionGradTiles {
 public:
  AttentionGradTiles(KernelWriter& writer, const LoopsCtx& c, const AttentionShape& shape,
                     std::optional<size_t> mask);
  AttentionTiles& tiles() { return tiles_; }

  /// Writes code that computes the offsets of the tiles of `block` in scratch memory.
  void compute_tile_offsets(const Expr& block);
  /// Writes code that loads the transposed keys and values of a tile of `count` keys.
  void load_keys(const Expr& group, const Expr& first_key, const Expr& count);
  /// Writes code that computes p and ds for the tile of queries from `first_query` on and the
  /// loaded keys. Rows after the last query are 0.
  void compute_score_tile(const Expr& head, const Expr& first_query, const Expr& first_key,
                          const Expr& count);
  Expr probability(const Expr& query, const Expr& key) const;
  Expr score_gradient(const Expr& query, const Expr& key) const;

 private:
  KernelWriter& k_;
  AttentionShape shape_;
  AttentionTiles tiles_;
  double scale_;
  KernelWriter::Array key_tiles_, value_tiles_, probabilities_, gradients_;
  Expr key_tile_, value_tile_, score_tile_;
};

/// Returns the extents of attention, given the operands of a gradient op of attention.
AttentionShape attention_grad_shape(const std::vector<Type>& operands);

}  // namespace fluid
