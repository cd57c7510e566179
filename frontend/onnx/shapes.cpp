// Operators that move elements without computation.

#include <algorithm>
#include <numeric>

#include "frontend/onnx/context.h"
#include "ops/operators.h"

namespace fluid::onnx {
namespace {

/// A 0 in the requested shape means the input's extent, unless `allowzero` is set.
Operands reshaped(const Context& c) {
  const Value x = c.input(0);
  const std::vector<int64_t> wanted =
      c.num_inputs() > 1 ? c.constant_integers(1) : c.ints_attr("shape");
  const bool zero = c.bool_attr("allowzero", false);
  Shape shape;
  for (size_t d = 0; d < wanted.size(); ++d) {
    const bool keep = wanted[d] == 0 && !zero;
    if (keep && d >= x.shape().size()) c.fail_unsupported("there is no extent to keep");
    shape.push_back(keep ? x.shape()[d] : Dim(wanted[d]));
  }
  return {reshape(x, shape)};
}

/// Reshapes to a matrix: the dimensions before `axis` become its rows, the others its columns.
Operands flattened(const Context& c) {
  const Value x = c.input(0);
  const Shape& shape = x.shape();
  const int64_t axis = normalize_axis(c.int_attr("axis", 1), shape.rank());
  const Shape rows(shape.begin(), shape.begin() + axis), columns(shape.begin() + axis, shape.end());
  return {reshape(x, {rows.numel(), columns.numel()})};
}

Operands transposed(const Context& c) {
  return {transpose(c.input(0), {.perm = Ints(c.ints_attr("perm"))})};
}

Operands concatenated(const Context& c) {
  const int64_t axis = c.int_attr("axis", 1);
  const Values xs = c.inputs();
  return {xs.size() == 1 ? xs[0] : concat(xs, {.axis = axis})};
}

/// Without sizes, splits into equal parts; the last part may be smaller.
Operands split_up(const Context& c) {
  const Value x = c.input(0);
  const int64_t axis = c.int_attr("axis", 0);
  std::vector<int64_t> sizes = c.has_input(1) ? c.constant_integers(1) : c.ints_attr("split");
  if (sizes.empty()) {
    const auto parts = c.int_attr("num_outputs", static_cast<int64_t>(c.num_outputs()));
    int64_t left = extent(c, x, axis);
    const int64_t whole = (left + parts - 1) / parts;
    for (int64_t i = 0; i < parts; ++i, left -= sizes.back())
      sizes.push_back(std::min(whole, left));
  }
  const Values ys = split(x, {.sizes = Ints(sizes), .axis = axis});
  return {ys.begin(), ys.end()};
}

Operands sliced(const Context& c) {
  const bool inputs = c.num_inputs() > 1;  // since operator set 10, starts and ends are inputs
  SliceAttrs attrs{.starts = Ints(inputs ? c.constant_integers(1) : c.ints_attr("starts")),
                   .stops = Ints(inputs ? c.constant_integers(2) : c.ints_attr("ends"))};
  attrs.axes = Ints(c.has_input(3) ? c.constant_integers(3) : c.ints_attr("axes"));
  if (c.has_input(4)) attrs.steps = Ints(c.constant_integers(4));
  return {slice(c.input(0), attrs)};
}

/// Pads x along an axis with elements from the opposite end (mode `wrap`).
Value wrapped(Value x, int64_t axis, int64_t low, int64_t high) {
  Values parts;
  const Ints axes = {axis};
  if (low > 0) {
    parts.push_back(slice(x, {.starts = -low, .stops = INT64_MAX, .axes = axes}));
  }
  parts.push_back(x);
  if (high > 0) parts.push_back(slice(x, {.starts = 0, .stops = high, .axes = axes}));
  return parts.size() == 1 ? x : concat(parts, {.axis = axis});
}

/// Crops x where the padding is negative, and sets negative padding to 0.
Value cropped(Value x, Ints& low, Ints& high) {
  Ints starts, stops, axes;
  for (size_t d = 0; d < low.size(); ++d) {
    if (low[d] >= 0 && high[d] >= 0) continue;
    axes.push_back(static_cast<int64_t>(d));
    starts.push_back(std::max(-low[d], int64_t{0}));
    stops.push_back(high[d] < 0 ? high[d] : INT64_MAX);
    low[d] = std::max(low[d], int64_t{0});
    high[d] = std::max(high[d], int64_t{0});
  }
  return axes.empty() ? x : slice(x, {.starts = starts, .stops = stops, .axes = axes});
}

Operands padded(const Context& c) {
  Value x = c.input(0);
  const int64_t rank = x.shape().rank();
  const std::vector<int64_t> pads =
      c.has_input(1) ? c.constant_integers(1) : c.ints_attr("pads", c.ints_attr("paddings"));
  std::vector<int64_t> axes(static_cast<size_t>(rank));
  std::iota(axes.begin(), axes.end(), 0);
  if (c.has_input(3)) axes = c.constant_integers(3);
  if (pads.size() != 2 * axes.size()) c.fail_unsupported("pads do not fit the axes");
  Ints low(static_cast<size_t>(rank), 0), high(low);
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto d = static_cast<size_t>(normalize_axis(axes[i], rank));
    low.at(d) = pads[i];
    high.at(d) = pads[axes.size() + i];
  }
  x = cropped(x, low, high);
  const std::string mode = c.string_attr("mode", "constant");
  if (mode == "wrap") {
    for (int64_t d = 0; d < rank; ++d) {
      const auto i = static_cast<size_t>(d);
      x = wrapped(x, d, low[i], high[i]);
    }
    return {x};
  }
  const double value = c.has_input(2) ? c.constant(2).item() : c.float_attr("value", 0);
  return {pad(x, {.low = low, .high = high, .value = value, .mode = mode})};
}

/// Crops or pads around the centre. If the difference is odd, the extra element is at the end.
Operands centred(const Context& c) {
  const Value x = c.input(0);
  const int64_t rank = x.shape().rank();
  const std::vector<int64_t> wanted = c.constant_integers(1);
  std::vector<int64_t> axes(wanted.size());
  std::iota(axes.begin(), axes.end(), 0);
  axes = c.ints_attr("axes", axes);
  Ints low(static_cast<size_t>(rank), 0), high(low);
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto d = static_cast<size_t>(normalize_axis(axes[i], rank));
    const int64_t more = wanted.at(i) - extent(c, x, axes[i]);
    low.at(d) = more / 2;  // rounds towards 0, so that the odd element is at the end
    high.at(d) = more - low[d];
  }
  const Value inner = cropped(x, low, high);
  return {pad(inner, {.low = low, .high = high})};
}

