#include "codegen/schedule_product.h"

#include <algorithm>
#include <cmath>

#include "codegen/product_row.h"
#include "codegen/schedule_contraction.h"

namespace fluid {
namespace {

using Kind = kir::For::Kind;

constexpr double kMinBlockTerms = 200e3;  ///< minimum number of multiply-adds of a block

}  // namespace

MatrixProduct::MatrixProduct(KernelBuilder& builder, ProductGroup group)
    : b_(builder), group_(std::move(group)), blocking_(choose_blocking(b_, group_)) {}

std::optional<MatrixProduct> MatrixProduct::match(KernelBuilder& builder) {
  std::optional<ProductGroup> group = match_product(builder);
  if (!group) return std::nullopt;
  return MatrixProduct(builder, *std::move(group));
}

Expr MatrixProduct::row_count() const {
  return group_.row < 0 ? Expr::index(1) : extent_expr(b_.extent(group_.row));
}

Expr MatrixProduct::tile_count() const {
  return scalar::floordiv(row_count(), Expr::index(blocking_.mr));
}

/// Returns the estimated number of multiply-adds of mc x nc results.
double MatrixProduct::terms_of_block() const {
  const double rows = group_.row < 0 ? 1 : estimated_extent(b_.extent(group_.row));
  return estimated_extent(b_.extent(group_.depth)) *
         std::min(rows, static_cast<double>(blocking_.mc_tiles * blocking_.mr)) *
         std::min(estimated_extent(b_.extent(group_.column)), static_cast<double>(blocking_.nc));
}

int64_t MatrixProduct::block_rows() const { return blocking_.mc_tiles * blocking_.mr; }

bool MatrixProduct::has_strips(const RowTiles& tiles) const {
  return blocking_.kc > 0 && tiles.rows == blocking_.mr;
}

MatrixProduct::Strip MatrixProduct::whole_sum() const {
  return {.begin = Expr::index(0), .end = extent_expr(b_.extent(group_.depth))};
}

MatrixProduct::Strip MatrixProduct::strip_of_sum(const Expr& number) const {
  const Expr depth = extent_expr(b_.extent(group_.depth));
  const Expr begin = number * Expr::index(blocking_.kc);
  return {.begin = begin,
          .end = min_index(depth, begin + Expr::index(blocking_.kc)),
          .number = number,
          .count = ceil_div(depth, blocking_.kc)};
}

void MatrixProduct::add_local_buffers() {
  if (blocking_.kc == 0) return;
  const int64_t width = blocking_.nr_vectors * group_.lanes();
  partial_sums_ =
      b_.add_local_buffer(group_.accumulator_dtype(), blocking_.kc_panels * block_rows() * width);
  if (!blocking_.packs_left) return;
  packed_left_ = b_.add_local_buffer(group_.left.dtype(), blocking_.kc * block_rows());
}

void MatrixProduct::emit() {
  add_local_buffers();
  const Expr block = b_.new_var();
  b_.kernel.block_var = block.node().ivalue;
  const Expr all_columns = extent_expr(b_.extent(group_.column));
  const Expr ranges = ceil_div(ceil_div(row_count(), blocking_.mr), blocking_.mc_tiles);
  const Expr column_blocks = ceil_div(all_columns, blocking_.nc);
  const Expr count = trip_count(b_, group_.outer) * column_blocks * ranges;
  const auto per = static_cast<int64_t>(std::max(kMinBlockTerms / terms_of_block(), 1.0));
  b_.kernel.blocks = ceil_div(count, per);
  b_.kernel.flops_per_block = 2 * terms_of_block() * static_cast<double>(per);

  const Expr number = b_.new_var(), range = b_.new_var(), columns = b_.new_var();
  const Expr first = block * Expr::index(per);
  kir::Block* at = &add_loop(b_.kernel.body, number.node().ivalue, first,
                             min_index(count, first + Expr::index(per)));
  // Row ranges are innermost: consecutive blocks read the same columns of the right operand.
  std::vector<std::pair<int64_t, Expr>> dims = {{range.node().ivalue, ranges},
                                                {columns.node().ivalue, column_blocks}};
  for (size_t i = group_.outer.size(); i-- > 0;) {
    dims.emplace_back(group_.outer[i], extent_expr(b_.extent(group_.outer[i])));
  }
  at = &delinearize(b_, number, dims, *at);
  const bool one = is_constant(column_blocks, 1);
  first_column_ = one ? Expr::index(0) : columns * Expr::index(blocking_.nc);
  end_column_ =
      one ? all_columns : min_index(all_columns, first_column_ + Expr::index(blocking_.nc));
  if (group_.row < 0) return emit_rows({1, {}, Expr::index(0), Expr::index(1)}, *at);
  const Expr begin = range * Expr::index(blocking_.mc_tiles);
  const Expr end = min_index(tile_count(), begin + Expr::index(blocking_.mc_tiles));
  emit_rows({blocking_.mr, Expr::index(0), begin, end}, *at);
  const std::vector<int64_t> remainder = remainder_tiles(b_, group_, blocking_.mr);
  if (remainder.empty()) return;
  const Expr is_last = scalar::compare(ScalarOp::ge, range + Expr::index(1), ranges);
  kir::Block& last = is_constant(ranges, 1) ? *at : add_if(*at, is_last);
  Expr base = tile_count() * Expr::index(blocking_.mr);
  for (const int64_t size : remainder) {
    const Expr tiles = scalar::floordiv(row_count() - base, Expr::index(size));
    emit_rows({size, base, Expr::index(0), tiles}, last);
    base = base + tiles * Expr::index(size);
  }
}

/// Emits code for the columns of the current block.
void MatrixProduct::emit_rows(const RowTiles& tiles, kir::Block& out) {
  if (tiles.rows == 1 && streams_matrix(b_, group_)) return emit_single_rows(tiles, out);
  const int64_t vectors = widest_tile(b_, group_, blocking_, tiles.rows);
  if (vectors == 1 && !has_strips(tiles))
    return emit_masked_columns(tiles, first_column_, end_column_, out);
  const Expr panels =
      scalar::floordiv(end_column_ - first_column_, Expr::index(vectors * group_.lanes()));
  emit_full_panels(tiles, vectors, panels, out);
  emit_remaining_columns(tiles, vectors, panels, out);
}

void MatrixProduct::emit_single_rows(const RowTiles& tiles, kir::Block& out) {
  const Expr tile = b_.new_var();
  std::vector<FlatRoot> renamed = group_.roots;
  if (tiles.base) {
    for (FlatRoot& root : renamed) substitute(root, group_.row, tiles.base + tile);
  }
  emit_streamed_row(b_, group_, renamed, first_column_, end_column_, blocking_.nc,
                    add_loop(out, tile.node().ivalue, tiles.begin, tiles.end));
}

/// Emits code for `panels` panels of `vectors` vectors each.
void MatrixProduct::emit_full_panels(const RowTiles& tiles, int64_t vectors, const Expr& panels,
                                     kir::Block& out) {
  const Expr number = b_.new_var();
  const auto panel_loop = [&](kir::Block& block) -> kir::Block& {
    return add_loop(block, number.node().ivalue, Expr::index(0), panels);
  };
  Panel panel{.vectors = vectors,
              .begin = first_column_ + number * Expr::index(vectors * group_.lanes())};
  if (!has_strips(tiles)) return emit_tiles(tiles, panel, whole_sum(), panel_loop(out));
  const bool strips_of_panel = blocking_.kc_panels == 1;
  panel.number = strips_of_panel ? Expr::index(0) : number;
  const Expr strip_number = b_.new_var();
  const Strip strip = strip_of_sum(strip_number);
  // The batch size may leave no tile, for which nothing is packed.
  kir::Block* at = &add_if(out, scalar::compare(ScalarOp::lt, tiles.begin, tiles.end));
  if (strips_of_panel) at = &panel_loop(*at);
  at = &add_loop(*at, strip_number.node().ivalue, Expr::index(0), strip.count);
  if (packed_left_ >= 0) emit_left_packing(tiles, strip, *at);
  if (!strips_of_panel) at = &panel_loop(*at);
  emit_tiles(tiles, panel, strip, *at);
}

/// Emits code for the columns of the current block that `panels` panels of `vectors` vectors leave
/// over.
void MatrixProduct::emit_remaining_columns(const RowTiles& tiles, int64_t vectors,
                                           const Expr& panels, kir::Block& out) {
  const int64_t lanes = group_.lanes(), width = vectors * lanes;
  const Dim& extent = b_.extent(group_.column);
  const bool one = is_constant(first_column_, 0);
  if (extent.batch || (!one && blocking_.nc % width > 0)) {
    return emit_masked_columns(tiles, first_column_ + panels * Expr::index(width), end_column_,
                               out);
  }
  const int64_t left = extent.size % width, left_vectors = left / lanes;
  if (left == 0) return;
  const Expr begin = Expr::index(extent.size - left);
  kir::Block& last =
      one ? out : add_if(out, scalar::compare(ScalarOp::eq, end_column_, Expr::index(extent.size)));
  if (left_vectors > 0)
    emit_tiles(tiles, {.vectors = left_vectors, .begin = begin}, whole_sum(), last);
  if (left % lanes == 0) return;
  emit_masked_columns(tiles, begin + Expr::index(left_vectors * lanes), Expr::index(extent.size),
                      last);
}

/// Returns row `within` of tile `tile`, counted from tiles.begin.
Expr MatrixProduct::row(const RowTiles& tiles, const Expr& tile, const Expr& within) const {
  return tiles.base + (tiles.begin + tile) * Expr::index(tiles.rows) + within;
}

/// Emits code for columns [begin, end), one vector of columns after the other. The last one may be
/// partial.
void MatrixProduct::emit_masked_columns(const RowTiles& tiles, const Expr& begin, const Expr& end,
                                        kir::Block& out) {
  const Expr tile = b_.new_var(), within = b_.new_var();
  std::vector<FlatRoot> renamed = group_.roots;
  if (tiles.base) {
    for (FlatRoot& root : renamed) substitute(root, group_.row, row(tiles, tile, within));
  }
  const kir::Accumulator acc{
      b_.next_accumulator++, group_.accumulator_dtype(), Combine::sum, {tiles.rows}};
  const auto unrolled = [&](kir::Block& block) -> kir::Block& {
    return add_loop(block, within.node().ivalue, Expr::index(0), Expr::index(tiles.rows),
                    Kind::unroll);
  };
  kir::Block& lanes = add_loop(out, group_.column, begin, end, Kind::vector);
  kir::Block& body = add_loop(lanes, tile.node().ivalue, Expr::index(0), tiles.end - tiles.begin);
  body.push_back({acc});
  kir::Block& terms =
      add_loop(body, group_.depth, Expr::index(0), extent_expr(b_.extent(group_.depth)));
  unrolled(terms).push_back({kir::Accumulate{acc.id, {within}, renamed.front().body, {}}});
  emit_sum_results(b_, renamed, acc.id, {within}, false, unrolled(body));
}

/// Emits the micro-kernel for all tiles of a panel. Partial sums are read from memory before all
/// strips but the first, and written to memory after all but the last.
void MatrixProduct::emit_tiles(const RowTiles& tiles, const Panel& panel, const Strip& strip,
                               kir::Block& out) {
  const Expr tile = b_.new_var(), within = b_.new_var();
  const Expr vector = b_.new_var(), lane = b_.new_var();
  const Expr row_of_block = tile * Expr::index(tiles.rows) + within;
  const Expr column = vector * Expr::index(group_.lanes()) + lane;
  std::vector<FlatRoot> renamed = group_.roots;
  if (strip.number && packed_left_ >= 0) renamed.front().body = packed_term(strip, row_of_block);
  for (FlatRoot& root : renamed) {
    substitute(root, group_.column, panel.begin + column);
    if (tiles.base) substitute(root, group_.row, row(tiles, tile, within));
  }
  const DType dtype = group_.accumulator_dtype();
  const kir::Accumulator acc{
      b_.next_accumulator++, dtype, Combine::sum, {tiles.rows, panel.vectors}};
  const std::vector<Expr> index = {within, vector};
  const auto unrolled = [&](kir::Block& block) -> kir::Block& {
    kir::Block& rows = add_loop(block, within.node().ivalue, Expr::index(0),
                                Expr::index(tiles.rows), Kind::unroll);
    return add_loop(rows, vector.node().ivalue, Expr::index(0), Expr::index(panel.vectors),
                    Kind::unroll);
  };
  kir::Block& tile_body =
      add_loop(out, tile.node().ivalue, Expr::index(0), tiles.end - tiles.begin);
  if (strip.number && packed_left_ >= 0) {
    emit_left_prefetch(tiles, strip, panel.number * Expr::index(blocking_.mc_tiles) + tile,
                       tile_body);
  }
  kir::Block& body = add_loop(tile_body, lane.node().ivalue, Expr::index(0),
                              Expr::index(group_.lanes()), Kind::vector);
  body.push_back({acc});
  const auto add_terms = [&] {
    kir::Block& terms = add_loop(body, group_.depth, strip.begin, strip.end);
    unrolled(terms).push_back({kir::Accumulate{acc.id, index, renamed.front().body, {}}});
  };
  if (!strip.number) {
    add_terms();
    return emit_sum_results(b_, renamed, acc.id, index, false, unrolled(body));
  }
  const Expr row_of_panels = panel.number * Expr::index(block_rows()) + row_of_block;
  const Expr offset = row_of_panels * Expr::index(panel.vectors * group_.lanes()) + column;
  const Expr is_later = scalar::compare(ScalarOp::gt, strip.number, Expr::index(0));
  unrolled(add_if(body, is_later))
      .push_back({kir::Accumulate{acc.id, index, load(partial_sums_, dtype, offset), {}}});
  add_terms();
  const Expr next = strip.number + Expr::index(1);
  const Expr sum = read_accumulator(acc.id, dtype, index, false);
  unrolled(add_if(body, scalar::compare(ScalarOp::lt, next, strip.count)))
      .push_back({kir::StoreTo{partial_sums_, offset, sum, {}}});
  kir::Block& last = add_if(body, scalar::compare(ScalarOp::ge, next, strip.count));
  emit_sum_results(b_, renamed, acc.id, index, false, unrolled(last));
}

/// Returns the term of the sum, which reads row `row_of_block` of the packed left operand.
Expr MatrixProduct::packed_term(const Strip& strip, const Expr& row_of_block) const {
  const Expr term = Expr::var(group_.depth) - strip.begin;
  const Expr packed =
      load(packed_left_, group_.left.dtype(), term * Expr::index(block_rows()) + row_of_block);
  return rewrite(group_.roots.front().body,
                 [&](const Expr& e) { return e.get() == group_.left.get() ? packed : Expr(); });
}

/// Copies the block's rows of a transposed left operand, in a strip. A tile would read a short
/// stretch of a page for each term.
void MatrixProduct::emit_left_packing(const RowTiles& tiles, const Strip& strip, kir::Block& out) {
  const Expr row_of_block = b_.new_var();
  const Expr term = Expr::var(group_.depth) - strip.begin;
  const Expr first = tiles.base + tiles.begin * Expr::index(tiles.rows);
  kir::Block& terms = add_loop(out, group_.depth, strip.begin, strip.end);
  kir::Block& rows = add_loop(terms, row_of_block.node().ivalue, Expr::index(0),
                              (tiles.end - tiles.begin) * Expr::index(tiles.rows), Kind::vector);
  rows.push_back({kir::StoreTo{packed_left_,
                               term * Expr::index(block_rows()) + row_of_block,
                               replace_var(group_.left, group_.row, first + row_of_block),
                               {}}});
}

/// Prefetches a part of what emit_left_packing() reads in the next strip, where the hardware does
/// not prefetch. `turn`: index of the tile among those of all panels; each tile prefetches the same
/// number of terms.
void MatrixProduct::emit_left_prefetch(const RowTiles& tiles, const Strip& strip, const Expr& turn,
                                       kir::Block& out) {
  const int64_t buffer = group_.left.node().ivalue;
  const int64_t line =
      kir::kVectorBytes / size_of(b_.kernel.buffers[static_cast<size_t>(buffer)].dtype);
  const int64_t terms = ceil_of(blocking_.kc, blocking_.kc_panels * blocking_.mc_tiles);
  const Expr term = b_.new_var(), number = b_.new_var();
  const Expr first_row = tiles.base + tiles.begin * Expr::index(tiles.rows);
  Expr offset =
      replace_var(group_.left.args()[0], group_.row, first_row + number * Expr::index(line));
  offset = replace_var(offset, group_.depth, strip.end + turn * Expr::index(terms) + term);
  kir::Block& lines =
      add_loop(add_loop(out, term.node().ivalue, Expr::index(0), Expr::index(terms), Kind::unroll),
               number.node().ivalue, Expr::index(0), Expr::index(ceil_of(block_rows(), line) + 1),
               Kind::unroll);
  lines.push_back({kir::Prefetch{buffer, offset}});
}

}  // namespace fluid
