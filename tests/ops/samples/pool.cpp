// Pools and their gradients against plain loops.

#include <cmath>

#include "tests/support/op_harness.h"
#include "tests/support/windows.h"

namespace fluid::testing::pool_samples {
namespace {

/// A pool as a list of the taps of all windows of one image.
struct Layout {
  Extents out;  ///< spatial extents of the result
  std::vector<Tap> taps;
};

Layout moving(const Attrs& attrs, const Extents& image) {
  const Windows w = windows_of(attrs, image.size());
  Layout layout{w.counts(image), {}};
  for_each_tap(w, image, [&](const Tap& t) { layout.taps.push_back(t); });
  return layout;
}

/// Window i of n over m elements is [floor(i m / n), ceil((i + 1) m / n)); positions count as in
/// the widest one.
Layout adaptive(int64_t out_height, int64_t out_width, int64_t height, int64_t width) {
  const auto begin = [](int64_t i, int64_t m, int64_t n) { return i * m / n; };
  const auto end = [](int64_t i, int64_t m, int64_t n) { return ((i + 1) * m + n - 1) / n; };
  int64_t widest = 0;
  for (int64_t i = 0; i < out_width; ++i) {
    widest = std::max(widest, end(i, width, out_width) - begin(i, width, out_width));
  }
  Layout layout{{out_height, out_width}, {}};
  for (int64_t i = 0; i < out_height; ++i) {
    for (int64_t j = 0; j < out_width; ++j) {
      const int64_t top = begin(i, height, out_height), left = begin(j, width, out_width);
      for (int64_t y = top; y < end(i, height, out_height); ++y) {
        for (int64_t x = left; x < end(j, width, out_width); ++x) {
          layout.taps.push_back(
              {i * out_width + j, (y - top) * widest + x - left, y * width + x, true, true});
        }
      }
    }
  }
  return layout;
}

/// The pool of an op and the shape of its input; of a gradient: of the pool that it belongs to.
Layout layout_of(const std::string& op, const Sample& s, const Extents& input) {
  if (!op.starts_with("adaptive")) return moving(s.attrs, image_of(input));
  Extents out = s.attrs.get_or<Extents>("output", {});
  if (out.size() == 1) out.push_back(out[0]);
  if (out.empty()) out = {s.inputs[0].shape()[2], s.inputs[0].shape()[3]};
  return adaptive(out[0], out[1], input[2], input[3]);
}

Extents input_of(const Sample& s) {
  if (!s.attrs.has("input")) return s.inputs[0].shape();
  Extents shape;
  for (const Dim& d : s.attrs.get<Type>("input").shape) {
    shape.push_back(d.at(s.inputs[0].shape()[0]));
  }
  return shape;
}

/// Calls visit(position in the result, in the input, tap) for every tap of every window.
template <class F>
void for_each_element(const Layout& layout, const Extents& input, F visit) {
  const int64_t size = numel_of(layout.out), image = numel_of(image_of(input));
  for (int64_t i = 0; i < input[0] * input[1]; ++i) {
    for (const Tap& t : layout.taps) visit(i * size + t.window, i * image + t.element, t);
  }
}

Tensor empty_result(const Extents& input, const Layout& layout) {
  Extents shape = layout.out;
  shape.insert(shape.begin(), {input[0], input[1]});
  return Tensor(f64, shape);
}

/// How many elements each window of an image is divided by.
std::vector<double> divisors(const Sample& s, const Layout& layout) {
  const bool padding = s.attrs.get_or("count_include_pad", true);
  const auto given = static_cast<double>(s.attrs.get_or<int64_t>("divisor_override", 0));
  std::vector<double> n(static_cast<size_t>(numel_of(layout.out)), given);
  for (const Tap& t : layout.taps) {
    if (given == 0) n[static_cast<size_t>(t.window)] += t.inside || (padding && t.padded) ? 1 : 0;
  }
  return n;
}

double divisor(const std::vector<double>& divisors, const Tap& t) {
  return divisors[static_cast<size_t>(t.window)];
}

std::vector<Tensor> averages(const std::string& op, const Sample& s) {
  const Extents input = input_of(s);
  const Layout layout = layout_of(op, s, input);
  const std::vector<double> n = divisors(s, layout);
  Tensor y = empty_result(input, layout);
  for_each_element(layout, input, [&](int64_t out, int64_t in, const Tap& t) {
    if (t.inside) at(y, out) += s.inputs[0].at(in) / divisor(n, t);
  });
  return {y};
}

std::vector<Tensor> average_gradients(const std::string& op, const Sample& s) {
  const Extents input = input_of(s);
  const Layout layout = layout_of(op, s, input);
  const std::vector<double> n = divisors(s, layout);
  Tensor dx(f64, input);
  for_each_element(layout, input, [&](int64_t out, int64_t in, const Tap& t) {
    if (t.inside) at(dx, in) += s.inputs[0].at(out) / divisor(n, t);
  });
  return {dx};
}

std::vector<Tensor> maxima(const std::string& op, const Sample& s) {
  const Extents input = input_of(s);
  const Layout layout = layout_of(op, s, input);
  Tensor y = empty_result(input, layout);
  Tensor position(f64, y.shape());
  for (double& v : y.as<double>()) v = -INFINITY;
  for_each_element(layout, input, [&](int64_t out, int64_t in, const Tap& t) {
    const double x = t.inside ? s.inputs[0].at(in) : -INFINITY;
    if (x > at(y, out) || (std::isnan(x) && !std::isnan(at(y, out)))) {
      at(y, out) = x;
      at(position, out) = static_cast<double>(t.tap);
    }
  });
  return {y, position.cast(i64)};
}

std::vector<Tensor> maximum_gradients(const std::string& op, const Sample& s) {
  const Extents input = input_of(s);
  Tensor dx(f64, input);
  for_each_element(layout_of(op, s, input), input, [&](int64_t out, int64_t in, const Tap& t) {
    const bool largest = s.inputs[1].at(out) == static_cast<double>(t.tap);
    if (t.inside && largest) at(dx, in) += s.inputs[0].at(out);
  });
  return {dx};
}

std::vector<Tensor> norms(const std::string&, const Sample& s) {
  const Extents input = s.inputs[0].shape();
  const Layout layout = moving(s.attrs, image_of(input));
  const double p = s.attrs.get_or("p", 2.0);
  Tensor y = empty_result(input, layout);
  for_each_element(layout, input, [&](int64_t out, int64_t in, const Tap& t) {
    if (t.inside) at(y, out) += std::pow(std::abs(s.inputs[0].at(in)), p);
  });
  for (double& v : y.as<double>()) v = std::pow(v, 1 / p);
  return {y};
}

using Reference = std::vector<Tensor> (*)(const std::string&, const Sample&);

OpTest pool_test(std::string op, std::vector<Sample> samples, Reference reference) {
  OpTest t;
  t.op = op;
  t.samples = std::move(samples);
  t.reference = [op, reference](const Sample& s) { return reference(op, s); };
  t.slack = 8;
  return t;
}

Attrs window(Extents kernel, Extents stride = {}, Extents padding = {0}) {
  return {{"kernel", std::move(kernel)},
          {"stride", std::move(stride)},
          {"padding", std::move(padding)}};
}

Attrs with(Attrs attrs, const std::string& name, Attr value) {
  attrs.set(name, std::move(value));
  return attrs;
}

std::vector<Sample> moving_samples() {
  return {{{random_tensor({2, 2, 6, 4})}, window({2}), {}},
          {{random_tensor({1, 1, 1, 1})}, window({1}), {}},
          {{random_tensor({1, 2, 5, 7})}, window({2}), {}},
          {{random_tensor({1, 1, 7, 8})}, window({3}, {2}, {1}), {}},
          {{random_tensor({1, 2, 7, 8})}, window({3, 2}, {1, 3}, {1, 0}), {}},
          {{random_tensor({1, 1, 5, 5})}, window({3}, {2}, {0, 2, 1, 0}), {}},
          {{random_tensor({1, 1, 8, 8})}, window({2}, {3}), {}},
          {{random_tensor({0, 2, 3, 3})}, window({2}), {}},
          {{random_tensor({3, 0, 2, 2})}, window({2}), {}},
          {{random_tensor({5, 1, 3, 4})}, window({2}), {0}},
          {{random_tensor({1, 1, 3, 4})}, window({2}), {0}},
          {{random_tensor({0, 1, 3, 4})}, window({2}), {0}}};
}

/// Adds a sample with window attributes `attrs` and attribute `name`.
void add_window(std::vector<Sample>& samples, Extents shape, Attrs attrs, const std::string& name,
                Attr value) {
  samples.push_back(
      {{random_tensor(std::move(shape))}, with(std::move(attrs), name, std::move(value)), {}});
}

/// Windows that ceil_mode adds, windows that it does not add because they begin in the padding, and
/// a window that is larger than the padded image.
void add_ceil_mode(std::vector<Sample>& samples) {
  add_window(samples, {1, 1, 5, 4}, window({2}, {2}), "ceil_mode", true);
  add_window(samples, {1, 1, 6, 5}, window({3, 2}, {2, 3}, {1}), "ceil_mode", true);
  add_window(samples, {1, 1, 2, 2}, window({3}, {3}, {1}), "ceil_mode", true);
  add_window(samples, {1, 1, 2, 4}, window({3}, {2}, {0, 1}), "ceil_mode", true);
}

std::vector<Sample> dilated_samples() {
  std::vector<Sample> samples = moving_samples();
  add_window(samples, {1, 2, 9, 9}, window({3, 2}, {2, 1}, {1}), "dilation", Extents{2, 3});
  add_window(samples, {1, 1, 7, 5}, window({2}, {3}), "dilation", Extents{3, 1});
  // Positions of more than a byte.
  add_window(samples, {1, 1, 17, 18}, window({17}, {1}), "dilation", Extents{1});
  add_ceil_mode(samples);
  return samples;
}

std::vector<Sample> samples_1d() {
  std::vector<Sample> samples = {{{random_tensor({2, 2, 7})}, window({2}), {}},
                                 {{random_tensor({1, 1, 1})}, window({1}), {}},
                                 {{random_tensor({0, 2, 3})}, window({2}), {}},
                                 {{random_tensor({1, 2, 8})}, window({3}, {2}, {0, 2}), {}},
                                 {{random_tensor({3, 1, 5})}, window({3}, {1}, {1}), {0}}};
  add_window(samples, {1, 1, 7}, window({2}, {3}), "ceil_mode", true);
  add_window(samples, {1, 1, 7}, window({3}, {1}, {2}), "dilation", Extents{2});
  return samples;
}

std::vector<Sample> samples_3d() {
  std::vector<Sample> samples = {
      {{random_tensor({1, 2, 2, 4, 3})}, window({2}), {}},
      {{random_tensor({1, 1, 1, 1, 1})}, window({1}), {}},
      {{random_tensor({0, 1, 2, 2, 2})}, window({2}), {}},
      {{random_tensor({1, 1, 3, 2, 5})}, window({2, 1, 3}, {1, 2, 2}, {1, 0, 0, 0, 0, 2}), {}},
      {{random_tensor({2, 1, 2, 3, 2})}, window({2}, {1}, {1, 0, 1}), {0}}};
  add_window(samples, {1, 1, 3, 2, 3}, window({2}, {2}), "ceil_mode", true);
  add_window(samples, {1, 1, 3, 1, 5}, window({2, 1, 2}, {1}), "dilation", Extents{2, 1, 3});
  return samples;
}

/// Each of the samples also without counting the padding, and one with a given divisor.
std::vector<Sample> uncounted(std::vector<Sample> samples) {
  for (size_t i = 0, n = samples.size(); i < n; ++i) {
    samples.push_back(samples[i]);
    samples.back().attrs.set("count_include_pad", false);
  }
  samples.push_back(samples[0]);
  samples.back().attrs.set("divisor_override", int64_t{3});
  return samples;
}

std::vector<Sample> uncounted_samples() {
  std::vector<Sample> samples = moving_samples();
  add_ceil_mode(samples);
  add_window(samples, {1, 1, 5, 4}, window({2}, {1}, {1}), "dilation", Extents{3, 2});
  // Windows of which no tap is an element.
  add_window(samples, {1, 1, 1, 3}, window({2}, {1}, {1}), "dilation", Extents{2});
  // Strides that share a factor with the dilation, or do not.
  add_window(samples, {1, 1, 5, 6}, window({2}, {2}, {1}), "dilation", Extents{2});
  add_window(samples, {1, 1, 7, 8}, window({3, 2}, {2, 3}, {1}), "dilation", Extents{2, 3});
  for (size_t i = samples.size() - 2, n = samples.size(); i < n; ++i) {
    samples.push_back(samples[i]);
    samples.back().attrs.set("ceil_mode", true);
  }
  return uncounted(samples);
}

std::vector<Sample> norm_samples() {
  std::vector<Sample> samples;
  for (const double p : {1.0, 2.0, 3.0, 2.5}) add_window(samples, {2, 1, 5}, window({2}), "p", p);
  add_window(samples, {1, 2, 5, 4}, window({2, 3}, {2, 1}, {1}), "p", 3.0);
  add_window(samples, {1, 1, 2, 3, 2}, window({2}, {1}), "p", 2.0);
  add_window(samples, {1, 1, 5, 5}, window({2}), "ceil_mode", true);
  add_window(samples, {1, 1, 5, 5}, window({2}), "dilation", Extents{2});
  samples.push_back({{random_tensor({0, 1, 3})}, window({2}), {}});
  samples.push_back({{random_tensor({1, 1, 1})}, window({1}), {}});
  samples.push_back({{random_tensor({3, 1, 3})}, window({2}), {0}});
  return samples;
}

std::vector<Sample> adaptive_samples() {
  const auto to = [](Extents output) { return Attrs{{"output", std::move(output)}}; };
  return {{{random_tensor({2, 3, 5, 5})}, to({1}), {}},
          {{random_tensor({1, 2, 7, 8})}, to({3, 5}), {}},
          {{random_tensor({1, 2, 6, 8})}, to({3, 2}), {}},
          {{random_tensor({1, 1, 3, 4})}, to({5, 7}), {}},
          {{random_tensor({1, 1, 1, 1})}, to({1}), {}},
          {{random_tensor({0, 2, 3, 3})}, to({2}), {}},
          {{random_tensor({5, 1, 5, 3})}, to({2}), {0}},
          {{random_tensor({1, 1, 5, 3})}, to({2}), {0}}};
}

/// Derives the samples of a pool's gradient from the samples of the pool: a gradient and, for max
/// pooling, the argmax indices.
std::vector<Sample> gradient_samples(const std::string& pool, const std::vector<Sample>& samples,
                                     bool positions) {
  std::vector<Sample> gradients;
  for (const Sample& s : samples) {
    const Extents input = input_of(s);
    const Layout layout = layout_of(pool, s, input);
    Sample g;
    g.inputs = {random_tensor(empty_result(input, layout).shape())};
    Type type{f64, Shape(input.begin(), input.end()), {}};
    if (!s.batch_dims.empty()) {
      g.batch_dims = {0, 0};
      type.shape[0] = kBatch;
    }
    g.attrs = with(s.attrs, "input", type);
    g.attrs.erase("output");
    if (positions) {
      int64_t largest = 0;
      for (const Tap& t : layout.taps) largest = std::max(largest, t.tap);
      g.inputs.push_back(maxima(pool, s)[1].cast(largest < 256 ? u8 : i32));
    }
    gradients.push_back(g);
  }
  return gradients;
}

/// Images full of ties, and with NaN: the first of equals wins, and NaN wins over all.
std::vector<Sample> tied(std::vector<Sample> samples) {
  for (Sample& s : samples) {
    Tensor x = s.inputs[0].copy();
    for (int64_t i = 0; i < x.numel(); ++i) {
      at(x, i) = i % 11 == 5 ? NAN : i % 13 == 2 ? -INFINITY : std::floor(at(x, i));
    }
    s.inputs[0] = x;
  }
  return samples;
}

OpTest without_gradient(OpTest t) {
  t.gradient = false;
  return t;
}

OpTest max_pool2d_test() {
  OpTest t = pool_test("max_pool2d", dilated_samples(), maxima);
  const Type x = {f32, {1, 1, 4, 4}, {}};
  t.bad = {
      {{{f32, {4, 4}, {}}},
       window({2}),
       "max_pool2d: expects a float tensor [N, C, H, W], got f32[4, 4]"},
      {{x},
       {},
       "max_pool2d: needs attribute 'kernel' (window size: one number, or one for the height and "
       "one "
       "for the width)"},
      {{x}, window({0}), "max_pool2d: attribute 'kernel' must lie between 1 and 32768, not be 0"},
      {{x},
       window({}),
       "max_pool2d: attribute 'kernel' takes one number, or one for the height and one for the "
       "width, not 0"},
      {{x},
       window({2}, {0}),
       "max_pool2d: attribute 'stride' must lie between 1 and 32768, not be 0"},
      {{x},
       window({5}),
       "max_pool2d: a window that reaches over 5 x 5 elements does not fit into the padded input "
       "[1, 1, 4, 4]"},
      {{x},
       window({2}, {1}, {2}),
       "max_pool2d: the padding must be smaller than the window, or some windows hold no element"}};
  return t;
}

OpTest max_pool2d_grad_test() {
  OpTest t = pool_test("max_pool2d_grad", gradient_samples("max_pool2d", dilated_samples(), true),
                       maximum_gradients);
  const Attrs attrs = with(window({2}), "input", Type{f32, {1, 1, 4, 4}, {}});
  const Type dy = {f32, {1, 1, 2, 2}, {}}, wide = {f32, {1, 1, 4, 4}, {}};
  t.bad = {{{wide, {u8, {1, 1, 2, 2}, {}}},
            attrs,
            "max_pool2d_grad: expects a gradient f32[1, 1, 2, 2], got f32[1, 1, 4, 4]"},
           {{dy, {i32, {1, 1, 2, 2}, {}}},
            attrs,
            "max_pool2d_grad: expects positions u8[1, 1, 2, 2], got i32[1, 1, 2, 2]"}};
  return t;
}

OpTest avg_pool2d_grad_test() {
  OpTest t =
      pool_test("avg_pool2d_grad", gradient_samples("avg_pool2d", uncounted_samples(), false),
                average_gradients);
  t.bad = {{{{f32, {1, 1, 4, 4}, {}}},
            with(window({2}), "input", Type{f32, {1, 1, 4, 4}, {}}),
            "avg_pool2d_grad: expects a gradient f32[1, 1, 2, 2], got f32[1, 1, 4, 4]"}};
  return t;
}

OpTest adaptive_avg_pool2d_test() {
  OpTest t = pool_test("adaptive_avg_pool2d", adaptive_samples(), averages);
  const Attrs one = {{"output", Extents{1}}};
  t.bad = {{{{f32, {1, 1, 0, 4}, {}}},
            one,
            "adaptive_avg_pool2d: the images of f32[1, 1, 0, 4] hold no element"},
           {{{f32, {1, 1, 4, 4}, {}}},
            {{"output", Extents{0}}},
            "adaptive_avg_pool2d: attribute 'output' must lie between 1 and 32768, not be 0"}};
  return t;
}

OpTest adaptive_avg_pool2d_grad_test() {
  OpTest t = pool_test("adaptive_avg_pool2d_grad",
                       gradient_samples("adaptive_avg_pool2d", adaptive_samples(), false),
                       average_gradients);
  t.bad = {{{{f32, {1, 2, 1, 1}, {}}},
            {{"input", Type{f32, {1, 1, 4, 4}, {}}}},
            "adaptive_avg_pool2d_grad: the gradient f32[1, 2, 1, 1] does not fit to the input "
            "f32[1, 1, 4, 4]"}};
  return t;
}

OpTest adaptive_max_pool2d_grad_test() {
  OpTest t = pool_test("adaptive_max_pool2d_grad",
                       gradient_samples("adaptive_max_pool2d", adaptive_samples(), true),
                       maximum_gradients);
  t.bad = {{{{f32, {1, 1, 1, 1}, {}}, {i32, {1, 1, 1, 1}, {}}},
            {{"input", Type{f32, {1, 1, 4, 4}, {}}}},
            "adaptive_max_pool2d_grad: expects positions u8[1, 1, 1, 1], got i32[1, 1, 1, 1]"}};
  return t;
}

/// Pools of 1 or 3 spatial dimensions, and their gradients.
OpTest max_pool_test(const std::string& op, const std::vector<Sample>& samples) {
  return pool_test(op, samples, maxima);
}

OpTest max_pool_grad_test(const std::string& op, const std::vector<Sample>& samples) {
  return pool_test(op + "_grad", gradient_samples(op, samples, true), maximum_gradients);
}

OpTest avg_pool_grad_test(const std::string& op, const std::vector<Sample>& samples) {
  return pool_test(op + "_grad", gradient_samples(op, uncounted(samples), false),
                   average_gradients);
}

OpTest avg_pool2d_test() {
  OpTest t = pool_test("avg_pool2d", uncounted_samples(), averages);
  t.bad = {{{{f32, {1, 1, 4, 4}, {}}},
            with(window({2}), "divisor_override", int64_t{-1}),
            "avg_pool2d: attribute 'divisor_override' must not be negative"}};
  return t;
}

OpTest lp_pool_test() {
  OpTest t = pool_test("lp_pool", norm_samples(), norms);
  const Type x = {f32, {1, 1, 4, 4}, {}};
  t.bad = {{{{f32, {4, 4}, {}}},
            window({2}),
            "lp_pool: expects a float tensor [N, C, ...] of 1 to 3 spatial dimensions, got "
            "f32[4, 4]"},
           {{x},
            with(window({2}), "p", 0.5),
            "lp_pool: attribute 'p' must lie between 1 and 1024, not be 0.5"},
           {{x},
            {},
            "lp_pool: needs attribute 'kernel' (window size: one number, or one per spatial "
            "dimension)"}};
  return t;
}

const AddOpTest kMaxPool(max_pool2d_test());
const AddOpTest kMaxPoolTies(without_gradient(pool_test("max_pool2d", tied(dilated_samples()),
                                                        maxima)));
const AddOpTest kMaxPoolGrad(max_pool2d_grad_test());
const AddOpTest kMaxPool1d(max_pool_test("max_pool1d", samples_1d()));
const AddOpTest kMaxPool1dGrad(max_pool_grad_test("max_pool1d", samples_1d()));
const AddOpTest kMaxPool3d(max_pool_test("max_pool3d", samples_3d()));
const AddOpTest kMaxPool3dTies(without_gradient(max_pool_test("max_pool3d", tied(samples_3d()))));
const AddOpTest kMaxPool3dGrad(max_pool_grad_test("max_pool3d", samples_3d()));
const AddOpTest kAvgPool1d(pool_test("avg_pool1d", uncounted(samples_1d()), averages));
const AddOpTest kAvgPool1dGrad(avg_pool_grad_test("avg_pool1d", samples_1d()));
const AddOpTest kAvgPool3d(pool_test("avg_pool3d", uncounted(samples_3d()), averages));
const AddOpTest kAvgPool3dGrad(avg_pool_grad_test("avg_pool3d", samples_3d()));
const AddOpTest kLpPool(lp_pool_test());
const AddOpTest kAvgPool(avg_pool2d_test());
const AddOpTest kAvgPoolGrad(avg_pool2d_grad_test());
const AddOpTest kAdaptiveAvg(adaptive_avg_pool2d_test());
const AddOpTest kAdaptiveAvgGrad(adaptive_avg_pool2d_grad_test());
const AddOpTest kAdaptiveMax(pool_test("adaptive_max_pool2d", adaptive_samples(), maxima));
const AddOpTest kAdaptiveMaxTies(without_gradient(pool_test("adaptive_max_pool2d",
                                                            tied(adaptive_samples()), maxima)));
const AddOpTest kAdaptiveMaxGrad(adaptive_max_pool2d_grad_test());

}  // namespace
}  // namespace fluid::testing::pool_samples
