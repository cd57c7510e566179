#include "ops/nn/conv.h"

namespace fluid {

ReduceBody conv_body(const LowerCtx& c) {
  const DType dtype = c.out_type().dtype;
  const Shape& w = c.in_type(1).shape;
  const WindowAxes window = conv_window(c.attrs(), w);
  const auto groups = c.attr<int64_t>("groups");
  const Expr o = c.out_var(1), i = c.reduce_var(0);
  const Expr channel = channel_in_group(o, w[0].size / groups, i, w[1].size, groups);
  const Expr x = c.read_or(0, window_element(c, window, channel, 1), 0);
  std::vector<Expr> tap = {o, i};
  for (size_t d = 0; d < window.size(); ++d) tap.push_back(c.reduce_var(d + 1));
  return {{w.begin() + 1, w.end()}, scalar::cast(x, dtype) * scalar::cast(c.read(1, tap), dtype)};
}

OpDef conv_def(int dims, std::vector<LibraryKernel> kernels) {
  const std::string name = "conv" + std::to_string(dims) + "d";
  return OpDef{
      .name = name,
      .doc = std::to_string(dims) +
             "-d convolution (cross-correlation) over the input channels of each group, like "
             "torch.nn.functional." +
             name + ". It has no bias; use `add`.",
      .inputs = {{"x", "float [N, C, " + spatial_names(dims) + "]"},
                 {"w", "filter [O, C / groups, " + spatial_names(dims, "K") + "]"}},
      .attrs = conv_attrs(dims),
      .outputs = {{"y", "[N, O, " + spatial_names(dims, "O") +
                            "], each spatial extent (x + padding - dilation * (k - 1) - 1) / "
                            "stride + 1"}},
      .infer =
          [dims](const InferCtx& c) { return std::vector{conv_type(c, c.in(0), c.in(1), dims)}; },
      .grad = GradFn([](const GradCtx& c) {
        const Value x = c.in(0), w = c.in(1), dy = c.dout(0);
        return Values{record_conv_grad_input(dy, w, x.type(), c.attrs(), c.op().loc),
                      record_conv_grad_filter(x, dy, w.type(), c.attrs(), c.op().loc)};
      }),
      .effects = Pure{},
      .amp = {Amp::kHalf},
      .cost = [](const CostCtx& c) { return conv_cost(c.in[1], c.out[0]); },
      .in_place = {},
      .lower = Reduce{Combine::sum, conv_body},
      .kernels = std::move(kernels),
      .version = 1,
  };
}

OpDef conv2d_op() {
  return conv_def(2, {{KernelDevice::cpu, "onednn.conv2d"},
                      {KernelDevice::cpu, "winograd.conv2d"},
                      {KernelDevice::cpu, "winograd.conv2d_across"},
                      {KernelDevice::cpu, "direct.conv2d"},
                      {KernelDevice::cpu, "amx.conv2d"},
                      {KernelDevice::cuda, "cudnn.conv2d"}});
}

}  // namespace fluid
