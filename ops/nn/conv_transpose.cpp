#include <algorithm>

#include "ops/functions.h"
#include "ops/nn/conv.h"

namespace fluid {
namespace {

using List = std::vector<int64_t>;

/// A transposed convolution, expressed as the gradient of a convolution with respect to its input.
struct AsGradient {
  Attrs attrs;    ///< attributes of the convolution
  Type input;     ///< type of the convolution's input
  List appended;  ///< number of zeros to append to y along each dimension
  bool any_appended = false;
};

/// Returns the convolution that maps type `y` to the type of x. Along each axis, its number of
/// windows equals the extent of x. An output_padding of at least the stride would add windows, so
/// it is subtracted from the trailing padding. Any remainder is appended to y as zeros.
AsGradient as_gradient(const Attrs& attrs, const Type& y, const Shape& w) {
  AsGradient as{conv_attrs_of(attrs), y, List(w.size()), false};
  WindowAxes axes = conv_window(attrs, w);
  const auto& extra = attrs.get<List>("output_padding");
  List padding;
  for (const WindowAxis& axis : axes) padding.push_back(axis.before);
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t added = extra.size() == 1 ? extra[0] : extra[i];
    int64_t after = axes[i].after;
    if (added >= axes[i].stride) {
      const int64_t replaced = std::min(after, added);
      after -= replaced;
      as.appended[i + 2] = added - replaced;
      as.input.shape[i + 2].size -= added - replaced;
      as.any_appended |= added > replaced;
    }
    padding.push_back(after);
  }
  as.attrs.set("padding", padding);
  return as;
}

void require_output_padding(const InferCtx& c, const WindowAxes& axes) {
  const auto& extra = c.attr<List>("output_padding");
  const auto dims = static_cast<int>(axes.size());
  c.require(extra.size() == 1 || extra.size() == axes.size(),
            "attribute 'output_padding' takes one " + one_per_dimension_text(dims) + ", not " +
                std::to_string(extra.size()));
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t added = extra.size() == 1 ? extra[0] : extra[i];
    c.require(added >= 0 && added < std::max(axes[i].stride, axes[i].dilation),
              "attribute 'output_padding' must be at least 0 and below the stride or the dilation, "
              "not " +
                  c.attr_text("output_padding"));
  }
}

Type conv_transpose_type(const InferCtx& c, int dims) {
  const auto groups = c.attr<int64_t>("groups");
  const Type &x = c.in(0), &filter = c.in(1);
  const Shape& w = filter.shape;
  require_spatial_input(c, x, dims);
  c.require(filter.dtype == x.dtype && w.size() == x.shape.size() && !w.has_batch(),
            "expects a filter [C, O / groups, " + spatial_names(dims, "K") +
                "] of the input's dtype, got " + filter.str());
  c.require(
      groups >= 1 && w[0].size % groups == 0,
      "the filter " + filter.str() + " does not split into " + std::to_string(groups) + " groups");
  c.require(w[0] == x.shape[1], "the input " + x.str() + " has " + x.shape[1].str() +
                                    " channels, but the filter " + filter.str() + " takes " +
                                    w[0].str());
  require_taps(c, filter);
  require_window_attrs(c, dims);
  const WindowAxes axes = conv_window(c.attrs(), w);
  require_output_padding(c, axes);
  const auto& extra = c.attr<List>("output_padding");
  int64_t channels = 0;
  c.require(!__builtin_mul_overflow(w[1].size, groups, &channels),
            "the filter " + filter.str() + " has too many channels");
  Type y{x.dtype, {x.shape[0], channels}, {}};
  bool fits = true;
  for (size_t i = 0; i < axes.size(); ++i) {
    const WindowAxis& a = axes[i];
    const int64_t last = x.shape[i + 2].size - 1;
    fits = fits && last >= 0 && last <= INT32_MAX / a.stride;
    const int64_t added = extra.size() == 1 ? extra[0] : extra[i];
    y.shape.emplace_back(fits ? last * a.stride + a.effective_kernel() - a.before - a.after + added
                              : 0);
  }
  const Shape from = as_gradient(c.attrs(), y, w).input.shape;
  fits = fits && std::all_of(from.begin() + 2, from.end(), [](const Dim& d) { return d.size > 0; });
  c.require(fits, "the padding leaves no result of the input " + x.str() + " and the filter " +
                      filter.str());
  return y;
}

Values conv_transpose_gradients(const GradCtx& c) {
  const Value x = c.in(0), w = c.in(1);
  const AsGradient as = as_gradient(c.attrs(), c.op().results[0].type, w.shape());
  Value dy = c.dout(0);
  if (as.any_appended) {
    Ints axes, starts, stops;
    for (size_t d = 2; d < as.input.shape.size(); ++d) {
      axes.push_back(static_cast<int64_t>(d));
      starts.push_back(0);
      stops.push_back(as.input.shape[d].size);
    }
    dy = slice(dy, {.starts = starts, .stops = stops, .axes = axes}, c.op().loc);
  }
  return {record_conv(dy, w, as.attrs, c.op().loc),
          record_conv_grad_filter(dy, x, w.type(), as.attrs, c.op().loc)};
}

Values expand_conv_transpose(const ExpandCtx& c) {
  const Value x = c.in(0), w = c.in(1);
  const AsGradient as = as_gradient(c.attrs(), c.out_type(0), w.shape());
  const Value y = record_conv_grad_input(x, w, as.input, as.attrs, c.op().loc);
  return {as.any_appended ? pad(y, {.high = as.appended}, c.op().loc) : y};
}

}  // namespace

OpDef conv_transpose_def(int dims) {
  const std::string spatial = std::to_string(dims) + "d";
  return OpDef{
      .name = "conv" + spatial + "_transpose",
      .doc = "Transposed convolution, like torch.nn.functional.conv_transpose" + spatial +
             ": the gradient of conv" + spatial +
             " with respect to its input. It has no bias; use `add`.",
      .inputs = {{"x", "float [N, C, " + spatial_names(dims) + "]"},
                 {"w", "filter [C, O / groups, " + spatial_names(dims, "K") + "]"}},
      .attrs = conv_attrs(
          dims, {{"output_padding", List{0},
                  "added to the extents of the result, after the elements: one " +
                      one_per_dimension_text(dims) + "; below the stride or the dilation"}}),
      .outputs = {{"y", "[N, O, " + spatial_names(dims, "O") +
                            "], each spatial extent (x - 1) * stride - padding + dilation * (k - "
                            "1) + output_padding + 1"}},
      .infer = [dims](const InferCtx& c) { return std::vector{conv_transpose_type(c, dims)}; },
      .grad = GradFn(conv_transpose_gradients),
      .effects = Pure{},
      .amp = {Amp::kHalf},
      .cost = [](const CostCtx& c) { return conv_cost(c.in[1], c.in[0]); },
      .in_place = {},
      .lower = Expand{expand_conv_transpose},
      .kernels = {},
      .version = 1,
  };
}

}  // namespace fluid
