#include <bit>

#include "ops/elementwise.h"
#include "ops/index/axis_attr.h"
#include "ops/index/sort.h"
#include "ops/internal_functions.h"

namespace fluid {
namespace {

/// Whether `a` comes before `b`. As in PyTorch, NaN is last in ascending order and first in
/// descending order.
Expr precedes(const Expr& a, const Expr& b, bool descending) {
  if (descending) return precedes(b, a, false);
  Expr less = scalar::compare(ScalarOp::lt, a, b);
  if (!is_float(a.dtype())) return less;
  const Expr a_is_nan = scalar::compare(ScalarOp::ne, a, a);
  const Expr b_is_nan = scalar::compare(ScalarOp::ne, b, b);
  return scalar::logical_or(less, scalar::logical_and(b_is_nan, scalar::logical_not(a_is_nan)));
}

/// The elements to sort, and their indices along the axis.
struct Keys {
  KernelWriter::Array value, index;
};

/// A line of `elements` elements, which consists of sorted runs of `run` elements. The last run may
/// be shorter.
struct Runs {
  int64_t elements = 0, run = 1;

  /// Returns the runs after the next merge pass. The pass merges pairs of runs, and truncates each
  /// merged run to `keep` elements.
  Runs merged(int64_t keep) const {
    const int64_t pair = 2 * run, length = std::min(pair, keep);
    return {elements / pair * length + std::min(elements % pair, length), length};
  }
  int64_t search_steps() const {
    return static_cast<int64_t>(std::bit_width(static_cast<uint64_t>(run)));
  }
};

/// Merges pairs of adjacent runs of the line that starts at offset `line`. Finds the position of
/// each element in the merged run by binary search in the other run.
void merge_runs(KernelWriter& k, const Keys& from, const Keys& to, const Expr& line,
                const Runs& runs, const Runs& merged, bool descending) {
  const Expr width = Expr::index(runs.run), all = Expr::index(runs.elements);
  k.vector_loop(Expr::index(0), all, [&](const Expr& t) {
    const Expr pair = k.let(scalar::floordiv(t, Expr::index(2 * runs.run)));
    const Expr first = k.let(pair * Expr::index(2 * runs.run));
    const Expr middle = scalar::min(first + width, all);
    const Expr end = scalar::min(first + Expr::index(2 * runs.run), all);
    const Expr is_left = k.let(scalar::compare(ScalarOp::lt, t, middle));
    const Expr other = k.let(scalar::select(is_left, middle, first));
    const Expr others = k.let(scalar::select(is_left, end, middle) - other);
    const Expr x = k.let(k.load(from.value, line + t));
    const auto before = k.accumulators(i64);  // number of elements of the other run that precede x
    for (auto step = int64_t{1} << (runs.search_steps() - 1); step > 0; step /= 2) {
      const Expr next = k.let(k.read(before) + Expr::index(step));
      const Expr exists = scalar::compare(ScalarOp::le, next, others);
      const Expr y = k.let(k.load_if(exists, from.value, line + other + next - Expr::index(1), 0));
      const Expr comes_first = scalar::select(is_left, precedes(y, x, descending),
                                              scalar::logical_not(precedes(x, y, descending)));
      k.accumulate(before, scalar::select(scalar::logical_and(exists, comes_first),
                                          Expr::index(step), Expr::index(0)));
    }
    const Expr position = k.let(t - scalar::select(is_left, first, middle) + k.read(before));
    const Expr kept = merged.run < 2 * runs.run
                          ? scalar::compare(ScalarOp::lt, position, Expr::index(merged.run))
                          : Expr();
    const Expr at = line + pair * Expr::index(merged.run) + position;
    k.store(to.value, at, x, kept);
    k.store(to.index, at, k.load(from.index, line + t), kept);
  });
}

}  // namespace

int64_t require_sortable(const InferCtx& c) {
  require_numeric(c, 0);
  const int64_t axis = nonnegative_axis(c, c.in(0).shape);
  c.require(c.in(0).shape[static_cast<size_t>(axis)].size <= INT32_MAX,
            "cannot sort more than 2^31 - 1 elements");
  return axis;
}

int64_t sorted_extent(const Attrs& attrs, const Shape& shape) {
  return shape[static_cast<size_t>(nonnegative_axis(attrs, shape))].size;
}

Values sort_grad(const GradCtx& c) {
  if (!c.dout(0)) return {Value()};
  return {internal::scatter_add(c.dout(0), c.out(1),
                                {.to = c.in(0).type(), .axis = c.attr<int64_t>("axis")})};
}

double sort_flops(const CostCtx& c, int64_t keep) {
  const int64_t extent = sorted_extent(c.attrs, c.in[0].shape);
  double steps = 0;  // number of binary search steps per line
  for (Runs runs{extent}; keep > 0 && runs.run < runs.elements; runs = runs.merged(keep)) {
    steps += static_cast<double>(runs.elements * runs.search_steps());
  }
  return c.numel_in(0) / static_cast<double>(std::max<int64_t>(extent, 1)) * steps;
}

kir::Kernel sort_kernel(const LoopsCtx& c, const LineSort& sort) {
  const Type& type = c.in_type(0);
  const AxisView view = view_along(type.shape, sort.axis);
  const Expr inner = c.extent(view.inner), keep = Expr::index(sort.keep);
  const Expr extent = Expr::index(view.extent);
  KernelWriter k(c);
  const Dim elements = type.shape.numel();
  Keys from = {k.scratch(type.dtype, elements), k.scratch(i32, elements)};
  Keys to = {k.scratch(type.dtype, elements), k.scratch(i32, elements)};
  k.blocks(c.extent(view.outer) * inner, [&](const Expr& line) {
    const Expr o = k.let(scalar::floordiv(line, inner)), i = k.let(scalar::mod(line, inner));
    const Expr first = k.let(o * extent * inner + i), result = k.let(o * keep * inner + i);
    const Expr own = k.let(line * extent);
    k.vector_loop(Expr::index(0), extent, [&](const Expr& t) {
      k.store(from.value, own + t, k.load(k.operand(0), first + t * inner));
      k.store(from.index, own + t, scalar::cast(t, i32));
    });
    for (Runs runs{view.extent}; sort.keep > 0 && runs.run < runs.elements;) {
      const Runs merged = runs.merged(sort.keep);
      merge_runs(k, from, to, own, runs, merged, sort.descending);
      std::swap(from, to);
      runs = merged;
    }
    k.vector_loop(Expr::index(0), keep, [&](const Expr& t) {
      k.store(k.result(0), result + t * inner, k.load(from.value, own + t));
      k.store(k.result(1), result + t * inner, scalar::cast(k.load(from.index, own + t), i64));
    });
  });
  return k.kernel();
}

}  // namespace fluid
