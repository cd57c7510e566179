#include "ops/index/scatter_rows.h"

#include "ops/index/scatter.h"

namespace fluid {
namespace {

// Minimum trip count of a vector loop. Shorter loops are scalar.
constexpr int64_t kMinLaneElements = 4;

}  // namespace

/// Each block computes some rows of the result. It reads all indices, but applies only the updates
/// of its own rows.
void scatter_rows(KernelWriter& k, const LoopsCtx& c, const RowScatter& s) {
  const Type& type = c.out_type();
  const Expr outer = c.extent(s.outer), inner = c.extent(s.inner), count = c.extent(s.count);
  const Expr rows = Expr::index(s.rows);
  const int64_t ranges = std::min(s.rows, preferred_blocks(c.device()));
  const int64_t rows_per_range = (s.rows + ranges - 1) / std::max<int64_t>(ranges, 1);
  const KernelWriter::Array sums =
      is_half_precision(type.dtype) ? k.scratch(f32, type.shape.numel()) : k.result();
  const Expr zero = Expr::constant(compute_dtype(type.dtype), 0);
  const auto for_each = [&](int64_t elements, const Expr& begin, const Expr& end,
                            const KernelWriter::LoopBody& body) {
    const bool in_lanes = s.inner.batch || elements >= kMinLaneElements;
    in_lanes ? k.vector_loop(begin, end, body) : k.loop(begin, end, body);
  };
  const int64_t block_elements = rows_per_range * s.inner.size;
  k.blocks(outer * Expr::index(ranges), [&](const Expr& block) {
    const Expr o = k.let(scalar::floordiv(block, Expr::index(ranges)));
    const Expr first = k.let(
        scalar::min(scalar::mod(block, Expr::index(ranges)) * Expr::index(rows_per_range), rows));
    const Expr last = k.let(scalar::min(first + Expr::index(rows_per_range), rows));
    const Expr begin = (o * rows + first) * inner, end = (o * rows + last) * inner;
    for_each(block_elements, begin, end,
             [&](const Expr& i) { k.store(sums, i, s.initial ? s.initial(i) : zero); });
    k.loop(Expr::index(0), count, [&](const Expr& n) {
      const Expr row = k.let(s.row(o, n));
      const Expr owned = scalar::logical_and(scalar::compare(ScalarOp::ge, row, first),
                                             scalar::compare(ScalarOp::lt, row, last));
      k.branch(owned, [&] {
        for_each(s.inner.size, Expr::index(0), inner, [&](const Expr& i) {
          const Expr at = (o * rows + row) * inner + i;
          const Expr update = s.update(o * count + n, i);
          k.store(sums, at, combine_update(s.reduce, k.load(sums, at), update));
        });
      });
    });
    if (sums.buffer == k.result().buffer) return;
    for_each(block_elements, begin, end,
             [&](const Expr& i) { k.store(k.result(), i, k.load(sums, i)); });
  });
}

}  // namespace fluid
