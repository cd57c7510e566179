#include "ops/nn/conv2d.h"
#include "ops/record.h"

namespace fluid {

OpDef conv2d_grad_input_op() {
  return OpDef{
      .name = "conv2d_grad_input",
      .doc = "Gradient of conv2d with respect to its input.",
      .inputs = {{"dy", "gradient of conv2d's result"}, {"w", "conv2d's filter"}},
      .attrs = conv2d_attrs({{"input", Type{}, "type of conv2d's input", true}}),
      .outputs = {{"dx", "of type `input`"}},
      .infer =
          [](const InferCtx& c) {
            const Type& input = c.attr<Type>("input");
            const Type output = conv2d_type(c, input, c.in(1));
            c.require(output == c.in(0),
                      "expects a gradient " + output.str() + ", got " + c.in(0).str());
            return std::vector{input};
          },
      .grad = GradFn([](const GradCtx& c) {
        const Value dy = c.in(0), w = c.in(1), ddx = c.dout(0);
        ir::Graph& g = *c.op().graph();
        const Attrs for_filter = conv2d_attrs_with(c.attrs(), "filter", w.type());
        return Values{record(g, "conv2d", {ddx, w}, conv2d_attrs_of(c.attrs()), c.op().loc)[0],
                      record(g, "conv2d_grad_filter", {ddx, dy}, for_filter, c.op().loc)[0]};
      }),
      .effects = Pure{},
      .amp = {Amp::kHalf},
      .cost = [](const CostCtx& c) { return conv2d_cost(c.in[1], c.in[0]); },
      .in_place = {},
      .lower =
          Reduce{Combine::sum,
                 [](const LowerCtx& c) {
                   const Shape& w = c.in_type(1).shape;
                   const Window2d window = window_of(c.attrs(), w[2].size, w[3].size);
                   const int64_t groups = c.attr<int64_t>("groups"), outputs = w[0].size / groups;
                   const Expr channel = c.out_var(1), o = c.reduce_var(0);
                   const WindowAxis::CoveringWindow y =
                       window.y.covering_window(c.out_var(2), c.reduce_var(1));
                   const WindowAxis::CoveringWindow x =
                       window.x.covering_window(c.out_var(3), c.reduce_var(2));
                   const Expr output = channel_in_group(channel, w[1].size, o, outputs, groups);
                   const Expr input =
                       groups == 1 ? channel : scalar::mod(channel, Expr::index(w[1].size));
                   const Expr valid = and_conditions(y.valid, x.valid);
                   const std::vector<Expr> tap = {output, input, y.tap, x.tap};
                   const Expr dy = c.read_or(0, {c.out_var(0), output, y.window, x.window}, 0);
                   const Expr product = dy * (valid ? c.read_or(1, tap, 0) : c.read(1, tap));
                   return ReduceBody{
                       {outputs, window.y.max_covering_windows(), window.x.max_covering_windows()},
                       select_if(valid, product, 0)};
                 }},
      .kernels = {{KernelDevice::cpu, "onednn.conv2d_grad_input"},
                  {KernelDevice::cpu, "winograd.conv2d_grad_input"},
                  {KernelDevice::cuda, "cudnn.conv2d_grad_input"}},
      .version = 1,
      .internal = true,
  };
}

}  // namespace fluid
