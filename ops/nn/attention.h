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
  /// Number of query heads per key-value head (grouped-query attention).
  int64_t heads_per_group() const { return heads / std::max<int64_t>(groups, 1); }
};

AttentionShape attention_shape(const Type& q, const Type& k, const Type& v);
/// Throws UserError (by c.fail()) unless q, k and v have the same float dtype and matching shapes,
/// and the attribute "scale" is finite.
void require_attention_operands(const InferCtx& c, const Type& q, const Type& k, const Type& v);
/// Throws UserError (by c.fail()) unless `mask` broadcasts to [B, H, T, S], and is bool or has q's
/// dtype.
void require_attention_mask(const InferCtx& c, const Type& mask, const Type& q, const Type& k);

/// Throws UserError (by c.fail()) unless the attribute "dropout" is a probability.
void require_attention_dropout(const InferCtx& c);
/// Throws UserError (by c.fail()) unless the attribute "dropout" is a probability, and operand
/// `random_key`, if present, is i64[4]. Without a random key, "dropout" must be 0.
void require_random_key(const InferCtx& c, size_t random_key);

/// Definitions of attributes "causal", "scale" and "alibi".
std::vector<AttrDef> attention_attrs();
/// Definitions of the attributes of the attention kernels: attention_attrs() and "dropout".
std::vector<AttrDef> attention_kernel_attrs();
/// Appends the optional operands of an attention kernel: the mask and the random key.
std::vector<PortDef> with_mask_and_random_key(std::vector<PortDef> inputs);
/// Returns the factor of the scores q k^T: attribute "scale", or 1 / sqrt(depth) if the attribute
/// is 0.
double attention_scale(const Attrs& attrs, int64_t depth);

/// Cost of an attention kernel, or of an op that expands into one. For each pair of a query and a
/// key that the query may attend to, the kernel computes `depth_products` * D +
/// `value_depth_products` * E multiply-adds.
Cost attention_cost(const CostCtx& c, const AttentionShape& shape, int depth_products,
                    int value_depth_products);

/// Type of the logsumexp of the scores: [B, H, T] in q's compute dtype.
Type logsumexp_type(const Type& q);

/// The dimension over which an attention kernel is parallelized: each block owns some queries, or
/// some keys.
enum class AttentionParallelDim : uint8_t { query, key };

/// Writes code that the attention kernels share: tiles in scratch memory, and products of tiles. A
/// block processes the queries or keys that it owns in strips of lanes(). Lane l of a tile belongs
/// to the l-th query or key of a strip. A sum or maximum over the rows of a tile therefore needs no
/// reduction over lanes. The values of lanes past the last query or key are unused.
class AttentionTiles {
 public:
  static constexpr int64_t kTileRows = 64;  ///< rows of a tile of scores
  /// Maximum number of rows of the register tile of a matrix product.
  static constexpr int64_t kRows = 8;

  /// Writes the code for the strips of a block from query or key `first` of `head` on.
  using Strips = std::function<void(const Expr& head, const Expr& first)>;
  using RowColumn = std::function<void(const Expr& row, const Expr& column)>;
  using Element = std::function<Expr(const Expr& row, const Expr& column)>;
  using Sum = std::function<void(const Expr& row, const Expr& column, const Expr& sum)>;
  using Finish = std::function<Expr(const Expr& element, const Expr& row)>;

  /// A matrix [rows, columns] of the compute dtype in scratch memory. Each block, or each strip of
  /// a block, has its own.
  struct Tile {
    KernelWriter::Array array;
    int64_t rows = 0, columns = 0;
    bool per_strip = false;
  };

  /// `mask` is the operand index of the optional mask. `mask` + 1 is the operand index of the
  /// optional random key.
  AttentionTiles(KernelWriter& writer, const LoopsCtx& c, const AttentionShape& shape, size_t mask,
                 AttentionParallelDim parallel_dim);

  /// Number of lanes per strip on `device`, if each head has `extent` queries or keys.
  static int64_t lanes_of(int64_t extent, KernelDevice device);
  int64_t lanes() const { return strip_vectors_ * vector_lanes_; }
  AttentionParallelDim parallel_dim() const { return parallel_dim_; }
  DType dtype() const { return dtype_; }

  /// Allocates one tile [rows, lanes()] per block in scratch memory. Rounds `rows` up to a multiple
  /// of kRows.
  Tile tile(int64_t rows);
  /// Allocates one tile [rows, lanes()] per strip of each block. Rounds `rows` up to a multiple of
  /// kRows.
  Tile tile_per_strip(int64_t rows);
  /// Allocates one tile [lanes(), columns] per strip of each block: a row per query or key of the
  /// strip. Rounds `columns` up to a multiple of the vector width.
  Tile row_tile_per_strip(int64_t columns);
  Expr load(const Tile& tile, const Expr& row, const Expr& column) const;
  void store(const Tile& tile, const Expr& row, const Expr& column, const Expr& value);
  void fill(const Tile& tile, double value);

  /// Writes the loop of each block over the queries or keys that it owns. `heads` is the number of
  /// heads, B * H or B * G. `body` writes one iteration, which processes the strips of one head.
  void for_each_block(const Expr& heads, const Strips& body);
  /// Like for_each_block(), but each block owns all queries or keys of some heads. `begin` writes
  /// the start of a head.
  void for_each_head(const Expr& heads, const KernelWriter::LoopBody& begin, const Strips& body);
  /// Writes the loop over the strips of a block. `body` gets the first query or key of each strip,
  /// starting with `first`.
  void for_each_strip(const Expr& first, const KernelWriter::LoopBody& body);
  /// Writes the loops over the tiles of rows and over the strips of a block. Skips rows that are
  /// masked in all lanes by the causal mask. `first` is the first query or key of the block. `body`
  /// writes one iteration, which processes one tile and one strip. The tile has `count` rows from
  /// `first_row` on. `first_lane` is the first query or key of the strip.
  void for_each_tile(const Expr& first,
                     const std::function<void(const Expr& first_lane, const Expr& first_row,
                                              const Expr& count)>& body);
  /// Writes a loop over [0, rows) x [0, columns). On a GPU, the iterations of both dimensions are
  /// distributed over the threads that run the block.
  void for_each_element(const Expr& rows, int64_t columns, const RowColumn& body);

