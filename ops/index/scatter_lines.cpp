#include <algorithm>
#include <array>

#include "ops/index/axis_attr.h"
#include "ops/index/scatter.h"

namespace fluid {
namespace {

Expr clamped(const Expr& index, const Expr& extent) {
  return scalar::max(Expr::index(0), scalar::min(index, extent - Expr::index(1)));
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
  c.require(updates.dtype == x.dtype && updates.shape == index.shape,
            "expects updates " + Type{x.dtype, index.shape, {}}.str() + ", one per index, got " +
                updates.str());
}

kir::Kernel scatter_lines_kernel(const LoopsCtx& c, const ScatterOperands& operands,
                                 const std::string& reduce) {
  const Type& type = c.out_type();
  const int64_t axis = nonnegative_axis(c.attrs(), type.shape);
  const AxisView to = view_along(type.shape, axis);
  const int64_t count = c.in_type(operands.index).shape[static_cast<size_t>(axis)].size;
  const Expr inner = c.extent(to.inner), extent = Expr::index(to.extent);
  KernelWriter k(c);
  const KernelWriter::Array index = k.operand(operands.index),
                            updates = k.operand(operands.updates);
  // Accumulates half-precision values in f32, so that each sum is rounded only once, at the end.
  const KernelWriter::Array sums =
      is_half_precision(type.dtype) ? k.scratch(f32, type.shape.numel()) : k.result();
  for_each_line(k, c, to, [&](const Expr& line, const Expr& first) {
    const Expr updates_of_line =
        scalar::floordiv(line, inner) * Expr::index(count) * inner + scalar::mod(line, inner);
    k.loop(Expr::index(0), extent, [&](const Expr& t) {
      const Expr at = first + t * inner;
      const Expr zero = Expr::constant(compute_dtype(type.dtype), 0);
      k.store(sums, at, operands.initial ? k.load(k.operand(*operands.initial), at) : zero);
    });
    k.loop(Expr::index(0), Expr::index(count), [&](const Expr& t) {
      const Expr from = updates_of_line + t * inner;
      const Expr given = k.let(scalar::cast(k.load(index, from), i64));
      const Expr at =
          first +
          (operands.initial ? k.check_index(0, given, extent) : clamped(given, extent)) * inner;
      k.store(sums, at, combine_update(reduce, k.load(sums, at), k.load(updates, from)));
    });
    if (sums.buffer == k.result().buffer) return;
    k.loop(Expr::index(0), extent, [&](const Expr& t) {
      k.store(k.result(), first + t * inner, k.load(sums, first + t * inner));
    });
  });
  return k.kernel();
}

}  // namespace fluid
