#include <algorithm>
#include <array>

#include "ops/index/axis_attr.h"
#include "ops/index/scatter.h"

namespace fluid {
namespace {

Expr clamped(const Expr& index, const Expr& extent) {
  return scalar::max(Expr::index(0), scalar::min(index, extent - Expr::index(1)));
}

/// Locates the elements of operand `index` (and of `updates`) that correspond to one line, a 1-D
/// slice of the result along the axis.
struct LineOfIndex {
  Expr first;    ///< offset in `index` of the first element of the line
  Expr covered;  ///< whether `index` has elements for the line; null: true
};

/// Locates line `line` of `x`. The lines along `axis` are numbered in row-major order of the other
/// dimensions.
LineOfIndex line_of_index(const LoopsCtx& c, const Shape& index, const Shape& x, int64_t axis,
                          const Expr& line) {
  const auto at = static_cast<size_t>(axis);
  const Expr inner = c.extent(Shape(x.begin() + axis + 1, x.end()).numel());
  if (equal_except_along(index, x, axis)) {
    return {scalar::floordiv(line, inner) * Expr::index(index[at].size) * inner +
                scalar::mod(line, inner),
            {}};
  }
  LineOfIndex found{Expr::index(0), {}};
  Expr rest = line, stride = Expr::index(1);
  for (size_t d = x.size(); d-- > 0;) {
    const Expr extent = c.extent(index[d]);
    if (d != at) {
      const Expr coordinate = scalar::mod(rest, c.extent(x[d]));
      const Expr inside = scalar::compare(ScalarOp::lt, coordinate, extent);
      rest = scalar::floordiv(rest, c.extent(x[d]));
      found.first = found.first + coordinate * stride;
      found.covered = found.covered ? scalar::logical_and(found.covered, inside) : inside;
    }
    stride = stride * extent;
  }
  return found;
}

}  // namespace

Expr combine_update(const std::string& reduce, const Expr& old, const Expr& update) {
  if (reduce == "add") return old + update;
  if (reduce == "mul") return old * update;
  if (reduce == "max") return scalar::max(old, update);
  if (reduce == "min") return scalar::min(old, update);
  return update;
}

bool is_scatter_reduction(const std::string& reduce) {
  static constexpr std::array<std::string_view, 5> kAll = {"none", "add", "mul", "max", "min"};
  return std::ranges::find(kAll, reduce) != kAll.end();
}

void require_scatter_shapes(const InferCtx& c, const Type& x, const Type& index,
                            const Type& updates, int64_t axis) {
  require_index_along(c, x, index, axis);
  const auto at = static_cast<size_t>(axis);
  c.require(!x.shape[at].is(0) || index.shape[at].is(0),
            "axis " + std::to_string(axis) + " of " + x.str() + " is empty");
  c.require(updates.dtype == x.dtype && updates.shape == index.shape,
            "expects updates " + Type{x.dtype, index.shape, {}}.str() + ", one per index, got " +
                updates.str());
}

kir::Kernel scatter_lines_kernel(const LoopsCtx& c, const ScatterOperands& operands,
                                 const std::string& reduce) {
  const Type& type = c.out_type();
  const int64_t axis = nonnegative_axis(c.attrs(), type.shape);
  const AxisView to = view_along(type.shape, axis);
  const Shape& index_shape = c.in_type(operands.index).shape;
  const int64_t count = index_shape[static_cast<size_t>(axis)].size;
  const Expr inner = c.extent(to.inner), extent = Expr::index(to.extent);
  const Expr index_inner = c.extent(view_along(c.in_type(operands.index).shape, axis).inner);
  KernelWriter k(c);
  const KernelWriter::Array index = k.operand(operands.index),
                            updates = k.operand(operands.updates);
  // Accumulates half-precision values in f32, so that each sum is rounded only once, at the end.
  const KernelWriter::Array sums =
      is_half_precision(type.dtype) ? k.scratch(f32, type.shape.numel()) : k.result();
  for_each_line(k, c, to, [&](const Expr& line, const Expr& first) {
    const auto [updates_of_line, covered] = line_of_index(c, index_shape, type.shape, axis, line);
    const auto load = [&](const KernelWriter::Array& from, const Expr& at) {
      return covered ? k.load_if(covered, from, at, 0) : k.load(from, at);
    };
    k.loop(Expr::index(0), extent, [&](const Expr& t) {
      const Expr at = first + t * inner;
      const Expr zero = Expr::constant(compute_dtype(type.dtype), 0);
      k.store(sums, at, operands.initial ? k.load(k.operand(*operands.initial), at) : zero);
    });
    k.loop(Expr::index(0), Expr::index(count), [&](const Expr& t) {
      const Expr from = updates_of_line + t * index_inner;
      const Expr given = k.let(scalar::cast(load(index, from), i64));
      const Expr at =
          first +
          (operands.initial ? k.check_index(0, given, extent) : clamped(given, extent)) * inner;
      k.store(sums, at, combine_update(reduce, k.load(sums, at), load(updates, from)), covered);
    });
    if (sums.buffer == k.result().buffer) return;
    k.loop(Expr::index(0), extent, [&](const Expr& t) {
      k.store(k.result(), first + t * inner, k.load(sums, first + t * inner));
    });
  });
  return k.kernel();
}

}  // namespace fluid
