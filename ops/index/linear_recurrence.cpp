#include "ops/elementwise.h"
#include "ops/index/axis_attr.h"
#include "ops/index/cumulative.h"
#include "ops/internal_functions.h"
#include "ops/operators.h"

namespace fluid {
namespace {

kir::Kernel linear_recurrence_kernel(const LoopsCtx& c) {
  const Type& type = c.out_type();
  const AxisView view = view_along(type.shape, nonnegative_axis(c.attrs(), type.shape));
  const bool reverse = c.attr<bool>("reverse");
  const DType compute = compute_dtype(type.dtype);
  const Expr inner = c.extent(view.inner), last = Expr::index(view.extent - 1);
  KernelWriter k(c);
  const KernelWriter::Array y =
      is_half_precision(type.dtype) ? k.scratch(compute, type.shape.numel()) : k.result();
  for_each_line(k, c, view, [&](const Expr&, const Expr& first) {
    const auto offset = [&](const Expr& step) {
      return first + (reverse ? last - step : step) * inner;
    };
    k.loop(Expr::index(0), Expr::index(view.extent), [&](const Expr& t) {
      const Expr exists = scalar::compare(ScalarOp::gt, t, Expr::index(0));
      const Expr before = k.load_if(exists, y, offset(t - Expr::index(1)), 0);
      k.store(y, offset(t),
              k.load(k.operand(0), offset(t)) + k.load(k.operand(1), offset(t)) * before);
    });
    if (y.buffer == k.result().buffer) return;
    k.loop(Expr::index(0), Expr::index(view.extent),
           [&](const Expr& t) { k.store(k.result(), offset(t), k.load(y, offset(t))); });
  });
  return k.kernel();
}

Values linear_recurrence_grad(const GradCtx& c) {
  const auto axis = c.attr<int64_t>("axis");
  const bool reverse = c.attr<bool>("reverse");
  const Value x = c.in(1), y = c.out(0);
  const Value da = internal::linear_recurrence(c.dout(0), shift(x, axis, reverse ? 1 : -1),
                                               {.axis = axis, .reverse = !reverse});
  return {da, da * shift(y, axis, reverse ? -1 : 1)};
}

}  // namespace

OpDef linear_recurrence_op() {
  return OpDef{
      .name = "linear_recurrence",
      .doc =
          "y[t] = a[t] + x[t] * y[t - 1] along `axis`, where the first element has no predecessor. "
          "Half precision is computed in f32.",
      .inputs = {{"a", "float tensor, rank >= 1"}, {"x", "a's type"}},
      .attrs = {axis_attr("axis along which the elements follow each other", -1),
                {"reverse", false,
                 "whether the last element is the first: y[t + 1] precedes y[t]"}},
      .outputs = {{"y", "a's type"}},
      .infer =
          [](const InferCtx& c) {
            require_float(c, 0);
            c.require(c.in(0) == c.in(1),
                      "operands " + c.in(0).str() + " and " + c.in(1).str() + " differ");
            nonnegative_axis(c, c.in(0).shape);
            return std::vector{c.in(0)};
          },
      .grad = GradFn(linear_recurrence_grad),
      .effects = Pure{},
      .amp = {Amp::kF32},
      .cost = cost_per_element(2),
      .in_place = {},
      .lower = Loops{linear_recurrence_kernel},
      .kernels = {},
      .version = 1,
      .internal = true,
  };
}

}  // namespace fluid
