#include "ops/elementwise.h"
#include "ops/index/axis_attr.h"
#include "ops/kernel_writer.h"
#include "ops/operators.h"

namespace fluid {
namespace {

// Slices of dy with at least this many elements are processed in a vector loop.
constexpr int64_t kMinLaneSlice = 4;

std::vector<Type> infer_gather_grad(const InferCtx& c) {
  const Type& input = c.attr<Type>("input");
  const int64_t axis = nonnegative_axis(c, input.shape);
  Shape expected(input.shape.begin(), input.shape.begin() + axis);
  expected.insert(expected.end(), c.in(1).shape.begin(), c.in(1).shape.end());
  expected.insert(expected.end(), input.shape.begin() + axis + 1, input.shape.end());
  c.require(is_integer(c.in(1).dtype) && is_float(input.dtype) && c.in(0).dtype == input.dtype &&
                c.in(0).shape == expected,
            "expects dy " + Type{input.dtype, expected, {}}.str() + ", got " + c.in(0).str());
  return {input};
}

/// Each block owns a range of rows of the result. It reads all indices in order. For each index in
/// its range, it adds the corresponding slice of dy to the row.
kir::Kernel gather_grad_kernel(const LoopsCtx& c) {
  const Type& type = c.out_type();
  const AxisView view = view_along(type.shape, nonnegative_axis(c.attrs(), type.shape));
  const Expr outer = c.extent(view.outer), inner = c.extent(view.inner);
  const Expr rows = Expr::index(view.extent), count = c.extent(c.in_type(1).shape.numel());
  const int64_t ranges = std::min(view.extent, preferred_blocks(c.device()));
  const int64_t rows_per_range = (view.extent + ranges - 1) / std::max<int64_t>(ranges, 1);
  KernelWriter k(c);
  const KernelWriter::Array dy = k.operand(0), index = k.operand(1);
  const KernelWriter::Array sums =
      is_half(type.dtype) ? k.scratch(f32, type.shape.numel()) : k.result();
  const bool in_lanes = view.inner.batch || view.inner.size >= kMinLaneSlice;
  const auto for_each_element = [&](const KernelWriter::LoopBody& body) {
    in_lanes ? k.vector(Expr::index(0), inner, body) : k.loop(Expr::index(0), inner, body);
  };
  k.blocks(outer * Expr::index(ranges), [&](const Expr& block) {
    const Expr o = k.let(scalar::floordiv(block, Expr::index(ranges)));
    const Expr first = k.let(
        scalar::min(scalar::mod(block, Expr::index(ranges)) * Expr::index(rows_per_range), rows));
    const Expr last = k.let(scalar::min(first + Expr::index(rows_per_range), rows));
    const Expr begin = (o * rows + first) * inner, end = (o * rows + last) * inner;
    k.vector(begin, end, [&](const Expr& i) {
      k.store(sums, i, Expr::constant(compute_dtype(sums.dtype), 0));
    });
    k.loop(Expr::index(0), count, [&](const Expr& n) {
      const Expr row = k.let(scalar::cast(k.load(index, n), i64));
      const Expr owned = scalar::logical_and(scalar::compare(ScalarOp::ge, row, first),
                                             scalar::compare(ScalarOp::lt, row, last));
      k.branch(owned, [&] {
        for_each_element([&](const Expr& i) {
          const Expr at = (o * rows + row) * inner + i;
          k.store(sums, at, k.load(sums, at) + k.load(dy, (o * count + n) * inner + i));
        });
      });
    });
    if (sums.buffer == k.result().buffer) return;
    k.vector(begin, end, [&](const Expr& i) { k.store(k.result(), i, k.load(sums, i)); });
  });
  return k.kernel();
}

}  // namespace

OpDef gather_grad_op() {
  return OpDef{
      .name = "gather_grad",
      .doc =
          "Gradient of gather with respect to x: adds the slices of dy at the indices, in their "
          "order. An index out of range adds nothing.",
      .inputs = {{"dy", "gradient of gather's result"}, {"index", "index of gather"}},
      .attrs = {{"input", Type{}, "type of gather's x", true}, axis_attr("axis of gather", 0)},
      .outputs = {{"dx", "of type `input`"}},
      .infer = infer_gather_grad,
      .grad = GradFn([](const GradCtx& c) {
        return Values{gather(c.dout(0), c.in(1), {.axis = c.attr<int64_t>("axis")}), {}};
      }),
      .effects = Pure{},
      .amp = {Amp::kFollow},
      .cost = [](const CostCtx& c) { return Cost{.flops = c.numel_in(0) + c.numel_out()}; },
      .in_place = {},
      .lower = Loops{gather_grad_kernel},
      .kernels = {},
      .version = 1,
      .internal = true,
  };
}

}  // namespace fluid
