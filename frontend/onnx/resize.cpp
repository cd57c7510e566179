// Resize and Upsample. Uses op resize2d where it applies. Otherwise resizes each axis in turn: mode
// `nearest` gathers elements, and other modes multiply by an interpolation matrix.

#include <algorithm>
#include <cmath>
#include <numeric>

#include "frontend/onnx/context.h"
#include "ops/operators.h"

namespace fluid::onnx {
namespace {

/// An axis to resize: its extents before (`in`) and after (`out`), and the region of interest.
struct Axis {
  int64_t axis = 0, in = 0, out = 0;
  double scale = 1;
  double roi_start = 0, roi_end = 1;
};

struct Options {
  std::string mode, coordinates, nearest_mode;
  bool antialias = false, exclude_outside = false;
  double cubic_coefficient = -0.75, extrapolation_value = 0;
};

Options options_of(const Context& c) {
  if (c.op() == "Upsample") {
    return {.mode = c.string_attr("mode", "nearest"),
            .coordinates = "asymmetric",
            .nearest_mode = "floor"};
  }
  return {.mode = c.string_attr("mode", "nearest"),
          .coordinates = c.string_attr("coordinate_transformation_mode",
                                       c.opset() < 11 ? "asymmetric" : "half_pixel"),
          .nearest_mode =
              c.string_attr("nearest_mode", c.opset() < 11 ? "floor" : "round_prefer_floor"),
          .antialias = c.bool_attr("antialias", false),
          .exclude_outside = c.bool_attr("exclude_outside", false),
          .cubic_coefficient = c.float_attr("cubic_coeff_a", -0.75),
          .extrapolation_value = c.float_attr("extrapolation_value", 0)};
}

/// Returns the axes with their scales and output extents. Before operator set 11, input 1 of Resize
/// holds the scales.
std::vector<Axis> axes_of(const Context& c, Value x) {
  const bool old = c.op() == "Upsample" || c.opset() < 11;
  const size_t scale_input = old ? 1 : 2;
  std::vector<int64_t> numbers(static_cast<size_t>(x.shape().rank()));
  std::iota(numbers.begin(), numbers.end(), 0);
  numbers = c.ints_attr("axes", numbers);
  const Tensor* sizes = old || !c.has_input(3) ? nullptr : &c.constant(3);
  if (sizes != nullptr && sizes->numel() == 0) sizes = nullptr;
  std::vector<double> scales = c.floats_attr("scales");
  if (sizes == nullptr && scales.empty()) {
    const Tensor& given = c.constant(scale_input);
    for (int64_t i = 0; i < given.numel(); ++i) scales.push_back(given.at(i));
  }
  std::vector<Axis> axes;
  for (size_t i = 0; i < numbers.size(); ++i) {
    Axis a{.axis = normalize_axis(numbers[i], x.shape().rank())};
    const bool scaled = sizes == nullptr && scales.at(i) == 1;
    if (scaled && !x.shape()[static_cast<size_t>(a.axis)].is_constant()) continue;
    a.in = extent(c, x, a.axis);
    if (sizes != nullptr) {
      a.out = sizes->integer(static_cast<int64_t>(i));
      a.scale = static_cast<double>(a.out) / static_cast<double>(a.in);
    } else {
      a.scale = scales.at(i);
      a.out = static_cast<int64_t>(std::floor(a.scale * static_cast<double>(a.in)));
    }
    axes.push_back(a);
  }
  return axes;
}

/// Uses the same scale for all axes unless keep_aspect_ratio_policy is `stretch`.
void keep_aspect_ratio(const Context& c, std::vector<Axis>& axes) {
  const std::string policy = c.string_attr("keep_aspect_ratio_policy", "stretch");
  if (policy == "stretch" || axes.empty() || !c.has_input(3)) return;
  const auto [least, greatest] = std::ranges::minmax(axes, {}, &Axis::scale);
  const double scale = policy == "not_larger" ? least.scale : greatest.scale;
  for (Axis& a : axes) {
    a.scale = scale;
    a.out = std::lround(scale * static_cast<double>(a.in));
  }
}

/// Sets the regions of interest. Input `roi` holds the starts of all axes, then the ends.
void set_regions(const Context& c, const Options& options, std::vector<Axis>& axes) {
  if (options.coordinates != "tf_crop_and_resize") return;
  const Tensor& roi = c.constant(1);
  const auto n = static_cast<int64_t>(axes.size());
  if (roi.numel() != 2 * n) c.fail_unsupported("the region of interest does not fit the axes");
  for (int64_t i = 0; i < n; ++i) {
    axes[static_cast<size_t>(i)].roi_start = roi.at(i);
    axes[static_cast<size_t>(i)].roi_end = roi.at(n + i);
  }
}

/// Returns the input coordinate of output element i, by coordinate_transformation_mode `mode`.
double coordinate(const Context& c, const Axis& a, const std::string& mode, int64_t i) {
  const auto x = static_cast<double>(i), in = static_cast<double>(a.in);
  const double out = a.scale * in;  // fractional output extent
  const double half_pixel = (x + 0.5) / a.scale - 0.5;
  if (mode == "half_pixel") return half_pixel;
  if (mode == "asymmetric") return x / a.scale;
  if (mode == "align_corners") return out == 1 ? 0 : x * (in - 1) / (out - 1);
  if (mode == "pytorch_half_pixel") return out == 1 ? -0.5 : half_pixel;
  if (mode == "half_pixel_symmetric") {
    return in / 2 * (1 - static_cast<double>(a.out) / out) + half_pixel;
  }
  if (mode != "tf_crop_and_resize") c.fail_unsupported("coordinates '" + mode + "'");
  const double extent = a.roi_end - a.roi_start;
  return a.roi_start * (in - 1) +
         (out == 1 ? extent * (in - 1) / 2 : x * extent * (in - 1) / (out - 1));
}

/// The last element strictly before a coordinate, and its distance to the coordinate, in (0, 1].
struct Neighbour {
  int64_t index;
  double ratio;
};

Neighbour neighbour_before(double coordinate) {
  const double index = std::ceil(coordinate) - 1;
  return {static_cast<int64_t>(index), coordinate - index};
}

int64_t nearest(double coordinate, const std::string& rounding) {
  const auto [index, ratio] = neighbour_before(coordinate);
  if (ratio == 1) return index + 1;
  if (rounding == "floor") return index;
  if (rounding == "ceil") return index + 1;
  const bool after = rounding == "round_prefer_ceil" ? ratio >= 0.5 : ratio > 0.5;
  return after ? index + 1 : index;
}

/// Weight of cubic interpolation at distance x (Keys, "Cubic convolution interpolation", 1981).
double cubic(double x, double a) {
  x = std::abs(x);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

double linear(double x) { return std::max(1 - std::abs(x), 0.0); }

/// Returns the weight of each input element in an output element whose input coordinate is
/// `coordinate`. Indices outside the input are clamped to its ends, or ignored with
/// exclude_outside. With antialias, downscaling widens the filter.
std::vector<double> coefficients(const Axis& a, const Options& options, double coordinate) {
  const double scale = options.antialias ? std::min(a.scale, 1.0) : 1.0;
  const bool is_cubic = options.mode == "cubic";
  const auto [index, ratio] = neighbour_before(coordinate);
  const auto first = static_cast<int64_t>(std::floor((is_cubic ? -2 : -1) / scale)) + 1;
  std::vector<double> all(static_cast<size_t>(a.in), 0);
  double sum = 0;
  for (int64_t i = first; i < 2 - first; ++i) {
    const double distance = (static_cast<double>(i) - ratio) * scale;
    const double weight = is_cubic ? cubic(distance, options.cubic_coefficient) : linear(distance);
    const int64_t element = index + i;
    if (options.exclude_outside && (element < 0 || element >= a.in)) continue;
    all[static_cast<size_t>(std::clamp(element, int64_t{0}, a.in - 1))] += weight;
    sum += weight;
  }
  for (double& weight : all) weight = sum == 0 ? weight : weight / sum;
  return all;
}

Value gather_nearest(const Context& c, Value x, const Axis& a, const Options& options) {
  std::vector<int64_t> index;
  for (int64_t i = 0; i < a.out; ++i) {
    const double at = coordinate(c, a, options.coordinates, i);
    index.push_back(std::clamp(nearest(at, options.nearest_mode), int64_t{0}, a.in - 1));
  }
  return gather(x, c.record_constant(i64_tensor(index)), {.axis = a.axis});
}

Value interpolated(const Context& c, Value x, const Axis& a, const Options& options) {
  Tensor matrix(f64, {a.out, a.in});
  for (int64_t i = 0; i < a.out; ++i) {
    const auto row = coefficients(a, options, coordinate(c, a, options.coordinates, i));
    std::ranges::copy(row, matrix.as<double>().begin() + i * a.in);
  }
  const Value weights = c.record_constant(matrix.cast(x.dtype()));
  if (x.shape().rank() == 1) {
    return squeeze(matmul(unsqueeze(x, {.axes = 0}), weights, {.transpose_b = true}), {.axes = 0});
  }
  return move_axis(matmul(move_axis(x, a.axis, -1), weights, {.transpose_b = true}), -1, a.axis);
}

/// Replaces output elements whose coordinates are outside the input by extrapolation_value.
Value extrapolated(const Context& c, Value y, const Axis& a, const Options& options) {
  Tensor outside(boolean, {a.out});
  bool any_outside = false;
  for (int64_t i = 0; i < a.out; ++i) {
    const double at = coordinate(c, a, options.coordinates, i);
    const bool is_outside = at < 0 || at > static_cast<double>(a.in - 1);
    outside.as<bool>()[static_cast<size_t>(i)] = is_outside;
    any_outside = any_outside || is_outside;
  }
  if (!any_outside) return y;
  Shape shape(y.shape().size(), Dim(1));
  shape[static_cast<size_t>(a.axis)] = a.out;
  return where(reshape(c.record_constant(outside), shape),
               scalar_like(y, options.extrapolation_value), y);
}

bool is_identity(const Axis& a) {
  return a.scale == 1 && a.in == a.out && a.roi_start == 0 && a.roi_end == 1;
}

/// Returns whether op resize2d computes this resize. Only the last two axes of x may change, with a
/// scale of exactly out / in.
bool is_resize2d(Value x, const std::vector<Axis>& axes, const Options& options) {
  if (x.shape().rank() != 4 || !is_float(x.dtype()) || options.antialias ||
      options.exclude_outside || options.cubic_coefficient != -0.75) {
    return false;
  }
  bool whole = true;
  for (const Axis& a : axes) {
    if (is_identity(a)) continue;
    const bool exact = a.scale * static_cast<double>(a.in) == static_cast<double>(a.out);
    if (a.axis < 2 || !exact) return false;
    whole = whole && a.out % a.in == 0;
  }
  if (options.mode != "nearest") {
    return options.coordinates == "half_pixel" || options.coordinates == "align_corners";
  }
  const bool rounds = options.nearest_mode.starts_with("round_");
  return (options.coordinates == "asymmetric" && options.nearest_mode == "floor") ||
         (options.coordinates == "half_pixel" && whole && rounds);
}

Value resized_images(Value x, const std::vector<Axis>& axes, const Options& options) {
  static const std::map<std::string, std::string> kModes = {
      {"nearest", "nearest"}, {"linear", "bilinear"}, {"cubic", "bicubic"}};
  Ints output = {x.shape()[2].size, x.shape()[3].size};
  for (const Axis& a : axes) {
    if (a.axis >= 2) output[static_cast<size_t>(a.axis - 2)] = a.out;
  }
  return resize2d(x, {.output = output,
                      .mode = kModes.at(options.mode),
                      .align_corners = options.coordinates == "align_corners"});
}

Operands resized(const Context& c) {
  Value x = c.input(0);
  const Options options = options_of(c);
  if (options.mode != "nearest" && options.mode != "linear" && options.mode != "cubic") {
    c.fail_unsupported("mode '" + options.mode + "'");
  }
  std::vector<Axis> axes = axes_of(c, x);
  keep_aspect_ratio(c, axes);
  set_regions(c, options, axes);
  if (is_resize2d(x, axes, options)) return {resized_images(x, axes, options)};
  const bool crops = options.coordinates == "tf_crop_and_resize";
  for (const Axis& a : axes) {
    if (is_identity(a)) continue;
    const bool by_index = options.mode == "nearest";
    if (!by_index && !is_float(x.dtype())) c.fail_unsupported("interpolates " + x.type().str());
    x = by_index ? gather_nearest(c, x, a, options) : interpolated(c, x, a, options);
    if (crops) x = extrapolated(c, x, a, options);
  }
  return {x};
}

}  // namespace

void add_resize(Mappings& all) { all["Resize"] = all["Upsample"] = resized; }

}  // namespace fluid::onnx
