#include "ops/nn/conv.h"

namespace fluid {
namespace {

ReduceBody conv_grad_input_body(const LowerCtx& c) {
  const Shape& w = c.in_type(1).shape;
  const WindowAxes window = conv_window(c.attrs(), w);
  const auto groups = c.attr<int64_t>("groups");
  const int64_t outputs = w[0].size / groups;
  const Expr channel = c.out_var(1), o = c.reduce_var(0);
  const CoveringWindows covering = covering_windows(c, window, 1);
  const Expr output = channel_in_group(channel, w[1].size, o, outputs, groups);
  const Expr input = groups == 1 ? channel : scalar::mod(channel, Expr::index(w[1].size));
  std::vector<Expr> tap = {output, input}, place = {c.out_var(0), output};
  tap.insert(tap.end(), covering.tap.begin(), covering.tap.end());
  place.insert(place.end(), covering.window.begin(), covering.window.end());
  std::vector<Dim> extents = {outputs};
  extents.insert(extents.end(), covering.extents.begin(), covering.extents.end());
  const Expr& valid = covering.valid;
  const Expr product = c.read_or(0, place, 0) * (valid ? c.read_or(1, tap, 0) : c.read(1, tap));
  return {extents, select_if(valid, product, 0)};
}

}  // namespace

OpDef conv_grad_input_def(int dims, std::vector<LibraryKernel> kernels) {
  const std::string conv = "conv" + std::to_string(dims) + "d";
  return OpDef{
      .name = conv + "_grad_input",
      .doc = "Gradient of " + conv + " with respect to its input.",
      .inputs = {{"dy", "gradient of " + conv + "'s result"}, {"w", conv + "'s filter"}},
      .attrs = conv_attrs(dims, {{"input", Type{}, "type of " + conv + "'s input", true}}),
      .outputs = {{"dx", "of type `input`"}},
      .infer =
          [dims](const InferCtx& c) {
            const Type& input = c.attr<Type>("input");
            const Type output = conv_type(c, input, c.in(1), dims);
            c.require(output == c.in(0),
                      "expects a gradient " + output.str() + ", got " + c.in(0).str());
            return std::vector{input};
          },
      .grad = GradFn([](const GradCtx& c) {
        const Value dy = c.in(0), w = c.in(1), ddx = c.dout(0);
        return Values{record_conv(ddx, w, c.attrs(), c.op().loc),
                      record_conv_grad_filter(ddx, dy, w.type(), c.attrs(), c.op().loc)};
      }),
      .effects = Pure{},
      .amp = {Amp::kHalf},
      .cost = [](const CostCtx& c) { return conv_cost(c.in[1], c.in[0]); },
      .in_place = {},
      .lower = Reduce{Combine::sum, conv_grad_input_body},
      .kernels = std::move(kernels),
      .version = 1,
      .internal = true,
  };
}

OpDef conv2d_grad_input_op() {
  return conv_grad_input_def(2, {{KernelDevice::cpu, "onednn.conv2d_grad_input"},
                                 {KernelDevice::cpu, "winograd.conv2d_grad_input"},
                                 {KernelDevice::cpu, "direct.conv2d_grad_input"},
                                 {KernelDevice::cpu, "amx.conv2d_grad_input"},
                                 {KernelDevice::cuda, "cudnn.conv2d_grad_input"}});
}

}  // namespace fluid
