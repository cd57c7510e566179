// Pools and their gradients against plain loops.

#include <cmath>

#include "tests/support/op_harness.h"
#include "tests/support/windows.h"

namespace fluid::testing::pool_samples {
namespace {

/// A pool as lists: the elements of each window of one image, by their place in the window.
struct Element {
  int64_t window, element;  ///< row-major in the result's and the input's image
  int64_t position;         ///< in the window
  bool inside;
};
struct Layout {
  int64_t height, width;  ///< of the result
  std::vector<Element> elements;
};

Layout moving(const Attrs& attrs, int64_t height, int64_t width) {
  const Windows w = windows_of(attrs);
  Layout layout{w.count(0, height), w.count(1, width), {}};
  for_each_tap(w, height, width, [&](const Tap& t) {
    layout.elements.push_back({t.window_y * layout.width + t.window_x, t.y * width + t.x,
                               t.tap_y * w.kernel[1] + t.tap_x, t.inside});
  });
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
  Layout layout{out_height, out_width, {}};
  for (int64_t i = 0; i < out_height; ++i) {
    for (int64_t j = 0; j < out_width; ++j) {
      const int64_t top = begin(i, height, out_height), left = begin(j, width, out_width);
      for (int64_t y = top; y < end(i, height, out_height); ++y) {
        for (int64_t x = left; x < end(j, width, out_width); ++x) {
          layout.elements.push_back(
              {i * out_width + j, y * width + x, (y - top) * widest + x - left, true});
        }
      }
    }
  }
  return layout;
}

/// The pool of an op and the shape of its input; of a gradient: of the pool that it belongs to.
Layout layout_of(const std::string& op, const Sample& s, const Extents& input) {
  if (!op.starts_with("adaptive")) return moving(s.attrs, input[2], input[3]);
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

/// Calls visit(position in the result, in the input, element) for every element of every window.
template <class F>
void for_each_element(const Layout& layout, const Extents& input, F visit) {
  const int64_t size = layout.height * layout.width, image = input[2] * input[3];
  for (int64_t i = 0; i < input[0] * input[1]; ++i) {
    for (const Element& e : layout.elements) visit(i * size + e.window, i * image + e.element, e);
  }
}

/// How many elements each window of an image is divided by.
std::vector<double> divisors(const Sample& s, const Layout& layout) {
  const bool padding = s.attrs.get_or("count_include_pad", true);
  std::vector<double> n(static_cast<size_t>(layout.height * layout.width));
  for (const Element& e : layout.elements) {
    n[static_cast<size_t>(e.window)] += padding || e.inside ? 1 : 0;
  }
  return n;
}

double divisor(const std::vector<double>& divisors, const Element& e) {
  return divisors[static_cast<size_t>(e.window)];
}

std::vector<Tensor> averages(const std::string& op, const Sample& s) {
  const Extents input = input_of(s);
  const Layout layout = layout_of(op, s, input);
  const std::vector<double> n = divisors(s, layout);
  Tensor y(f64, {input[0], input[1], layout.height, layout.width});
  for_each_element(layout, input, [&](int64_t out, int64_t in, const Element& e) {
    if (e.inside) at(y, out) += s.inputs[0].at(in) / divisor(n, e);
  });
  return {y};
}

std::vector<Tensor> average_gradients(const std::string& op, const Sample& s) {
  const Extents input = input_of(s);
  const Layout layout = layout_of(op, s, input);
  const std::vector<double> n = divisors(s, layout);
  Tensor dx(f64, input);
  for_each_element(layout, input, [&](int64_t out, int64_t in, const Element& e) {
    if (e.inside) at(dx, in) += s.inputs[0].at(out) / divisor(n, e);
  });
  return {dx};
}

std::vector<Tensor> maxima(const std::string& op, const Sample& s) {
  const Extents input = input_of(s);
  const Layout layout = layout_of(op, s, input);
  Tensor y(f64, {input[0], input[1], layout.height, layout.width});
  Tensor position(f64, y.shape());
  for (double& v : y.as<double>()) v = -INFINITY;
  for_each_element(layout, input, [&](int64_t out, int64_t in, const Element& e) {
    const double x = e.inside ? s.inputs[0].at(in) : -INFINITY;
    if (x > at(y, out) || (std::isnan(x) && !std::isnan(at(y, out)))) {
      at(y, out) = x;
      at(position, out) = static_cast<double>(e.position);
    }
  });
  return {y, position.cast(i64)};
}

std::vector<Tensor> maximum_gradients(const std::string& op, const Sample& s) {
  const Extents input = input_of(s);
  Tensor dx(f64, input);
  for_each_element(layout_of(op, s, input), input, [&](int64_t out, int64_t in, const Element& e) {
    const bool largest = s.inputs[1].at(out) == static_cast<double>(e.position);
    if (e.inside && largest) at(dx, in) += s.inputs[0].at(out);
  });
  return {dx};
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

std::vector<Sample> dilated_samples() {
  std::vector<Sample> samples = moving_samples();
  const auto add = [&](Extents shape, Attrs attrs, Extents dilation) {
    samples.push_back({{random_tensor(std::move(shape))},
                       with(std::move(attrs), "dilation", std::move(dilation)),
                       {}});
  };
  add({1, 2, 9, 9}, window({3, 2}, {2, 1}, {1}), {2, 3});
  add({1, 1, 7, 5}, window({2}, {3}), {3, 1});
  add({1, 1, 17, 18}, window({17}, {1}), {1});  // positions of more than a byte
  return samples;
}

std::vector<Sample> uncounted_samples() {
  std::vector<Sample> samples = moving_samples();
  for (size_t i = 0, n = samples.size(); i < n; ++i) {
    samples.push_back(samples[i]);
    samples.back().attrs.set("count_include_pad", false);
  }
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

/// Of the pool's samples those of its gradient: a gradient and, for a maximum, the positions.
std::vector<Sample> gradient_samples(const std::string& pool, const std::vector<Sample>& samples,
                                     bool positions) {
  std::vector<Sample> gradients;
  for (const Sample& s : samples) {
    const Extents input = input_of(s);
    const Layout layout = layout_of(pool, s, input);
    Sample g;
    g.inputs = {random_tensor({input[0], input[1], layout.height, layout.width})};
    Type type{f64, Shape(input.begin(), input.end()), {}};
    if (!s.batch_dims.empty()) {
      g.batch_dims = {0, 0};
      type.shape[0] = kBatch;
    }
    g.attrs = with(s.attrs, "input", type);
    g.attrs.erase("output");
    if (positions) {
      int64_t largest = 0;
      for (const Element& e : layout.elements) largest = std::max(largest, e.position);
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
       "max_pool2d: needs attribute 'kernel' (window size: one number, or height and width)"},
      {{x}, window({0}), "max_pool2d: attribute 'kernel' must lie between 1 and 32768"},
      {{x},
       window({}),
       "max_pool2d: attribute 'kernel' takes one number, or one for the height and one for the "
       "width, not 0"},
      {{x}, window({2}, {0}), "max_pool2d: attribute 'stride' must lie between 1 and 32768"},
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
            "max_pool2d_grad: the gradient f32[1, 1, 4, 4] does not fit to the input "
            "f32[1, 1, 4, 4]"},
           {{dy, {i32, {1, 1, 2, 2}, {}}},
            attrs,
            "max_pool2d_grad: the positions i32[1, 1, 2, 2] do not fit to the input "
            "f32[1, 1, 4, 4]"}};
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
            "adaptive_avg_pool2d: attribute 'output' must lie between 1 and 32768"}};
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

const AddOpTest kMaxPool(max_pool2d_test());
const AddOpTest kMaxPoolTies(without_gradient(pool_test("max_pool2d", tied(dilated_samples()),
                                                        maxima)));
const AddOpTest kMaxPoolGrad(max_pool2d_grad_test());
const AddOpTest kAvgPool(pool_test("avg_pool2d", uncounted_samples(), averages));
const AddOpTest kAvgPoolGrad(avg_pool2d_grad_test());
const AddOpTest kAdaptiveAvg(adaptive_avg_pool2d_test());
const AddOpTest kAdaptiveAvgGrad(adaptive_avg_pool2d_grad_test());
const AddOpTest kAdaptiveMax(pool_test("adaptive_max_pool2d", adaptive_samples(), maxima));
const AddOpTest kAdaptiveMaxTies(without_gradient(pool_test("adaptive_max_pool2d",
                                                            tied(adaptive_samples()), maxima)));
const AddOpTest kAdaptiveMaxGrad(adaptive_max_pool2d_grad_test());

}  // namespace
}  // namespace fluid::testing::pool_samples