  /// Returns the condition index < extent, where `index` is the query or key of a lane, and
  /// `extent` is the number of queries or keys. Null if no lane is out of bounds.
  Expr in_bounds(const Expr& index) const;
  /// Returns the row index `index`, clamped to `extent` - 1.
  static Expr clamped_row(const Expr& index, int64_t extent);

  /// Copies rows of `operand` [heads, queries or keys, depth] to the lanes of `tile` [depth,
  /// lanes()]. Lane l gets row `first` + l of `head`.
  void load_transposed(const Tile& tile, size_t operand, const Expr& head, const Expr& first,
                       int64_t depth);
  /// Copies `tile` [lanes(), depth] to rows of `result` [heads, queries or keys, depth]. Row l goes
  /// to row `first` + l of `head`. Stores finish(element, row), or the element if `finish` is null.
  void store_rows(const Tile& tile, const KernelWriter::Array& result, const Expr& head,
                  const Expr& first, int64_t depth, const Finish& finish = nullptr);

  /// Writes a matrix product: sum(row, column) = sum of a(row, k) * b(k, column) over k in [0,
  /// depth). Calls finish(row, column, sum) for each row in [0, rows) and each column in [0,
  /// columns). The value of a() must not depend on the column. `rows` is rounded up to a multiple
  /// of kRows and `columns` to a multiple of the vector width, so a(), b() and finish() must accept
  /// rows and columns past the end.
  void matrix_product(const Expr& rows, int64_t columns, const Expr& depth, const Element& a,
                      const Element& b, const Sum& finish);
  /// Writes the product of the transpose of `weights` [rows, lanes()] and rows of `operand` [heads,
  /// keys or queries, depth]: sum(lane, d) = sum of weights(i, lane) * operand[head, first_row + i,
  /// d] over i in [0, count).
  void multiply_rows(const Tile& weights, size_t operand, const Expr& head, const Expr& first_row,
                     const Expr& count, int64_t depth, const Sum& finish);
  /// Writes the product of `count` rows of `weights` [rows, lanes()] and the rows of `operand`
  /// [heads, queries or keys, depth] that belong to the lanes: sum(i, d) = sum of weights(i, l) *
  /// operand[head, first + l, d] over the lanes l.
  void multiply_lanes(const Tile& weights, size_t operand, const Expr& head, const Expr& first,
                      const Expr& count, int64_t depth, const Sum& finish);
  /// Returns the condition that `column` is less than `extent`. Null if `extent` is a multiple of
  /// the vector width, and no column of a matrix product is out of bounds.
  Expr column_in_bounds(const Expr& column, int64_t extent) const;

  /// Returns the score of a query and a key, given their dot product: scaled, masked, and -inf
  /// where the query may not attend to the key.
  Expr score(const Expr& product, const Expr& head, const Expr& query, const Expr& key) const;

  /// Whether dropout applies to the softmax weights.
  bool has_dropout() const { return random_key_.has_value(); }
  /// Returns the dropout factor of the softmax weight of a query and a key: 0, or 1 / (1 - p).
  /// Requires has_dropout(). Draws the same random numbers as op dropout on a tensor [B, H, T, S].
  Expr dropout_factor(const Expr& head, const Expr& query, const Expr& key) const;

 private:
  void load_random_key();
  /// Writes a loop over [0, total), distributed over the blocks.
  void distribute(const Expr& total, const KernelWriter::LoopBody& body);
  /// Queries or keys that a block processes in one iteration.
  int64_t block_extent() const { return strips_ * lanes(); }
  /// Returns the element (i, d) of rows of `operand` [rows, depth] from row `first` on.
  Element rows_of(size_t operand, const Expr& first, int64_t depth) const;
  /// Writes a loop over the lanes and [0, depth), for load_transposed().
  void for_each_transposed(int64_t depth, const RowColumn& body);
  int64_t extent() const {
    return parallel_dim_ == AttentionParallelDim::query ? shape_.queries : shape_.keys;
  }
  int64_t row_extent() const {
    return parallel_dim_ == AttentionParallelDim::query ? shape_.keys : shape_.queries;
  }
  Expr offset(const Tile& tile, const Expr& row, const Expr& column) const;

  KernelWriter& k_;
  const LoopsCtx& c_;
  AttentionShape shape_;
  std::optional<size_t> mask_, random_key_;
  AttentionParallelDim parallel_dim_;
  DType dtype_;
  bool causal_, alibi_;
  double scale_, dropout_;
  int64_t blocks_;  ///< maximum number of blocks; scratch memory is indexed by block
  /// A strip has strip_vectors_ vectors of vector_lanes_ lanes.
  int64_t vector_lanes_, strip_vectors_;
  /// Rows, and vectors of columns, of the register tile of a matrix product.
  int64_t register_rows_, register_vectors_;
  int64_t strips_;  ///< strips of a block
  Expr block_, strip_;
  /// Elements of the random key: seed, run counter, stream. `first_head_` is the index of the first
  /// head of the batch in the global batch.
  Expr seed_, run_, stream_, first_head_;
};

}  // namespace fluid
