#include <algorithm>

#include "ops/nn/avg_pool.h"
#include "ops/record.h"

namespace fluid {

std::vector<AttrDef> avg_pool_attrs(int dims, std::vector<AttrDef> more) {
  std::vector<AttrDef> attrs = pool_attrs(
      dims, {{"count_include_pad", true,
              "whether the divisor includes the padding; elements beyond it never count"},
             {"divisor_override", int64_t{0}, "divisor of every window; 0: its number of taps"}});
  attrs.insert(attrs.end(), more.begin(), more.end());
  return attrs;
}

Expr avg_pool_divisor(const LowerCtx& c, const Type& input, const std::vector<Expr>& window_index) {
  const WindowAxes window = pool_windows(c.attrs(), input.shape);
  const DType dtype = compute_dtype(input.dtype);
  const auto given = c.attr<int64_t>("divisor_override");
  if (given != 0) return Expr::constant(dtype, static_cast<double>(given));
  const bool padding_counts = c.attr<bool>("count_include_pad");
  const auto is_full = [&](const WindowAxis& a) {
    return a.excess == 0 && (padding_counts || a.before + a.after == 0);
  };
  if (std::ranges::all_of(window, is_full)) {
    return Expr::constant(dtype, static_cast<double>(taps_of(window)));
  }
  Expr taps = Expr::index(1);
  for (size_t i = 0; i < window.size(); ++i) {
    const int64_t in = input.shape[i + 2].size;
    taps = taps * (padding_counts ? window[i].taps_inside_padded_input(window_index[i], in)
                                  : window[i].taps_inside(window_index[i], in));
  }
  return scalar::cast(taps, dtype);
}

OpDef avg_pool_def(int dims) {
  const std::string name = "avg_pool" + std::to_string(dims) + "d";
  return OpDef{
      .name = name,
      .doc = "Average pooling, like torch.nn.functional." + name + ". `dilation` is as in ONNX.",
      .inputs = {{"x", "float [N, C, " + spatial_names(dims) + "]"}},
      .attrs = avg_pool_attrs(dims),
      .outputs = {{"y", "[N, C, " + spatial_names(dims, "O") + "]"}},
      .infer =
          [dims](const InferCtx& c) {
            c.require(c.attr<int64_t>("divisor_override") >= 0,
                      "attribute 'divisor_override' must not be negative");
            return std::vector{pool_type(c, c.in(0), dims)};
          },
      .grad = GradFn([name](const GradCtx& c) {
        Attrs attrs = c.attrs();
        attrs.set("input", c.in(0).type());
        return record(*c.op().graph(), name + "_grad", {c.dout(0)}, attrs, c.op().loc);
      }),
      .effects = Pure{},
      .amp = {Amp::kFollow},
      .cost =
          [](const CostCtx& c) {
            const WindowAxes window = pool_windows(c.attrs, c.in[0].shape);
            return Cost{.flops = c.numel_out() * static_cast<double>(taps_of(window))};
          },
      .in_place = {},
      .lower = Reduce{Combine::sum,
                      [](const LowerCtx& c) {
                        const WindowAxes window = pool_windows(c.attrs(), c.in_type(0).shape);
                        std::vector<Dim> extents;
                        for (const WindowAxis& axis : window) extents.emplace_back(axis.kernel);
                        const std::vector<Expr> out = c.out_vars();
                        return ReduceBody{
                            extents,
                            c.read_or(0, window_element(c, window, out[1]), 0) /
                                avg_pool_divisor(c, c.in_type(0), {out.begin() + 2, out.end()})};
                      }},
      .kernels = {},
      .version = 1,
  };
}

OpDef avg_pool2d_op() { return avg_pool_def(2); }

}  // namespace fluid
