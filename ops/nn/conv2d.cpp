#include "ops/nn/conv2d.h"

#include "ops/record.h"

namespace fluid {

OpDef conv2d_op() {
  return OpDef{
      .name = "conv2d",
      .doc =
          "2-d convolution (cross-correlation) over the input channels of each group. It has no "
          "bias; use `add`.",
      .inputs = {{"x", "float [N, C, H, W]"}, {"w", "filter [O, C / groups, KH, KW]"}},
      .attrs = conv2d_attrs(),
      .outputs =
          {{"y", "[N, O, OH, OW] with OH = (H + padding - dilation * (KH - 1) - 1) / stride + 1"}},
      .infer = [](const InferCtx& c) { return std::vector{conv2d_type(c, c.in(0), c.in(1))}; },
      .grad = GradFn([](const GradCtx& c) {
        const Value x = c.in(0), w = c.in(1), dy = c.dout(0);
        ir::Graph& g = *c.op().graph();
        const Attrs for_input = conv2d_attrs_with(c.attrs(), "input", x.type());
        const Attrs for_filter = conv2d_attrs_with(c.attrs(), "filter", w.type());
        return Values{record(g, "conv2d_grad_input", {dy, w}, for_input, c.op().loc)[0],
                      record(g, "conv2d_grad_filter", {x, dy}, for_filter, c.op().loc)[0]};
      }),
      .effects = Pure{},
      .amp = {Amp::kHalf},
      .cost = [](const CostCtx& c) { return conv2d_cost(c.in[1], c.out[0]); },
      .in_place = {},
      .lower = Reduce{Combine::sum,
                      [](const LowerCtx& c) {
                        const Shape& w = c.in_type(1).shape;
                        const Window2d window = window_of(c.attrs(), w[2].size, w[3].size);
                        const int64_t groups = c.attr<int64_t>("groups");
                        const Expr n = c.out_var(0), o = c.out_var(1);
                        const Expr i = c.reduce_var(0), ky = c.reduce_var(1), kx = c.reduce_var(2);
                        const Expr channel =
                            channel_in_group(o, w[0].size / groups, i, w[1].size, groups);
                        const Expr x = c.read_or(0,
                                                 {n, channel, window.y.element(c.out_var(2), ky),
                                                  window.x.element(c.out_var(3), kx)},
                                                 0);
                        return ReduceBody{{w[1], w[2], w[3]}, x * c.read(1, {o, i, ky, kx})};
                      }},
      .kernels = {{KernelDevice::cpu, "onednn.conv2d"},
                  {KernelDevice::cpu, "winograd.conv2d"},
                  {KernelDevice::cpu, "winograd.conv2d_across"},
                  {KernelDevice::cuda, "cudnn.conv2d"}},
      .version = 1,
  };
}

}  // namespace fluid