/// Bidirectional broadcast: an extent of 1 in the requested shape keeps the input's extent.
Operands expanded(const Context& c) {
  const Value x = c.input(0);
  const std::vector<int64_t> wanted = c.constant_integers(1);
  Shape shape(wanted.begin(), wanted.end());
  const Shape& from = x.shape();
  while (shape.size() < from.size()) shape.insert(shape.begin(), Dim(1));
  for (size_t d = 0; d < from.size(); ++d) {
    Dim& extent = shape[shape.size() - from.size() + d];
    if (extent.is(1)) extent = from[d];
  }
  return {broadcast_to(x, shape)};
}

Operands tiled(const Context& c) {
  if (c.num_inputs() != 2) c.fail_unsupported("tiles along one axis (operator set 1)");
  return {tile(c.input(0), {.repeats = Ints(c.constant_integers(1))})};
}

Ints axes_of(const Context& c) {
  return Ints(c.has_input(1) ? c.constant_integers(1) : c.ints_attr("axes"));
}

Operands squeezed(const Context& c) { return {squeeze(c.input(0), {.axes = axes_of(c)})}; }

Operands unsqueezed(const Context& c) { return {unsqueeze(c.input(0), {.axes = axes_of(c)})}; }

Operands triangular(const Context& c) {
  const Value x = c.input(0);
  const int64_t diagonal = c.has_input(1) ? c.constant(1).integer(0) : 0;
  return {c.bool_attr("upper", true) ? triu(x, {.diagonal = diagonal})
                                     : tril(x, {.diagonal = diagonal})};
}

/// Rearranges [N, C b b, H, W] to [N, C, H b, W b]. Dimension 1 is laid out as [b, b, C] in mode
/// DCR, and as [C, b, b] in mode CRD.
Operands depth_to_space(const Context& c) {
  const Value x = c.input(0);
  const int64_t b = c.int_attr("blocksize", 1), channels = extent(c, x, 1) / (b * b),
                height = extent(c, x, 2), width = extent(c, x, 3);
  const Dim images = x.shape()[0];
  const bool blocks_first = c.string_attr("mode", "DCR") == "DCR";
  const Value split = blocks_first ? reshape(x, {images, b, b, channels, height, width})
                                   : reshape(x, {images, channels, b, b, height, width});
  const Ints perm = blocks_first ? Ints{0, 3, 4, 1, 5, 2} : Ints{0, 1, 4, 2, 5, 3};
  return {reshape(transpose(split, {.perm = perm}), {images, channels, height * b, width * b})};
}

/// The inverse of depth_to_space().
Operands space_to_depth(const Context& c) {
  const Value x = c.input(0);
  const int64_t b = c.int_attr("blocksize", 1), channels = extent(c, x, 1),
                height = extent(c, x, 2) / b, width = extent(c, x, 3) / b;
  const Dim images = x.shape()[0];
  const bool blocks_first = c.string_attr("mode", "DCR") == "DCR";
  const Value split = reshape(x, {images, channels, height, b, width, b});
  const Ints perm = blocks_first ? Ints{0, 3, 5, 1, 2, 4} : Ints{0, 1, 3, 5, 2, 4};
  return {reshape(transpose(split, {.perm = perm}), {images, channels * b * b, height, width})};
}

}  // namespace

void add_shapes(Mappings& all) {
  all["CenterCropPad"] = centred;
  all["Concat"] = concatenated;
  all["DepthToSpace"] = depth_to_space;
  all["Expand"] = expanded;
  all["Flatten"] = flattened;
  all["Pad"] = padded;
  all["Reshape"] = reshaped;
  all["Slice"] = sliced;
  all["SpaceToDepth"] = space_to_depth;
  all["Split"] = split_up;
  all["Squeeze"] = squeezed;
  all["Tile"] = tiled;
  all["Transpose"] = transposed;
  all["Trilu"] = triangular;
  all["Unsqueeze"] = unsqueezed;
}

}  // namespace fluid::onnx
