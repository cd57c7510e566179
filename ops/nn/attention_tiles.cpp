#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "ir/text.h"
#include "ops/elementwise.h"
#include "ops/nn/alibi.h"
#include "ops/nn/attention.h"
#include "ops/random/draw.h"

namespace fluid {
namespace {

// From this sequence length on, keys and values do not fit in the L2 cache of a core. A block then
// processes two strips per tile of rows, which halves the reads of the rows.
constexpr int64_t kLongSequence = 2048;
constexpr int64_t kStripVectors = 2;  // maximum number of vectors per strip

/// Returns the vector width in elements. CPU: f32 elements of an AVX-512 register. GPU: elements
/// that a block processes in parallel.
int64_t vector_lanes(KernelDevice device) { return device == KernelDevice::cpu ? 16 : 32; }

Expr ceil_div(const Expr& a, int64_t n) {
  return scalar::floordiv(a + Expr::index(n - 1), Expr::index(n));
}

int64_t ceil_div(int64_t a, int64_t n) { return (a + n - 1) / n; }

int64_t round_up(int64_t a, int64_t n) { return ceil_div(a, n) * n; }

}  // namespace

AttentionShape attention_shape(const Type& q, const Type& k, const Type& v) {
  const auto extent = [](const Type& t, size_t d) { return t.shape[d].size; };
  return {.batch = q.shape[0],
          .heads = extent(q, 1),
          .groups = extent(k, 1),
          .queries = extent(q, 2),
          .keys = extent(k, 2),
          .depth = extent(q, 3),
          .value_depth = extent(v, 3)};
}

void require_attention_operands(const InferCtx& c, const Type& q, const Type& k, const Type& v) {
  for (const Type* t : {&q, &k, &v}) {
    bool plain = is_float(t->dtype) && t->shape.size() == 4 && t->dtype == q.dtype;
    for (size_t d = 1; plain && d < 4; ++d) plain = !t->shape[d].batch;
    c.require(plain, "expects q, k and v of one float type [B, H, T, D], got " + t->str());
  }
  c.require(k.shape[0] == q.shape[0] && k.shape[3] == q.shape[3],
            "k " + k.str() + " has another batch or depth than q " + q.str());
  const Shape keys(k.shape.begin(), k.shape.end() - 1);
  c.require(Shape(v.shape.begin(), v.shape.end() - 1) == keys,
            "v " + v.str() + " has other heads or keys than k " + k.str());
  const int64_t heads = q.shape[1].size, groups = k.shape[1].size;
  c.require(groups > 0 && heads % groups == 0, std::to_string(heads) +
                                                   " heads of q are no multiple of " +
                                                   std::to_string(groups) + " heads of k");
  c.require(k.shape[2].size > 0, "there are no keys in " + k.str());
  require_finite(c, "scale");
}

void require_attention_mask(const InferCtx& c, const Type& mask, const Type& q, const Type& k) {
  const Shape scores = {q.shape[0], q.shape[1], q.shape[2], k.shape[2]};
  bool fits = mask.shape.size() <= scores.size();
  for (size_t d = 1; fits && d <= mask.shape.size(); ++d) {
    const Dim& extent = mask.shape[mask.shape.size() - d];
    fits = extent.is(1) || extent == scores[scores.size() - d];
  }
  c.require(fits && (mask.dtype == boolean || mask.dtype == q.dtype),
            "the mask must be bool or " + Type{q.dtype, scores, {}}.str() +
                ", or broadcast to this shape, not " + mask.str());
}

void require_attention_dropout(const InferCtx& c) {
  const double p = c.attr<double>("dropout");
  c.require(p >= 0 && p <= 1,
            "attribute 'dropout' must lie between 0 and 1, not be " + ir::float_text(p));
}

void require_random_key(const InferCtx& c, size_t random_key) {
  require_attention_dropout(c);
  if (c.has(random_key)) {
    c.require(c.in(random_key) == Type{i64, {4}, {}},
              "the random key must be i64[4], got " + c.in(random_key).str());
  } else {
    c.require(c.attr<double>("dropout") == 0, "dropout needs a random key");
  }
}

std::vector<AttrDef> attention_attrs() {
  return {{"causal", false, "whether query i sees only keys 0 to i"},
          {"scale", 0.0, "factor of the products; 0: 1 / sqrt(D)"},
          {"alibi", false, "whether the bias of op alibi is added to the scores"}};
}

std::vector<AttrDef> attention_kernel_attrs() {
  std::vector<AttrDef> attrs = attention_attrs();
  attrs.push_back({"dropout", 0.0, "probability that a softmax weight is dropped"});
  return attrs;
}

std::vector<PortDef> with_mask_and_random_key(std::vector<PortDef> inputs) {
  inputs.push_back(
      {.name = "mask", .doc = "bool or q's dtype, broadcasts to [B, H, T, S]", .optional = true});
  inputs.push_back(
      {.name = "random_key",
       .doc = "i64[4]: seed, run counter, index of the first sample, random stream of the dropout",
       .optional = true});
  return inputs;
}

double attention_scale(const Attrs& attrs, int64_t depth) {
  const double scale = attrs.get<double>("scale");
  return scale != 0 ? scale : 1 / std::sqrt(static_cast<double>(std::max<int64_t>(depth, 1)));
}

Cost attention_cost(const CostCtx& c, const AttentionShape& shape, int depth_products,
                    int value_depth_products) {
  constexpr double kSoftmaxFlops = 20;  // per score, without the matrix products
  const auto number = [](int64_t n) { return static_cast<double>(n); };
  const int64_t lanes = AttentionTiles::lanes_of(shape.queries, KernelDevice::cpu);
  const int64_t tiles = (shape.queries + lanes - 1) / lanes;
  double keys = number(shape.keys);  // mean number of keys that a query attends to
  if (c.attrs.get<bool>("causal")) {
    const double queries = number(std::max<int64_t>(shape.queries, 1));
    keys = queries < keys ? queries / 2 : keys - keys * keys / (2 * queries);
  }
  const double scores = number(shape.batch.size * shape.heads) * number(tiles * lanes) * keys;
  const double dropout = c.attrs.get_or("dropout", 0.0) != 0 ? kFlopsPerDropoutDraw : 0;
  return {.flops = scores * (2 * depth_products * number(shape.depth) +
                             2 * value_depth_products * number(shape.value_depth) + kSoftmaxFlops +
                             dropout)};
}

Type logsumexp_type(const Type& q) {
  return {compute_dtype(q.dtype), {q.shape[0], q.shape[1], q.shape[2]}, {}};
}

AttentionTiles::AttentionTiles(KernelWriter& writer, const LoopsCtx& c, const AttentionShape& shape,
                               size_t mask, AttentionParallelDim parallel_dim)
    : k_(writer),
      c_(c),
      shape_(shape),
      mask_(c.arity() > mask ? std::optional(mask) : std::nullopt),
      random_key_(c.arity() > mask + 1 ? std::optional(mask + 1) : std::nullopt),
      parallel_dim_(parallel_dim),
      dtype_(compute_dtype(c.in_type(0).dtype)),
      causal_(c.attr<bool>("causal")),
      alibi_(c.attr<bool>("alibi")),
      scale_(attention_scale(c.attrs(), shape.depth)),
      dropout_(c.attr<double>("dropout")),
      blocks_(preferred_blocks(c.device())),
      vector_lanes_(vector_lanes(c.device())),
      strip_vectors_(lanes_of(extent(), c.device()) / vector_lanes_),
      register_rows_(std::bit_floor(static_cast<uint64_t>(std::min(kRows, c.accumulators())))),
      register_vectors_(std::min(kStripVectors, c.accumulators() / register_rows_)),
      strips_(c.device() == KernelDevice::cpu && extent() >= kLongSequence ? 2 : 1),
      strip_(Expr::index(0)) {}

int64_t AttentionTiles::lanes_of(int64_t extent, KernelDevice device) {
  return vector_lanes(device) * (extent > vector_lanes(device) ? kStripVectors : 1);
}

AttentionTiles::Tile AttentionTiles::tile(int64_t rows) {
  const int64_t rounded = round_up(rows, kRows);
  return {k_.scratch(dtype_, blocks_ * rounded * lanes()), rounded, lanes(), false};
}

AttentionTiles::Tile AttentionTiles::tile_per_strip(int64_t rows) {
  const int64_t rounded = round_up(rows, kRows);
  return {k_.scratch(dtype_, blocks_ * strips_ * rounded * lanes()), rounded, lanes(), true};
}

AttentionTiles::Tile AttentionTiles::row_tile_per_strip(int64_t columns) {
  const int64_t rounded = round_up(columns, vector_lanes_);
  return {k_.scratch(dtype_, blocks_ * strips_ * lanes() * rounded), lanes(), rounded, true};
}

Expr AttentionTiles::offset(const Tile& tile, const Expr& row, const Expr& column) const {
  const Expr index = tile.per_strip ? block_ * Expr::index(strips_) + strip_ : block_;
  return (index * Expr::index(tile.rows) + row) * Expr::index(tile.columns) + column;
}

Expr AttentionTiles::load(const Tile& tile, const Expr& row, const Expr& column) const {
  return k_.load(tile.array, offset(tile, row, column));
}

void AttentionTiles::store(const Tile& tile, const Expr& row, const Expr& column,
                           const Expr& value) {
  k_.store(tile.array, offset(tile, row, column), value);
}

void AttentionTiles::fill(const Tile& tile, double value) {
  for_each_element(Expr::index(tile.rows), tile.columns, [&](const Expr& row, const Expr& column) {
    store(tile, row, column, Expr::constant(dtype_, value));
  });
}

void AttentionTiles::distribute(const Expr& total, const KernelWriter::LoopBody& body) {
  k_.blocks(scalar::min(total, Expr::index(blocks_)), [&](const Expr& block) {
    block_ = block;
    if (random_key_) load_random_key();
    // Round-robin balances the load of the blocks under a causal mask, where the work varies.
    k_.loop(Expr::index(0), ceil_div(total - block, blocks_),
            [&](const Expr& turn) { body(k_.let(block + turn * Expr::index(blocks_))); });
  });
}

void AttentionTiles::for_each_block(const Expr& heads, const Strips& body) {
  const Expr parts = Expr::index(ceil_div(extent(), block_extent()));
  distribute(heads * parts, [&](const Expr& part) {
    body(k_.let(scalar::floordiv(part, parts)),
         k_.let(scalar::mod(part, parts) * Expr::index(block_extent())));
  });
}

void AttentionTiles::for_each_head(const Expr& heads, const KernelWriter::LoopBody& begin,
                                   const Strips& body) {
  distribute(heads, [&](const Expr& head) {
    begin(head);
    k_.loop(Expr::index(0), Expr::index(ceil_div(extent(), block_extent())),
            [&](const Expr& part) { body(head, k_.let(part * Expr::index(block_extent()))); });
  });
}

void AttentionTiles::for_each_strip(const Expr& first, const KernelWriter::LoopBody& body) {
  if (strips_ == 1) return body(first);
  k_.loop(Expr::index(0), Expr::index(strips_), [&](const Expr& strip) {
    strip_ = strip;
    body(k_.let(first + strip * Expr::index(lanes())));
  });
}

void AttentionTiles::for_each_tile(
    const Expr& first,
    const std::function<void(const Expr& first_lane, const Expr& first_row, const Expr& count)>&
        body) {
  const bool query = parallel_dim_ == AttentionParallelDim::query;
  const Expr rows = Expr::index(row_extent()), size = Expr::index(kTileRows);
  // Causal mask: query i attends to keys 0 to i. If the block owns queries, the last key row is its
  // last query. If the block owns keys, the first query row is its first key.
  const auto end_of = [&](const Expr& from, int64_t count) {
    return causal_ && query ? scalar::min(rows, from + Expr::index(count)) : rows;
  };
  const Expr begin = causal_ && !query ? k_.let(scalar::min(first, rows)) : Expr::index(0);
  const Expr end = k_.let(end_of(first, strips_ * lanes()));
  k_.loop(Expr::index(0), ceil_div(end - begin, kTileRows), [&](const Expr& tile) {
    const Expr tile_begin = k_.let(begin + tile * size);
    for_each_strip(first, [&](const Expr& first_lane) {
      if (strips_ == 1) {
        return body(first_lane, tile_begin, k_.let(scalar::min(size, end - tile_begin)));
      }
      const Expr first_row =
          causal_ && !query ? k_.let(scalar::max(tile_begin, first_lane)) : tile_begin;
      const Expr count =
          k_.let(scalar::min(tile_begin + size, end_of(first_lane, lanes())) - first_row);
      // The last strip of a block may lie past the last query or key.
      const Expr has_rows = scalar::compare(ScalarOp::gt, count, Expr::index(0));
      const Expr has_lanes = scalar::compare(ScalarOp::lt, first_lane, Expr::index(extent()));
      k_.branch(scalar::logical_and(has_rows, has_lanes),
                [&] { body(first_lane, first_row, count); });
    });
  });
}

void AttentionTiles::for_each_element(const Expr& rows, int64_t columns, const RowColumn& body) {
  if (c_.device() == KernelDevice::cpu) {
    k_.loop(Expr::index(0), rows, [&](const Expr& row) {
      k_.vector_loop(Expr::index(0), Expr::index(columns),
                     [&](const Expr& column) { body(row, column); });
    });
    return;
  }
  k_.vector_loop(Expr::index(0), rows * Expr::index(columns), [&](const Expr& i) {
    const Expr row = k_.let(scalar::floordiv(i, Expr::index(columns)));
    body(row, k_.let(scalar::mod(i, Expr::index(columns))));
  });
}

Expr AttentionTiles::in_bounds(const Expr& index) const {
  if (extent() % lanes() == 0) return {};
  return scalar::compare(ScalarOp::lt, index, Expr::index(extent()));
}

Expr AttentionTiles::clamped_row(const Expr& index, int64_t extent) {
  if (extent % kRows == 0) return index;  // register tiles have no rows past the end
  return scalar::min(index, Expr::index(extent - 1));
}

void AttentionTiles::for_each_transposed(int64_t depth, const RowColumn& body) {
  const Expr count = Expr::index(lanes());
  if (c_.device() != KernelDevice::cpu) return for_each_element(count, depth, body);
  // Scalar loads and stores are faster than vector gathers and scatters.
  k_.loop(Expr::index(0), count, [&](const Expr& lane) {
    const int64_t whole = depth / kRows;
    k_.loop(Expr::index(0), Expr::index(whole), [&](const Expr& group) {
      k_.unroll(kRows, [&](const Expr& d) { body(lane, group * Expr::index(kRows) + d); });
    });
    k_.unroll(depth % kRows, [&](const Expr& d) { body(lane, Expr::index(whole * kRows) + d); });
  });
}

void AttentionTiles::load_transposed(const Tile& tile, size_t operand, const Expr& head,
                                     const Expr& first, int64_t depth) {
  for_each_transposed(depth, [&](const Expr& lane, const Expr& d) {
    const Expr row = scalar::min(first + lane, Expr::index(extent() - 1));
    const Expr from = (head * Expr::index(extent()) + row) * Expr::index(depth) + d;
    store(tile, d, lane, k_.load(k_.operand(operand), from));
  });
}

void AttentionTiles::store_rows(const Tile& tile, const KernelWriter::Array& result,
                                const Expr& head, const Expr& first, int64_t depth,
                                const Finish& finish) {
  const Expr count = scalar::min(Expr::index(lanes()), Expr::index(extent()) - first);
  for_each_element(count, depth, [&](const Expr& row, const Expr& d) {
    const Expr value = load(tile, row, d);
    k_.store(result, (head * Expr::index(extent()) + first + row) * Expr::index(depth) + d,
             finish ? finish(value, row) : value);
  });
}

void AttentionTiles::load_random_key() {
  const auto element = [&](int64_t i) {
    return k_.let(k_.load(k_.operand(*random_key_), Expr::index(i)));
  };
  seed_ = element(0);
  run_ = element(1);
  stream_ = element(3);
  first_head_ = shape_.batch.batch
                    ? k_.let(element(2) * Expr::index(shape_.batch.size * shape_.heads))
                    : Expr::index(0);
}

void AttentionTiles::matrix_product(const Expr& rows, int64_t columns, const Expr& depth,
                                    const Element& a, const Element& b, const Sum& finish) {
  // Computes a register tile: register_rows_ rows from `first` on, and `vectors` vectors of columns
  // from `column` on.
  const auto add_up = [&](const Expr& first, const Expr& column, int64_t vectors) {
    const auto at = [&](int64_t i) { return column + Expr::index(i * vector_lanes_); };
    const auto sums = k_.accumulators(dtype_, Combine::sum, {register_rows_, vectors});
    k_.loop(Expr::index(0), depth, [&](const Expr& d) {
      std::vector<Expr> right;
      for (int64_t i = 0; i < vectors; ++i) right.push_back(k_.let(b(d, at(i))));
      k_.unroll(register_rows_, [&](const Expr& row) {
        const Expr left = k_.let(a(first + row, d));
        for (int64_t i = 0; i < vectors; ++i) {
          const Expr term =
              Expr::make(ScalarOp::product, dtype_, {left, right[static_cast<size_t>(i)]});
          k_.accumulate(sums, term, {row, Expr::index(i)});
        }
      });
    });
    k_.unroll(register_rows_, [&](const Expr& row) {
      for (int64_t i = 0; i < vectors; ++i) {
        finish(first + row, at(i), k_.read(sums, {row, Expr::index(i)}));
      }
    });
  };
  const auto add_up_rows = [&](const Expr& first_column, int64_t vectors) {
    for_each_element(ceil_div(rows, register_rows_), vector_lanes_,
                     [&](const Expr& group, const Expr& lane) {
                       add_up(group * Expr::index(register_rows_), first_column + lane, vectors);
                     });
  };
  const int64_t vectors = ceil_div(columns, vector_lanes_);
  const int64_t chunks = vectors / register_vectors_, rest = vectors % register_vectors_;
  const int64_t chunk_columns = register_vectors_ * vector_lanes_;
  if (chunks == 1) {
    add_up_rows(Expr::index(0), register_vectors_);
  } else if (chunks > 1) {
    k_.loop(Expr::index(0), Expr::index(chunks), [&](const Expr& chunk) {
      add_up_rows(k_.let(chunk * Expr::index(chunk_columns)), register_vectors_);
    });
  }
  if (rest > 0) add_up_rows(Expr::index(chunks * chunk_columns), rest);
}

Expr AttentionTiles::column_in_bounds(const Expr& column, int64_t extent) const {
  if (extent % vector_lanes_ == 0) return {};
  return scalar::compare(ScalarOp::lt, column, Expr::index(extent));
}

AttentionTiles::Element AttentionTiles::rows_of(size_t operand, const Expr& first,
                                                int64_t depth) const {
  return [=, this, array = k_.operand(operand)](const Expr& i, const Expr& d) {
    const Expr offset = (first + i) * Expr::index(depth) + d;
    const Expr guard = column_in_bounds(d, depth);
    return guard ? k_.load_if(guard, array, offset, 0) : k_.load(array, offset);
  };
}

void AttentionTiles::multiply_rows(const Tile& weights, size_t operand, const Expr& head,
                                   const Expr& first_row, const Expr& count, int64_t depth,
                                   const Sum& finish) {
  matrix_product(
      Expr::index(lanes()), depth, count,
      [&](const Expr& lane, const Expr& i) { return load(weights, i, lane); },
      rows_of(operand, head * Expr::index(row_extent()) + first_row, depth), finish);
}

void AttentionTiles::multiply_lanes(const Tile& weights, size_t operand, const Expr& head,
                                    const Expr& first, const Expr& count, int64_t depth,
                                    const Sum& finish) {
  matrix_product(
      count, depth, scalar::min(Expr::index(lanes()), Expr::index(extent()) - first),
      [&](const Expr& i, const Expr& lane) { return load(weights, i, lane); },
      rows_of(operand, head * Expr::index(extent()) + first, depth), finish);
}

Expr AttentionTiles::score(const Expr& product, const Expr& head, const Expr& query,
                           const Expr& key) const {
  Expr score = product * scale_;
  const Expr heads = Expr::index(shape_.heads);
  if (alibi_) {
    score = score + alibi_bias(scalar::mod(head, heads), query, key,
                               {shape_.heads, shape_.queries, shape_.keys}, dtype_);
  }
  const Expr minus_infinity = Expr::constant(dtype_, -std::numeric_limits<double>::infinity());
  if (mask_) {
    const Type& type = c_.in_type(*mask_);
    const Expr& owned = parallel_dim_ == AttentionParallelDim::query ? query : key;
    const std::vector<Expr> index = {scalar::floordiv(head, heads), scalar::mod(head, heads), query,
                                     key};
    Expr offset = Expr::index(0);
    Expr guard;
    for (size_t d = 0; d < type.shape.size(); ++d) {
      const Dim& extent = type.shape[d];
      const Expr& at = index[index.size() - type.shape.size() + d];
      offset = offset * c_.extent(extent) + (extent.is(1) ? Expr::index(0) : at);
      if (at.get() == owned.get() && !extent.is(1)) guard = in_bounds(owned);
    }
    const KernelWriter::Array masks = k_.operand(*mask_);
    const Expr mask = guard ? k_.load_if(guard, masks, offset, 0) : k_.load(masks, offset);
    score = type.dtype == boolean ? scalar::select(mask, score, minus_infinity) : score + mask;
  }
  if (!causal_) return score;
  return scalar::select(
      scalar::compare(ScalarOp::le, scalar::cast(key, i32), scalar::cast(query, i32)), score,
      minus_infinity);
}

Expr AttentionTiles::dropout_factor(const Expr& head, const Expr& query, const Expr& key) const {
  const Expr row = (first_head_ + head) * Expr::index(shape_.queries) + query;
  const Expr bits = scalar::philox(seed_, run_, stream_, row * Expr::index(shape_.keys) + key);
  return scalar::select(dropout_keep_condition(bits, dropout_),
                        Expr::constant(dtype_, dropout_scale(dropout_)), Expr::constant(dtype_, 0));
}

}  // namespace fluid
