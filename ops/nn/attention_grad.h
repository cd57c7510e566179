#pragma once

#include "ops/nn/attention.h"

namespace fluid {

/// Operand indices of the gradient ops of attention.
struct AttentionGradOperands {
  static constexpr int kQuery = 0, kKey = 1, kValue = 2, kOutputGradient = 3, kLogsumexp = 4,
                       kDelta = 5;
  static constexpr int kMask = 6, kRandomKey = 7;  ///< indices of optional operands
};
/// Definitions of the operands of the gradient ops of attention.
std::vector<PortDef> attention_grad_inputs();
/// Throws UserError (by c.fail()) unless the operands have matching types.
void require_attention_grad_operands(const InferCtx& c);
/// Second derivatives of attention. Returns the gradients of the operands of a gradient op, given
/// the gradients of its results dq, dk and dv. A gradient is null if it is 0 or if the op has no
/// such result. Materializes the scores [B, H, T, S]. The mask gets no gradient. Throws UserError
/// if the op has dropout.
Values attention_second_gradients(const GradCtx& c, Value ddq, Value ddk, Value ddv);

/// The softmax weights p and the score gradients ds of a tile of queries and a tile of keys:
///   p = exp(score - logsumexp), ds = p * (f dy v^T - delta) * scale, delta = sum(dy * y),
/// where f is the factor of dropout, or 1. If the blocks own queries, lanes are queries and rows
/// are keys; else lanes are keys and rows are queries.
class AttentionGradTiles {
 public:
  AttentionGradTiles(KernelWriter& writer, const LoopsCtx& c, const AttentionShape& shape,
                     AttentionParallelDim parallel_dim);
  AttentionTiles& tiles() { return tiles_; }

  using ScoreTile = std::function<void(const Expr& head, const Expr& first_key,
                                       const Expr& first_query, const Expr& count)>;

  /// Loads the operands of the lanes from `first_lane` on. If lanes are queries: loads q and dy of
  /// query head `head`. If lanes are keys: loads k and v of key head `head`.
  void load_lanes(const Expr& head, const Expr& first_lane);
  /// Computes the tiles p and ds for `count` rows from `first_row` on. Requires load_lanes() for
  /// the lanes from `first_lane` on. `head` is the query head, and `group` the key head.
  void compute_score_tile(const Expr& head, const Expr& group, const Expr& first_row,
                          const Expr& first_lane, const Expr& count);
  const AttentionTiles::Tile& score_gradients() const { return gradients_; }
  /// Adds a matrix product to `sums` [lanes(), depth]: element (lane, d) is the sum over i in [0,
  /// count) of tile(i, lane) * a[head, first_row + i, d], where a [heads, extent, depth] is the
  /// operand with index `operand`.
  void add_product(const AttentionTiles::Tile& sums, const AttentionTiles::Tile& tile,
                   size_t operand, const Expr& head, const Expr& first_row, const Expr& count,
                   int64_t depth);

  /// Writes the gradients of the keys of `group` that the block owns, from key `first` on, and of
  /// their values, summed over all query tiles and all query heads of the group. Requires that
  /// lanes are keys. `tile` writes code that reads each tile of score gradients.
  void write_key_value_gradients(const Expr& group, const Expr& first,
                                 const KernelWriter::Array& dk, const KernelWriter::Array& dv,
                                 const ScoreTile& tile = nullptr);

 private:
  /// Applies dropout to a tile whose weights are p and whose gradients are dy v^T.
  void apply_dropout(const Expr& head, const Expr& first_row, const Expr& first_lane,
                     const Expr& count);
  bool lanes_are_keys() const { return tiles_.parallel_dim() == AttentionParallelDim::key; }
  int64_t row_extent() const { return lanes_are_keys() ? shape_.queries : shape_.keys; }
  Expr clamped_row(const Expr& row) const { return AttentionTiles::clamped_row(row, row_extent()); }
  /// Returns operand `operand` [B, H, T] (logsumexp or delta) for a query. The query is `row` if
  /// the lanes are keys, else `lane`.
  Expr statistic(size_t operand, const Expr& head, const Expr& row, const Expr& lane) const;

  KernelWriter& k_;
  AttentionShape shape_;
  AttentionTiles tiles_;
  double scale_;
  AttentionTiles::Tile depth_tile_, value_tile_;  ///< q or k [D, lanes()]; dy or v [E, lanes()]
  AttentionTiles::Tile weights_, gradients_;      ///< p, or p * f if lanes are keys; ds
  AttentionTiles::Tile key_sums_, value_sums_;  ///< [lanes(), D] and [lanes(), E] if lanes are keys
};

/// Returns the extents of attention, given the operands of a gradient op of attention.
AttentionShape attention_grad_shape(const std::vector<Type>& operands);

}  // namespace fluid
