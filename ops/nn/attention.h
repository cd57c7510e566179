#pragma once

// Tiled attention (Dao et al., "FlashAttention", 2022). A block computes the scores of one tile of
// queries and one tile of keys at a time, so that memory is linear in the number of queries and
// keys.

#include "ops/kernel_writer.h"

namespace fluid {

/// Extents of attention: q [B, H, T, D], k [B, G, S, D], v [B, G, S, E] with H a multiple of G.
struct AttentionShape {
  Dim batch;
  int64_t heads, groups, queries, keys, depth, value_depth;
  /// Number of query heads that read the same keys.
  int64_t heads_per_group() const { return heads / std::max<int64_t>(groups, 1); }
};

AttentionShape attention_shape(const Type& q, const Type& k, const Type& v);
/// Throws UserError (by c.fail()) unless q, k and v have the same float dtype and matching shapes.
void require_attention_operands(const InferCtx& c, const Type& q, const Type& k, const Type& v);
/// Throws UserError (by c.fail()) unless `mask` broadcasts to [B, H, T, S], and is bool or has q's
/// dtype.
void require_attention_mask(const InferCtx& c, const Type& mask, const Type& q, const Type& k);

/// Throws UserError (by c.fail()) unless the attribute "dropout" is a probability.
void require_attention_dropout(const InferCtx& c);
/// Throws UserError (by c.fail()) unless operand `random_key` of an attention kernel, if present,
/// is i64[4], and the attribute "dropout" is a probability, 0 without a random key.
void require_random_key(const InferCtx& c, size_t random_key);

/// Definitions of attributes "causal" and "scale".
std::vector<AttrDef> attention_attrs();
/// Definitions of the attributes of the attention kernels: "causal", "scale" and "dropout".
std::vector<AttrDef> attention_kernel_attrs();
/// Appends the optional operands of an attention kernel: the mask and the random key.
std::vector<PortDef> with_attention_options(std::vector<PortDef> inputs);
/// Returns the factor of the scores q k^T: attribute "scale", or 1 / sqrt(depth) if the attribute
/// is 0.
double attention_scale(const Attrs& attrs, int64_t depth);

/// Cost of an attention kernel, or of an op that expands into one. For each pair of a query and a
/// key that the query may attend to, the kernel computes `depth_products` products of depth D and
/// `value_depth_products` products of depth E.
Cost attention_cost(const CostCtx& c, const AttentionShape& shape, int depth_products,
                    int value_depth_products);

/// Type of the softmax statistics: [B, H, T] in q's compute dtype.
Type attention_statistics_type(const Type& q);

/// Writes code that the attention kernels share: tiles of scores, and products of tiles.
class AttentionTiles {
 public:
  static constexpr int64_t kQueries = 32;  ///< queries in a tile
  static constexpr int64_t kKeys = 64;     ///< keys in a tile
  static constexpr int64_t kRows = 8;  ///< rows of a product that accumulate in registers at once

  using Element = std::function<Expr(const Expr& row, const Expr& column)>;
  using Sum = std::function<void(const Expr& row, const Expr& lane, const Expr& sum)>;

  /// `options` is the operand number of the optional mask. The optional random key follows it.
  AttentionTiles(KernelWriter& writer, const LoopsCtx& c, const AttentionShape& shape,
                 size_t options);

  /// Writes the loop of each block over its tiles of rows. There are `heads` heads (B * H or B * G)
  /// of `extent` rows. `body` writes the code for the tile of `head` that begins at row `first`.
  void for_each_tile(
      const Expr& heads, int64_t extent, int64_t rows_per_tile,
      const std::function<void(const Expr& block, const Expr& head, const Expr& first)>& body);

  /// Number of blocks; scratch memory is indexed by block.
  int64_t block_count() const { return blocks_; }
  /// Adds a scratch buffer with `elements` elements per block, in the compute dtype.
  KernelWriter::Array scratch(int64_t elements);
  DType dtype() const { return dtype_; }

  /// Writes a matrix product. For each row in [0, rows) and each lane in [0, lanes), sums a(row, k)
  /// * b(k, lane) over k in [0, depth) and calls finish(row, lane, sum). `rows` must be a multiple
  /// of kRows. The value of a() must not depend on the lane.
  void matrix_product(int64_t rows, const Expr& lanes, const Expr& depth, const Element& a,
                      const Element& b, const Sum& finish);

  /// Returns the score of a query and a key, given their dot product: scaled, masked, and -inf
  /// where the query may not attend to the key.
  Expr score(const Expr& product, const Expr& head, const Expr& query, const Expr& key) const;

  /// Whether dropout applies to the softmax weights.
  bool drops() const { return random_key_.has_value(); }
  /// Returns the factor by which dropout multiplies the softmax weight of a query and a key: 0, or
  /// 1 / (1 - p). Only if drops(). Draws one number per element of [B, H, T, S], as dropout does.
  Expr dropout_factor(const Expr& head, const Expr& query, const Expr& key) const;

  /// Returns the number of leading key tiles to which queries before `end_query` attend.
  Expr num_visible_key_tiles(const Expr& end_query) const;
  bool is_causal() const { return causal_; }

 private:
  void load_random_key();

  KernelWriter& k_;
  const LoopsCtx& c_;
  AttentionShape shape_;
  std::optional<size_t> mask_, random_key_;
  DType dtype_;
  bool causal_;
  double scale_, dropout_;
  int64_t blocks_;
  /// Elements of the random key, and the number of heads before the first sample of the batch.
  Expr seed_, run_, stream_, first_head_;
};

}  // namespace fluid
