#include "ops/elementwise.h"
#include "ops/index/axis_attr.h"
#include "ops/index/cumulative.h"
#include "ops/internal_functions.h"
#include "ops/operators.h"

namespace fluid {
namespace {

/// Computes dx[t] = before[t] * after[t] without a division, so zeros in x need no special case.
/// before[t] is the product of the elements before t. after[t] is the derivative of the loss with
/// respect to the product of the elements up to and including t:
///   after[t] = dy[t] + x[t + 1] * after[t + 1], or for exclusive products
///   after[t] = dy[t + 1] + x[t + 1] * after[t + 1].
kir::Kernel cumprod_grad_kernel(const LoopsCtx& c) {
  const Type& type = c.out_type();
  const AxisView view = view_along(type.shape, nonnegative_axis(c.attrs(), type.shape));
  const bool reverse = c.attr<bool>("reverse"), exclusive = c.attr<bool>("exclusive");
  const DType compute = compute_dtype(type.dtype);
  const Expr inner = c.extent(view.inner), extent = Expr::index(view.extent);
  KernelWriter k(c);
  const KernelWriter::Array dy = k.operand(0), x = k.operand(1);
  const KernelWriter::Array after =
      is_half_precision(type.dtype) ? k.scratch(compute, type.shape.numel()) : k.result();
  for_each_line(k, c, view, [&](const Expr&, const Expr& first) {
    const auto offset = [&](const Expr& step) {
      return first + (reverse ? extent - Expr::index(1) - step : step) * inner;
    };
    k.loop(Expr::index(0), extent, [&](const Expr& done) {
      const Expr t = k.let(extent - Expr::index(1) - done);
      const Expr exists = k.let(scalar::compare(ScalarOp::gt, done, Expr::index(0)));
      const Expr next = offset(t + Expr::index(1));
      const Expr own = exclusive ? k.load_if(exists, dy, next, 0) : k.load(dy, offset(t));
      k.store(after, offset(t),
              own + k.load_if(exists, x, next, 0) * k.load_if(exists, after, next, 0));
    });
    const auto before = k.accumulators(compute, Combine::prod);
    k.loop(Expr::index(0), extent, [&](const Expr& t) {
      k.store(k.result(), offset(t), k.read(before) * k.load(after, offset(t)));
      k.accumulate(before, k.load(x, offset(t)));
    });
  });
  return k.kernel();
}

/// Differentiates dx = before * after; see cumprod_grad_kernel(). `after` is a linear recurrence
/// from the last element to the first, so its adjoint is a recurrence from the first to the last.
Values cumprod_second_grad(const GradCtx& c) {
  const Value dy = c.in(0), x = c.in(1), ddx = c.dout(0);
  const auto axis = c.attr<int64_t>("axis");
  const bool exclusive = c.attr<bool>("exclusive"), reverse = c.attr<bool>("reverse");
  const auto next = [&](Value v) { return shift(v, axis, reverse ? 1 : -1); };
  const auto previous = [&](Value v) { return shift(v, axis, reverse ? -1 : 1); };
  const Value before = cumprod(x, {.axis = axis, .exclusive = true, .reverse = reverse});
  const Value after = internal::linear_recurrence(exclusive ? next(dy) : dy, next(x),
                                                  {.axis = axis, .reverse = !reverse});
  const Value adjoint =
      internal::linear_recurrence(ddx * before, x, {.axis = axis, .reverse = reverse});
  const Value through_before =
      internal::cumprod_grad(ddx * after, x, {.axis = axis, .exclusive = true, .reverse = reverse});
  return {exclusive ? previous(adjoint) : adjoint, through_before + previous(adjoint) * after};
}

}  // namespace

OpDef cumprod_grad_op() {
  return OpDef{
      .name = "cumprod_grad",
      .doc = "Gradient of cumprod with respect to x.",
      .inputs = {{"dy", "gradient of cumprod's result"}, {"x", "cumprod's operand"}},
      .attrs = cumulative_attrs("product"),
      .outputs = {{"dx", "same type as x"}},
      .infer =
          [](const InferCtx& c) {
            require_float(c, 0);
            c.require(c.in(0) == c.in(1),
                      "the gradient " + c.in(0).str() + " does not fit to " + c.in(1).str());
            return infer_cumulative(c);
          },
      .grad = GradFn(cumprod_second_grad),
      .effects = Pure{},
      .amp = {Amp::kF32},
      .cost = cost_per_element(4),
      .in_place = {},
      .lower = Loops{cumprod_grad_kernel},
      .kernels = {},
      .version = 1,
      .internal = true,
  };
}

}  // namespace fluid
