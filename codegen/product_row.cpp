#include "codegen/product_row.h"

#include <array>

#include "codegen/schedule_contraction.h"

namespace fluid {
namespace {

using Kind = kir::For::Kind;

// Number of rows of the matrix that are read together.
constexpr int64_t kStreamedRows = 8;
// Minimum bytes of a matrix, counted in the dtype of the accumulators. Smaller matrices are in the
// L2 cache.
constexpr int64_t kMinStreamedBytes = int64_t{2} << 20;
// Columns of a block, widest first. A size is used if it leaves kMinStreamedBlocks blocks. Longer
// parts of a row are read faster. Eight threads that read a matrix need the bandwidth of most
// memories.
constexpr std::array<int64_t, 2> kStreamedColumns = {1024, 512};
constexpr int64_t kMinStreamedBlocks = 8;
// How many groups of kStreamedRows rows a prefetch is ahead. The rows of a group lie on other pages
// than those of the group before, where the hardware does not prefetch.
constexpr int64_t kPrefetchedGroups = 2;

}  // namespace

bool streams_matrix(const KernelBuilder& b, const ProductGroup& group) {
  const Dim &rows = b.extent(group.depth), &columns = b.extent(group.column);
  if (rows.batch || columns.batch) return false;
  const bool may_be_single = group.row < 0 || b.extent(group.row).batch;
  const int64_t bytes = rows.size * columns.size * size_of(group.accumulator_dtype());
  return may_be_single && rows.size >= kStreamedRows && columns.size >= kMinStreamedColumns &&
         bytes >= kMinStreamedBytes;
}

std::optional<int64_t> streamed_columns(int64_t columns) {
  for (const int64_t streamed : kStreamedColumns) {
    if (columns >= kMinStreamedBlocks * streamed) return streamed;
  }
  return std::nullopt;
}

void emit_streamed_row(KernelBuilder& b, const ProductGroup& group,
                       const std::vector<FlatRoot>& roots, const Expr& begin, const Expr& end,
                       int64_t block_columns, kir::Block& out) {
  const int64_t rows = b.extent(group.depth).size;
  const DType dtype = group.accumulator_dtype();
  const Expr width = Expr::index(group.lanes());
  const Expr vector = b.new_var(), lane = b.new_var();
  const Expr vectors = scalar::floordiv(end - begin, width);
  std::vector<FlatRoot> renamed = roots;
  for (FlatRoot& root : renamed) substitute(root, group.column, begin + vector * width + lane);
  kir::Block& body = add_loop(out, lane.node().ivalue, Expr::index(0), width, Kind::vector);
  const int64_t id = b.next_accumulator++;
  body.push_back(
      {kir::Accumulator{id, dtype, Combine::sum, {ceil_of(block_columns, group.lanes())}}});
  const auto vector_loop = [&](kir::Block& block) -> kir::Block& {
    return add_loop(block, vector.node().ivalue, Expr::index(0), vectors);
  };
  const Expr number = b.new_var(), within = b.new_var();
  FlatRoot grouped = renamed.front();
  substitute(grouped, group.depth, number * Expr::index(kStreamedRows) + within);
  kir::Block& full_groups =
      add_loop(body, number.node().ivalue, Expr::index(0), Expr::index(rows / kStreamedRows));
  kir::Block& rows_of_group = add_loop(vector_loop(full_groups), within.node().ivalue,
                                       Expr::index(0), Expr::index(kStreamedRows), Kind::unroll);
  for (const Expr& load : loads_of(grouped.body)) {
    if (!depends_on(load.args()[0], vector.node().ivalue)) continue;
    const Expr ahead =
        replace_var(load.args()[0], number.node().ivalue, number + Expr::index(kPrefetchedGroups));
    rows_of_group.push_back({kir::Prefetch{load.node().ivalue, ahead}});
  }
  rows_of_group.push_back({kir::Accumulate{id, {vector}, grouped.body, {}}});
  if (rows % kStreamedRows > 0) {
    kir::Block& rest =
        add_loop(body, group.depth, Expr::index(rows - rows % kStreamedRows), Expr::index(rows));
    vector_loop(rest).push_back({kir::Accumulate{id, {vector}, renamed.front().body, {}}});
  }
  emit_sum_results(b, renamed, id, {vector}, false, vector_loop(body));
  if (b.extent(group.column).size % group.lanes() == 0) return;
  kir::Block& last = add_loop(out, group.column, begin + vectors * width, end, Kind::vector);
  const kir::Accumulator acc{b.next_accumulator++, dtype, Combine::sum, {}};
  last.push_back({acc});
  add_loop(last, group.depth, Expr::index(0), Expr::index(rows))
      .push_back({kir::Accumulate{acc.id, {}, roots.front().body, {}}});
  emit_sum_results(b, roots, acc.id, {}, false, last);
}

}  // namespace fluid
