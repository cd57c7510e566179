#pragma once

#include "ops/nn/attention.h"

namespace fluid {

/// Operand numbers of the gradients of attention.
struct AttentionGradOperands {
  static constexpr int kQuery = 0, kKeyTransposed = 1, kValueTransposed = 2, kOutputGradient = 3,
                       kLogsumexp = 4, kDelta = 5;
  static constexpr int kKeyValueMask = 6;         ///< of attention_grad_key_value; optional
  static constexpr int kKey = 6, kQueryMask = 7;  ///< of attention_grad_query; the mask is optional
};
/// The operands of attention_grad_key_value.
std::vector<PortDef> attention_grad_inputs();
/// Throws UserError (by c.fail()) unless these operands fit together. `mask`: number of the
/// optional mask.
void require_attention_grad(const InferCtx& c, size_t mask);

/// The probabilities of a tile of queries and a tile of keys, and the gradients of its scores:
///   p = exp(score - logsumexp), ds = p * (dy v^T - delta) * scale, delta = sum(dy * y).
class AttentionGradTiles {
 public:
  AttentionGradTiles(KernelWriter& writer, const LoopsCtx& c, const AttentionShape& shape,
                     std::optional<size_t> mask);
  AttentionTiles& tiles() { return tiles_; }

  /// Starts the tiles of a block.
  void begin(const Expr& block);
  /// Loads the transposed keys and values of a tile of `count` keys.
  void load_keys(const Expr& group, const Expr& first_key, const Expr& count);
  /// Computes both matrices for the queries from `first_query` on and the loaded keys. Rows after
  /// the last query are 0.
  void compute(const Expr& head, const Expr& first_query, const Expr& first_key, const Expr& count);
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

/// Extents of attention from the operands of its gradients.
AttentionShape attention_grad_shape(const std::vector<Type>& operands);

}  // namespace fluid
