#include "ops/index/sort.h"

#include "ops/elementwise.h"
#include "ops/index/axis_attr.h"
#include "ops/internal_functions.h"
#include "ops/kernel_writer.h"

namespace fluid {
namespace {

/// Whether `a` comes before `b`: in ascending order NaN comes last, in descending order first, as
/// in PyTorch.
Expr precedes(const Expr& a, const Expr& b, bool descending) {
  if (descending) return precedes(b, a, false);
  const Expr less = scalar::compare(ScalarOp::lt, a, b);
  if (!is_float(a.dtype())) return less;
  const Expr a_is_nan = scalar::compare(ScalarOp::ne, a, a);
  const Expr b_is_nan = scalar::compare(ScalarOp::ne, b, b);
  return scalar::logical_or(less, scalar::logical_and(b_is_nan, scalar::logical_not(a_is_nan)));
}

/// Elements of a line and their indices along the axis.
struct Keys {
  KernelWriter::Array value, index;
};

/// Merges sorted runs of `width` elements of the line that starts at offset `line` pairwise. Each
/// element finds its place in the merged run by binary search in the other run. Equal elements keep
/// their order.
void merge_runs(KernelWriter& k, const Keys& from, const Keys& to, const Expr& line, int64_t extent,
                int64_t width, bool descending) {
  k.vector(Expr::index(0), Expr::index(extent), [&](const Expr& t) {
    const Expr first = k.let(t - scalar::mod(t, Expr::index(2 * width)));
    const Expr middle = scalar::min(first + Expr::index(width), Expr::index(extent));
    const Expr end = scalar::min(first + Expr::index(2 * width), Expr::index(extent));
    const Expr is_left = k.let(scalar::compare(ScalarOp::lt, t, middle));
    const Expr other = k.let(scalar::select(is_left, middle, first));
    const Expr others = k.let(scalar::select(is_left, end, middle) - other);
    const Expr x = k.let(k.load(from.value, line + t));
    const auto before = k.accumulators(i64);  // how many elements of the other run precede x
    for (int64_t step = width; step > 0; step /= 2) {
      const Expr next = k.let(k.read(before) + Expr::index(step));
      const Expr exists = scalar::compare(ScalarOp::le, next, others);
      const Expr y = k.let(k.load_if(exists, from.value, line + other + next - Expr::index(1), 0));
      const Expr comes_first = scalar::select(is_left, precedes(y, x, descending),
                                              scalar::logical_not(precedes(x, y, descending)));
      k.accumulate(before, scalar::select(scalar::logical_and(exists, comes_first),
                                          Expr::index(step), Expr::index(0)));
    }
    const Expr place = scalar::select(is_left, t, t - Expr::index(width)) + k.read(before);
    k.store(to.value, line + place, x);
    k.store(to.index, line + place, k.load(from.index, line + t));
  });
}

kir::Kernel sort_kernel(const LoopsCtx& c) {
  const Type& type = c.in_type(0);
  const AxisView view = view_along(type.shape, axis_within(c.attrs(), type.shape));
  const Expr inner = c.extent(view.inner), extent = Expr::index(view.extent);
  const bool descending = c.attr<bool>("descending");
  KernelWriter k(c);
  const Dim elements = type.shape.numel();
  Keys from = {k.scratch(type.dtype, elements), k.scratch(i32, elements)};
  Keys to = {k.scratch(type.dtype, elements), k.scratch(i32, elements)};
  k.blocks(c.extent(view.outer) * inner, [&](const Expr& line) {
    const Expr first =
        k.let(scalar::floordiv(line, inner) * extent * inner + scalar::mod(line, inner));
    const Expr own = k.let(line * extent);
    k.vector(Expr::index(0), extent, [&](const Expr& t) {
      k.store(from.value, own + t, k.load(k.operand(0), first + t * inner));
      k.store(from.index, own + t, scalar::cast(t, i32));
    });
    for (int64_t width = 1; width < view.extent; width *= 2) {
      merge_runs(k, from, to, own, view.extent, width, descending);
      std::swap(from, to);
    }
    k.vector(Expr::index(0), extent, [&](const Expr& t) {
      k.store(k.result(0), first + t * inner, k.load(from.value, own + t));
      k.store(k.result(1), first + t * inner, scalar::cast(k.load(from.index, own + t), i64));
    });
  });
  return k.kernel();
}

}  // namespace

int64_t require_sortable(const InferCtx& c) {
  require_numeric(c, 0);
  const int64_t axis = axis_within(c, c.in(0).shape);
  c.require(c.in(0).shape[static_cast<size_t>(axis)].size <= INT32_MAX,
            "cannot sort more than 2^31 - 1 elements");
  return axis;
}

double sort_flops(const CostCtx& c) {
  double steps = 0;  // of the binary searches
  const int64_t axis = axis_within(c.attrs, c.in[0].shape);
  const int64_t extent = c.in[0].shape[static_cast<size_t>(axis)].size;
  for (int64_t width = 1, search = 1; width < extent; width *= 2) {
    steps += static_cast<double>(search++);
  }
  return c.numel_in(0) * steps;
}

OpDef sort_op() {
  return OpDef{
      .name = "sort",
      .doc =
          "Sorts along `axis`; equal elements keep their order, and NaN counts as the largest "
          "value, as in torch.sort with stable=True. The gradient of a value goes to the element "
          "that it comes from.",
      .inputs = {{"x", "numeric tensor, rank >= 1"}},
      .attrs = {axis_attr("axis to sort along", -1),
                {"descending", false, "whether the largest value comes first"}},
      .outputs = {{"value", "same type as x"}, {"index", "i64, x's shape: indices along the axis"}},
      .infer =
          [](const InferCtx& c) {
            require_sortable(c);
            return std::vector{c.in(0), Type{i64, c.in(0).shape, {}}};
          },
      .grad = GradFn([](const GradCtx& c) {
        if (!c.dout(0)) return Values{{}};
        return Values{internal::scatter_add(
            c.dout(0), c.out(1), {.to = c.in(0).type(), .axis = c.attr<int64_t>("axis")})};
      }),
      .effects = Pure{},
      .amp = {Amp::kFollow},
      .cost = [](const CostCtx& c) { return Cost{.flops = sort_flops(c)}; },
      .in_place = {{0, 0}},
      .lower = Loops{sort_kernel},
      .kernels = {},
      .version = 1,
  };
}

}  // namespace fluid
