// Convolution and pooling.

#include <algorithm>

#include "frontend/onnx/context.h"
#include "ops/nn/same_padding.h"
#include "ops/operators.h"
#include "ops/record.h"

namespace fluid::onnx {
namespace {

using List = std::vector<int64_t>;

/// Returns the op's name with a suffix for the spatial dimensions of x, such as "conv2d". Throws
/// Unsupported unless x has 1 to 3 spatial dimensions.
std::string spatial_op(const Context& c, const std::string& op, Value x) {
  const int64_t dims = x.shape().rank() - 2;
  if (dims < 1 || dims > 3)
    c.fail_unsupported(x.type().str() + " has not 1 to 3 spatial dimensions");
  return op + std::to_string(dims) + "d";
}

/// Returns the padding from attribute `pads`, or from `auto_pad` and the extents of x.
List padding_of(const Context& c, Value x, const List& kernel) {
  const std::string automatic = c.string_attr("auto_pad", "NOTSET");
  if (automatic == "NOTSET") return c.ints_attr("pads", {0});
  if (automatic == "VALID") return {0};
  return same_padding(x, {.kernel = Ints(kernel),
                          .stride = Ints(c.ints_attr("strides", {1})),
                          .dilation = Ints(c.ints_attr("dilations", {1})),
                          .same = automatic == "SAME_LOWER" ? Same::lower : Same::upper});
}

Attrs window_of(const Context& c, Value x, const List& kernel) {
  return {{"stride", c.ints_attr("strides", {1})},
          {"padding", padding_of(c, x, kernel)},
          {"dilation", c.ints_attr("dilations", {1})}};
}

List kernel_of(const Context& c, Value filter) {
  const List all = extents(c, filter);
  return {all.begin() + 2, all.end()};
}

/// Adds the bias [O], if any, to the result of a convolution.
Operands with_bias(const Context& c, Value y) {
  if (!c.has_input(2)) return {y};
  Shape per_channel(y.shape().size() - 1, Dim(1));
  per_channel[0] = y.shape()[1];
  return {y + reshape(c.input(2), per_channel)};
}

Operands convolved(const Context& c) {
  const Value x = c.input(0), filter = c.input(1);
  Attrs attrs = window_of(c, x, kernel_of(c, filter));
  attrs.set("groups", c.int_attr("group", 1));
  return with_bias(c, record(c.graph(), spatial_op(c, "conv", x), {x, filter}, attrs, c.loc())[0]);
}

/// Sets the padding of a transposed convolution if auto_pad or output_shape gives the output
/// extent. For input, kernel and output extents n, k and y,
/// total padding = stride (n - 1) + output_padding + dilation (k - 1) + 1 - y. The larger half is
/// at the start, or at the end for SAME_UPPER. A negative total extends output_padding instead.
void pad_transposed(const Context& c, Value x, const List& kernel, Attrs& attrs) {
  const std::string automatic = c.string_attr("auto_pad", "NOTSET");
  const List shape = c.ints_attr("output_shape");
  if ((automatic == "NOTSET" || automatic == "VALID") && shape.empty()) return;
  const List stride = c.ints_attr("strides", List(kernel.size(), 1));
  const List dilation = c.ints_attr("dilations", List(kernel.size(), 1));
  List output_padding = c.ints_attr("output_padding", List(kernel.size(), 0));
  Ints totals;
  for (size_t d = 0; d < kernel.size(); ++d) {
    const int64_t n = extent(c, x, static_cast<int64_t>(d) + 2);
    const int64_t y = shape.empty() ? n * stride[d] : shape.at(shape.size() - kernel.size() + d);
    totals.push_back(stride[d] * (n - 1) + output_padding[d] + dilation[d] * (kernel[d] - 1) + 1 -
                     y);
  }
  const TransposedPadding divided =
      divide_transposed_padding(totals, automatic == "SAME_UPPER" ? Same::upper : Same::lower);
  for (size_t d = 0; d < kernel.size(); ++d) output_padding[d] += divided.output_padding[d];
  attrs.set("padding", divided.padding);
  attrs.set("output_padding", output_padding);
}

Operands convolved_transposed(const Context& c) {
  const Value x = c.input(0), filter = c.input(1);
  Attrs attrs = {{"stride", c.ints_attr("strides", {1})},
                 {"padding", c.ints_attr("pads", {0})},
                 {"dilation", c.ints_attr("dilations", {1})},
                 {"output_padding", c.ints_attr("output_padding", {0})},
                 {"groups", c.int_attr("group", 1)}};
  pad_transposed(c, x, kernel_of(c, filter), attrs);
  const std::string op = spatial_op(c, "conv", x) + "_transpose";
  return with_bias(c, record(c.graph(), op, {x, filter}, attrs, c.loc())[0]);
}

Attrs pool_attrs(const Context& c, Value x) {
  const List kernel = c.ints_attr("kernel_shape");
  Attrs attrs = window_of(c, x, kernel);
  attrs.set("kernel", kernel);
  attrs.set("ceil_mode", c.bool_attr("ceil_mode", false));
  return attrs;
}

/// Returns the argmax indices of max pooling as indices into the flattened input. `position`: the
/// argmax indices within the windows. The spatial dimensions are flattened in row-major order, or
/// in column-major order with storage_order 1.
Value indices_of(const Context& c, Value x, Value position, const Attrs& attrs) {
  const List in = extents(c, x), out = extents(c, position);
  const size_t dims = in.size() - 2;
  const auto spread = [&](const char* name) {
    List list = attrs.get<List>(name);
    if (list.size() == 1) list.resize(dims, list[0]);
    return list;
  };
  const List kernel = spread("kernel"), stride = spread("stride"), dilation = spread("dilation"),
             padding = spread("padding");
  List step(dims, 1);  // distance between neighbours along each spatial dimension, in elements
  const bool column_major = c.bool_attr("storage_order", false);
  int64_t area = 1;
  for (size_t i = 0; i < dims; ++i) {
    const size_t d = column_major ? i : dims - 1 - i;
    step[d] = area;
    area *= in[d + 2];
  }
  const auto along = [&](int64_t count, int64_t first, int64_t increment, const Shape& shape) {
    const Type type{f64, {count}, {}};
    return reshape(arange(c.graph(), {.type = type,
                                      .start = static_cast<double>(first),
                                      .step = static_cast<double>(increment)}),
                   shape);
  };
  Shape images(in.size(), Dim(1));
  images[0] = in[0];
  images[1] = in[1];
  Value index = along(in[0] * in[1], 0, area, images), rest = cast(position, f64);
  for (size_t d = dims; d-- > 0;) {
    const auto taps = static_cast<double>(kernel[d]);
    const Value tap = mod(rest, scalar_like(rest, taps));
    rest = (rest - tap) / taps;
    Shape shape(in.size(), Dim(1));
    shape[d + 2] = out[d + 2];
    index = index + along(out[d + 2], -padding[d] * step[d], stride[d] * step[d], shape) +
            tap * static_cast<double>(dilation[d] * step[d]);
  }
  return cast(index, i64);
}

Operands max_pooled(const Context& c) {
  const Value x = c.input(0);
  if (!is_float(x.dtype()) && x.dtype() != u8) c.fail_unsupported("pools " + x.type().str());
  const Attrs attrs = pool_attrs(c, x);
  const Value wide = x.dtype() == u8 ? cast(x, f32) : x;
  const Values y = record(c.graph(), spatial_op(c, "max_pool", x), {wide}, attrs, c.loc());
  Operands outputs = {cast(y[0], x.dtype())};
  if (c.has_output(1)) outputs.emplace_back(indices_of(c, x, y[1], attrs));
  return outputs;
}

Operands average_pooled(const Context& c) {
  const Value x = c.input(0);
  Attrs attrs = pool_attrs(c, x);
  attrs.set("count_include_pad", c.bool_attr("count_include_pad", false));
  return {record(c.graph(), spatial_op(c, "avg_pool", x), {x}, attrs, c.loc())[0]};
}

Operands lp_pooled(const Context& c) {
  const Value x = c.input(0);
  Attrs attrs = pool_attrs(c, x);
  attrs.set("p", static_cast<double>(c.int_attr("p", 2)));
  return {record(c.graph(), "lp_pool", {x}, attrs, c.loc())[0]};
}

/// Col2Im, like torch.nn.functional.fold: adds columns to the image windows that they represent.
Operands folded(const Context& c) {
  const List image = c.constant_integers(1), block = c.constant_integers(2);
  if (image.size() != 2)
    c.fail_unsupported(std::to_string(image.size()) + " spatial dimensions, not 2");
  return {fold(c.input(0), {.output = Ints(image),
                            .kernel = Ints(block),
                            .stride = Ints(c.ints_attr("strides", {1, 1})),
                            .padding = Ints(c.ints_attr("pads", {0, 0, 0, 0})),
                            .dilation = Ints(c.ints_attr("dilations", {1, 1}))})};
}

Ints spatial_axes(Value x) {
  Ints axes;
  for (int64_t d = 2; d < x.shape().rank(); ++d) axes.push_back(d);
  return axes;
}

Operands global_average(const Context& c) {
  const Value x = c.input(0);
  return {mean(x, {.axes = spatial_axes(x), .keep_dims = true})};
}

Operands global_maximum(const Context& c) {
  const Value x = c.input(0);
  return {max(x, {.axes = spatial_axes(x), .keep_dims = true})};
}

Operands global_lp(const Context& c) {
  const Value x = c.input(0);
  const auto p = static_cast<double>(c.int_attr("p", 2));
  const Value powers = pow(abs(x), scalar_like(x, p));
  const Value total = sum(powers, {.axes = spatial_axes(x), .keep_dims = true});
  return {pow(total, scalar_like(x, 1 / p))};
}

}  // namespace

void add_windows(Mappings& all) {
  all["AveragePool"] = average_pooled;
  all["Col2Im"] = folded;
  all["Conv"] = convolved;
  all["ConvTranspose"] = convolved_transposed;
  all["GlobalAveragePool"] = global_average;
  all["GlobalLpPool"] = global_lp;
  all["GlobalMaxPool"] = global_maximum;
  all["LpPool"] = lp_pooled;
  all["MaxPool"] = max_pooled;
}

}  // namespace fluid::onnx
