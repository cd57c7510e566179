#include "ops/nn/resize2d.h"
#include "ops/record.h"

namespace fluid {

OpDef resize2d_grad_op() {
  return OpDef{
      .name = "resize2d_grad",
      .doc = "Gradient of resize2d with respect to its input.",
      .inputs = {{"dy", "gradient of resize2d's result"}},
      .attrs = resize_attrs({{"input", Type{}, "type of resize2d's input", true}}),
      .outputs = {{"dx", "of type `input`"}},
      .infer =
          [](const InferCtx& c) {
            require_resize_mode(c);
            return std::vector{infer_adaptive_pool_grad(c)};
          },
      .grad = GradFn([](const GradCtx& c) {
        const Shape& y = c.in(0).shape();
        return record(*c.op().graph(), "resize2d", {c.dout(0)},
                      {{"output", std::vector<int64_t>{y[2].size, y[3].size}},
                       {"mode", c.attr<std::string>("mode")},
                       {"align_corners", c.attr<bool>("align_corners")}},
                      c.op().loc);
      }),
      .effects = Pure{},
      .amp = {Amp::kFollow},
      .cost =
          [](const CostCtx& c) {
            const Resize2d r = resize_of(c.attrs, c.out[0].shape, c.in[0].shape);
            const auto outputs = static_cast<double>(r.y.max_outputs() * r.x.max_outputs());
            return Cost{.flops = 3 * c.numel_out() * outputs * static_cast<double>(r.y.taps())};
          },
      .in_place = {},
      .lower = Reduce{Combine::sum,
                      [](const LowerCtx& c) {
                        const Resize2d r =
                            resize_of(c.attrs(), c.out_type().shape, c.in_type(0).shape);
                        const Expr y = c.out_var(2), x = c.out_var(3);
                        const Expr oy = r.y.first_output(y) + c.reduce_var(0),
                                   ox = r.x.first_output(x) + c.reduce_var(1);
                        const DType dtype = compute_dtype(c.out_type().dtype);
                        const Expr weight = r.y.weight(oy, y, dtype) * r.x.weight(ox, x, dtype);
                        const Expr dy = c.read_or(0, {c.out_var(0), c.out_var(1), oy, ox}, 0);
                        const Expr reads =
                            scalar::compare(ScalarOp::ne, weight, Expr::constant(dtype, 0));
                        return ReduceBody{{r.y.max_outputs(), r.x.max_outputs()},
                                          select_if(reads, weight * dy, 0)};
                      }},
      .kernels = {},
      .version = 1,
      .internal = true,
  };
}

}  // namespace fluid
