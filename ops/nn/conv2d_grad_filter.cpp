#include "ops/nn/conv.h"

namespace fluid {

OpDef conv_grad_filter_def(int dims, std::vector<LibraryKernel> kernels) {
  const std::string conv = "conv" + std::to_string(dims) + "d";
  return OpDef{
      .name = conv + "_grad_filter",
      .doc = "Gradient of " + conv + " with respect to its filter.",
      .inputs = {{"x", conv + "'s input"}, {"dy", "gradient of " + conv + "'s result"}},
      .attrs = conv_attrs(dims, {{"filter", Type{}, "type of " + conv + "'s filter", true}}),
      .outputs = {{"dw", "of type `filter`"}},
      .infer =
          [dims](const InferCtx& c) {
            const Type& filter = c.attr<Type>("filter");
            const Type output = conv_type(c, c.in(0), filter, dims);
            c.require(output == c.in(1),
                      "expects a gradient " + output.str() + ", got " + c.in(1).str());
            return std::vector{filter};
          },
      .grad = GradFn([](const GradCtx& c) {
        const Value x = c.in(0), dy = c.in(1), ddw = c.dout(0);
        return Values{record_conv_grad_input(dy, ddw, x.type(), c.attrs(), c.op().loc),
                      record_conv(x, ddw, c.attrs(), c.op().loc)};
      }),
      .effects = Pure{},
      .amp = {Amp::kHalf},
      .cost = [](const CostCtx& c) { return conv_cost(c.out[0], c.in[1]); },
      .in_place = {},
      .lower = Reduce{Combine::sum,
                      [](const LowerCtx& c) {
                        const Shape& w = c.out_type().shape;
                        const Shape& y = c.in_type(1).shape;
                        const WindowAxes window = conv_window(c.attrs(), w);
                        const auto groups = c.attr<int64_t>("groups");
                        const Expr o = c.out_var(0), n = c.reduce_var(0);
                        const Expr channel = channel_in_group(o, w[0].size / groups, c.out_var(1),
                                                              w[1].size, groups);
                        std::vector<Dim> extents = {y[0]};
                        std::vector<Expr> element = {n, channel}, output = {n, o};
                        for (size_t d = 0; d < window.size(); ++d) {
                          const Expr place = c.reduce_var(d + 1);
                          extents.push_back(y[d + 2]);
                          element.push_back(window[d].element(place, c.out_var(d + 2)));
                          output.push_back(place);
                        }
                        return ReduceBody{extents, c.read_or(0, element, 0) * c.read(1, output)};
                      }},
      .kernels = std::move(kernels),
      .version = 1,
      .internal = true,
  };
}

OpDef conv2d_grad_filter_op() {
  return conv_grad_filter_def(2, {{KernelDevice::cpu, "onednn.conv2d_grad_filter"},
                                  {KernelDevice::cpu, "winograd.conv2d_grad_filter"},
                                  {KernelDevice::cpu, "direct.conv2d_grad_filter"},
                                  {KernelDevice::cpu, "amx.conv2d_grad_filter"},
                                  {KernelDevice::cuda, "cudnn.conv2d_grad_filter"}});
}

}  // namespace fluid
