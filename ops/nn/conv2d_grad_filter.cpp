#include "ops/nn/conv2d.h"
#include "ops/record.h"

namespace fluid {

OpDef conv2d_grad_filter_op() {
  return OpDef{
      .name = "conv2d_grad_filter",
      .doc = "Gradient of conv2d with respect to its filter.",
      .inputs = {{"x", "conv2d's input"}, {"dy", "gradient of conv2d's result"}},
      .attrs = conv2d_attrs({{"filter", Type{}, "type of conv2d's filter", true}}),
      .outputs = {{"dw", "of type `filter`"}},
      .infer =
          [](const InferCtx& c) {
            const Type& filter = c.attr<Type>("filter");
            const Type output = conv2d_type(c, c.in(0), filter);
            c.require(output == c.in(1),
                      "expects a gradient " + output.str() + ", got " + c.in(1).str());
            return std::vector{filter};
          },
      .grad = GradFn([](const GradCtx& c) {
        const Value x = c.in(0), dy = c.in(1), ddw = c.dout(0);
        ir::Graph& g = *c.op().graph();
        const Attrs for_input = conv2d_attrs_with(c.attrs(), "input", x.type());
        return Values{record(g, "conv2d_grad_input", {dy, ddw}, for_input, c.op().loc)[0],
                      record(g, "conv2d", {x, ddw}, conv2d_attrs_of(c.attrs()), c.op().loc)[0]};
      }),
      .effects = Pure{},
      .amp = {Amp::kHalf},
      .cost = [](const CostCtx& c) { return conv2d_cost(c.out[0], c.in[1]); },
      .in_place = {},
      .lower = Reduce{Combine::sum,
                      [](const LowerCtx& c) {
                        const Shape& w = c.out_type().shape;
                        const Shape& y = c.in_type(1).shape;
                        const Window2d window = window_of(c.attrs(), w[2].size, w[3].size);
                        const int64_t groups = c.attr<int64_t>("groups");
                        const Expr o = c.out_var(0), n = c.reduce_var(0);
                        const Expr oy = c.reduce_var(1), ox = c.reduce_var(2);
                        const Expr channel = channel_in_group(o, w[0].size / groups, c.out_var(1),
                                                              w[1].size, groups);
                        const Expr x = c.read_or(0,
                                                 {n, channel, window.y.element(oy, c.out_var(2)),
                                                  window.x.element(ox, c.out_var(3))},
                                                 0);
                        return ReduceBody{{y[0], y[2], y[3]}, x * c.read(1, {n, o, oy, ox})};
                      }},
      .kernels = {{KernelDevice::cpu, "onednn.conv2d_grad_filter"},
                  {KernelDevice::cpu, "winograd.conv2d_grad_filter"},
                  {KernelDevice::cuda, "cudnn.conv2d_grad_filter"}},
      .version = 1,
      .internal = true,
  };
}

}  // namespace fluid
