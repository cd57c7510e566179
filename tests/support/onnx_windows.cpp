#include "tests/support/onnx_windows.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "ops/nn/same_padding.h"
#include "ops/record.h"

namespace fluid::testing {
namespace {

using Json = nlohmann::json;
using List = std::vector<int64_t>;
using Use = std::optional<OnnxUse>;

size_t spatial_rank(const Tensor& x) { return std::max<size_t>(x.shape().size(), 2) - 2; }

/// Returns "avg_pool2d" for an op "avg_pool" and an image; null if x has not 1 to 3 spatial
/// dimensions.
std::optional<std::string> spatial_op(const std::string& op, const Tensor& x) {
  const size_t dims = spatial_rank(x);
  if (dims < 1 || dims > 3) return std::nullopt;
  return op + std::to_string(dims) + "d";
}

/// Padding by number, or by auto_pad from the input's extents.
List padding_of(const Json& given, const Tensor& x, const List& kernel) {
  const std::string automatic = given.value("auto_pad", "NOTSET");
  if (automatic == "NOTSET" || automatic == "VALID") return given.value("pads", List{0});
  ir::Program program("padding");
  const Type type{x.dtype(), Shape(x.shape().begin(), x.shape().end()), {}};
  const Value value = record_source(program.main(), "data", "x", type, {}, {});
  return same_padding(value, {.kernel = kernel,
                              .stride = given.value("strides", List{1}),
                              .dilation = given.value("dilations", List{1}),
                              .same = automatic == "SAME_LOWER" ? Same::lower : Same::upper});
}

Attrs window_of(const Json& given, const Tensor& x, const List& kernel) {
  return {{"stride", given.value("strides", List{1})},
          {"padding", padding_of(given, x, kernel)},
          {"dilation", given.value("dilations", List{1})}};
}

List kernel_of(const Tensor& filter) { return {filter.shape().begin() + 2, filter.shape().end()}; }

/// auto_pad and output_shape give the padding by the extents of the result, from which total
/// padding = stride (x - 1) + output_padding + dilation (k - 1) + 1 - y. Its larger half is before
/// the elements, and after them for SAME_UPPER. Negative padding is output_padding.
void pad_transposed(const Json& given, const std::vector<Tensor>& in, const List& kernel,
                    Attrs& attrs) {
  const std::string automatic = given.value("auto_pad", "NOTSET");
  const bool by_shape = given.contains("output_shape");
  if (automatic == "NOTSET" && !by_shape) return;
  const List stride = given.value("strides", List(kernel.size(), 1));
  const List dilation = given.value("dilations", List(kernel.size(), 1));
  List before, after, added;
  for (size_t d = 0; d < kernel.size(); ++d) {
    const int64_t x = in[0].shape()[d + 2];
    const int64_t y = by_shape ? given.at("output_shape").get<List>().at(d) : x * stride[d];
    const int64_t total = stride[d] * (x - 1) + dilation[d] * (kernel[d] - 1) + 1 - y;
    const int64_t padding = std::max(total, int64_t{0}), half = padding / 2;
    added.push_back(padding - total);
    before.push_back(automatic == "SAME_UPPER" ? half : padding - half);
    after.push_back(padding - before.back());
  }
  before.insert(before.end(), after.begin(), after.end());
  attrs.set("padding", before);
  attrs.set("output_padding", added);
}

Use pool(const std::string& op, const Json& given, const std::vector<Tensor>& in) {
  const auto spatial = op == "lp_pool" ? op : spatial_op(op, in[0]);
  if (!spatial || !is_float(in[0].dtype())) return std::nullopt;
  const List kernel = given.at("kernel_shape").get<List>();
  OnnxUse use{*spatial, in, window_of(given, in[0], kernel), {}};
  use.attrs.set("kernel", kernel);
  use.attrs.set("ceil_mode", given.value("ceil_mode", 0) != 0);
  return use;
}

/// Extents of the result of Resize; empty where it does not resize by in / out exactly, or not only
/// the last two dimensions.
List resized_extents(const Json& given, const Tensor& x, const Tensor* scales,
                     const Tensor* sizes) {
  const Tensor& by = scales != nullptr ? *scales : *sizes;
  List axes = given.value("axes", List{0, 1, 2, 3});
  if (x.shape().size() != 4 || axes.size() != static_cast<size_t>(by.numel())) return {};
  List extents = x.shape();
  for (size_t i = 0; i < axes.size(); ++i) {
    int64_t& extent = extents[static_cast<size_t>(axes[i] < 0 ? axes[i] + 4 : axes[i])];
    const double n = by.at(static_cast<int64_t>(i));
    const double exact = scales != nullptr ? static_cast<double>(extent) * n : n;
    if (exact != std::floor(exact)) return {};
    extent = static_cast<int64_t>(exact);
  }
  if (extents[0] != x.shape()[0] || extents[1] != x.shape()[1]) return {};
  return {extents[2], extents[3]};
}

/// Whether nearest rounds each source coordinate to element floor(i in / out).
bool rounds_down(const Json& given, const Tensor& x, const List& out) {
  const std::string rounding = given.value("nearest_mode", "round_prefer_floor");
  const std::string mode = given.value("coordinate_transformation_mode", "half_pixel");
  const bool whole = out[0] % x.shape()[2] == 0 && out[1] % x.shape()[3] == 0;
  return (mode == "asymmetric" && rounding == "floor") ||
         (mode == "half_pixel" && whole && rounding.starts_with("round_"));
}

Use resized(const Json& given, const Tensor& x, const Tensor* scales, const Tensor* sizes) {
  const std::map<std::string, std::string> kModes = {
      {"nearest", "nearest"}, {"linear", "bilinear"}, {"cubic", "bicubic"}};
  const std::string mode = kModes.at(given.value("mode", "nearest"));
  const std::string at = given.value("coordinate_transformation_mode", "half_pixel");
  const List out = resized_extents(given, x, scales, sizes);
  if (out.empty() || given.value("antialias", 0) != 0 || given.value("exclude_outside", 0) != 0 ||
      given.value("keep_aspect_ratio_policy", "stretch") != "stretch" ||
      given.value("cubic_coeff_a", -0.75) != -0.75) {
    return std::nullopt;
  }
  const bool align = at == "align_corners";
  const bool halves = at == "half_pixel" || at == "half_pixel_symmetric" ||
                      (at == "pytorch_half_pixel" && out[0] > 1 && out[1] > 1);
  if (mode == "nearest" ? !rounds_down(given, x, out) : !align && !halves) return std::nullopt;
  return OnnxUse{"resize2d", {x}, {{"output", out}, {"mode", mode}, {"align_corners", align}}, {}};
}

}  // namespace

Use convolution(const Json& given, const std::vector<Tensor>& in) {
  const auto op = spatial_op("conv", in[0]);
  if (!op) return std::nullopt;
  OnnxUse use{*op, {in[0], in[1]}, window_of(given, in[0], kernel_of(in[1])), {}};
  use.attrs.set("groups", given.value("group", int64_t{1}));
  if (in.size() > 2) use.bias = in[2];
  return use;
}

Use transposed_convolution(const Json& given, const std::vector<Tensor>& in) {
  const auto op = spatial_op("conv", in[0]);
  if (!op) return std::nullopt;
  OnnxUse use{*op + "_transpose", {in[0], in[1]}, {}, {}};
  use.attrs = {{"stride", given.value("strides", List{1})},
               {"padding", given.value("pads", List{0})},
               {"dilation", given.value("dilations", List{1})},
               {"output_padding", given.value("output_padding", List{0})},
               {"groups", given.value("group", int64_t{1})}};
  pad_transposed(given, in, kernel_of(in[1]), use.attrs);
  if (in.size() > 2) use.bias = in[2];
  return use;
}

Use max_pool(const Json& given, const std::vector<Tensor>& in) {
  return pool("max_pool", given, in);
}

Use average_pool(const Json& given, const std::vector<Tensor>& in) {
  Use use = pool("avg_pool", given, in);
  if (use) use->attrs.set("count_include_pad", given.value("count_include_pad", 0) != 0);
  return use;
}

Use lp_pool(const Json& given, const std::vector<Tensor>& in) {
  Use use = pool("lp_pool", given, in);
  if (use) use->attrs.set("p", static_cast<double>(given.value("p", 2)));
  return use;
}

Use global_pool(const std::string& op, const std::vector<Tensor>& in) {
  if (in[0].shape().size() != 4) return std::nullopt;
  return OnnxUse{op, in, {{"output", List{1}}}, {}};
}

Use resize(const Json& given, const std::vector<Tensor>& in) {
  const auto operand = [&](size_t i) {
    return i < in.size() && in[i].numel() > 0 ? &in[i] : nullptr;
  };
  return resized(given, in[0], operand(2), operand(3));
}

/// Upsample truncates coordinates.
Use upsample(const Json& given, const std::vector<Tensor>& in) {
  if (given.value("mode", "nearest") != "nearest") return std::nullopt;
  Json truncated = given;
  truncated["coordinate_transformation_mode"] = "asymmetric";
  truncated["nearest_mode"] = "floor";
  return resized(truncated, in[0], &in[1], nullptr);
}

}  // namespace fluid::testing
