#include "ops/elementwise.h"
#include "ops/index/axis_attr.h"
#include "ops/kernel_writer.h"
#include "ops/operators.h"

namespace fluid {
namespace {

kir::Kernel cumsum_kernel(const LoopsCtx& c) {
  const AxisView view =
      view_along(c.out_type().shape, nonnegative_axis(c.attrs(), c.out_type().shape));
  const bool reverse = c.attr<bool>("reverse"), exclusive = c.attr<bool>("exclusive");
  const Expr inner = c.extent(view.inner), extent = Expr::index(view.extent);
  KernelWriter k(c);
  for_each_line(k, c, view, [&](const Expr&, const Expr& first) {
    const auto sum = k.accumulators(compute_dtype(c.out_type().dtype));
    k.loop(Expr::index(0), extent, [&](const Expr& step) {
      const Expr t = reverse ? extent - Expr::index(1) - step : step;
      const Expr x = k.let(k.load(k.operand(0), first + t * inner));
      if (exclusive) k.store(k.result(), first + t * inner, k.read(sum));
      k.accumulate(sum, x);
      if (!exclusive) k.store(k.result(), first + t * inner, k.read(sum));
    });
  });
  return k.kernel();
}

}  // namespace

OpDef cumsum_op() {
  return OpDef{
      .name = "cumsum",
      .doc =
          "Cumulative sum along `axis`, as torch.cumsum, and CumSum of ONNX. Half precision is "
          "summed in f32.",
      .inputs = {{"x", "numeric tensor, rank >= 1"}},
      .attrs = {axis_attr("axis to sum along", -1),
                {"exclusive", false, "whether an element is left out of its own sum"},
                {"reverse", false, "whether sums start at the end of the axis"}},
      .outputs = {{"y", "same type as x"}},
      .infer =
          [](const InferCtx& c) {
            require_numeric(c, 0);
            nonnegative_axis(c, c.in(0).shape);
            return std::vector{c.in(0)};
          },
      .grad = GradFn([](const GradCtx& c) {
        return Values{cumsum(c.dout(0), {.axis = c.attr<int64_t>("axis"),
                                         .exclusive = c.attr<bool>("exclusive"),
                                         .reverse = !c.attr<bool>("reverse")})};
      }),
      .effects = Pure{},
      .amp = {Amp::kF32},
      .cost = cost_per_element(1),
      .in_place = {{0, 0}},
      .lower = Loops{cumsum_kernel},
      .kernels = {},
      .version = 1,
  };
}

}  // namespace fluid
