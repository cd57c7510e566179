// conv2d and its gradients against plain loops that scatter every product.

#include "tests/support/op_harness.h"
#include "tests/support/windows.h"

namespace fluid::testing::conv_samples {
namespace {

/// Shapes of an input and a filter that fit together, and how the window moves.
struct Case {
  Extents x, w;
  Attrs attrs;
  bool batch = false;
};

Attrs moves(Extents stride, Extents padding = {0}, Extents dilation = {1}, int64_t groups = 1) {
  return {{"stride", std::move(stride)},
          {"padding", std::move(padding)},
          {"dilation", std::move(dilation)},
          {"groups", groups}};
}

std::vector<Case> cases() {
  return {{{2, 3, 5, 4}, {4, 3, 3, 2}, {}},
          {{1, 1, 1, 1}, {1, 1, 1, 1}, {}},
          {{1, 2, 7, 5}, {3, 2, 5, 3}, moves({1}, {2, 1})},
          {{2, 2, 7, 5}, {3, 2, 3, 3}, moves({2}, {1})},
          {{1, 1, 8, 9}, {2, 1, 2, 3}, moves({3, 2}, {1, 0})},
          {{1, 1, 5, 5}, {2, 1, 3, 3}, moves({1, 2}, {0, 1, 2, 0})},
          {{1, 2, 9, 7}, {2, 2, 3, 2}, moves({2, 1}, {2, 1}, {2, 3})},
          {{1, 1, 7, 7}, {1, 1, 2, 2}, moves({1}, {0}, {3})},
          {{1, 4, 4, 3}, {6, 2, 3, 2}, moves({1}, {1}, {1}, 2)},
          {{2, 3, 5, 3}, {3, 1, 3, 3}, moves({2}, {1}, {1}, 3)},
          {{1, 37, 2, 1}, {1, 37, 1, 1}, {}},
          {{0, 2, 3, 3}, {2, 2, 2, 2}, {}},
          {{3, 2, 4, 3}, {2, 2, 3, 3}, moves({1}, {1}), true},
          {{1, 1, 3, 3}, {2, 1, 2, 2}, {}, true},
          {{0, 1, 3, 3}, {2, 1, 2, 2}, {}, true}};
}

Extents result_of(const Case& c) {
  const Windows w = windows_of(c.attrs, {c.w[2], c.w[3]});
  return {c.x[0], c.w[0], w.count(0, c.x[2]), w.count(1, c.x[3])};
}

/// Calls visit(position in x, in w, in y) for every product of the convolution.
template <class F>
void for_each_product(const Case& c, F visit) {
  const Extents y = result_of(c);
  const int64_t groups = c.attrs.get_or<int64_t>("groups", 1);
  for (int64_t n = 0; n < c.x[0]; ++n) {
    for (int64_t o = 0; o < c.w[0]; ++o) {
      for (int64_t i = 0; i < c.w[1]; ++i) {
        const int64_t channel = o / (c.w[0] / groups) * c.w[1] + i;
        for_each_tap(windows_of(c.attrs, {c.w[2], c.w[3]}), c.x[2], c.x[3], [&](const Tap& t) {
          if (!t.inside) return;
          visit(offset4(c.x, n, channel, t.y, t.x), offset4(c.w, o, i, t.tap_y, t.tap_x),
                offset4(y, n, o, t.window_y, t.window_x));
        });
      }
    }
  }
}

Type type_of(const Extents& shape, bool batch) {
  Type type{f64, Shape(shape.begin(), shape.end()), {}};
  if (batch) type.shape[0] = kBatch;
  return type;
}

Extents shape_of(const Type& type, int64_t batch) {
  Extents shape;
  for (const Dim& d : type.shape) shape.push_back(d.at(batch));
  return shape;
}

OpTest conv2d_test() {
  OpTest t;
  t.op = "conv2d";
  for (const Case& c : cases()) {
    const std::vector<int> batch = c.batch ? std::vector{0} : std::vector<int>{};
    t.samples.push_back({{random_tensor(c.x), random_tensor(c.w, -2, 2, 1)}, c.attrs, batch});
  }
  t.reference = [](const Sample& s) {
    const Tensor &x = s.inputs[0], &w = s.inputs[1];
    const Case c{x.shape(), w.shape(), s.attrs};
    Tensor y(f64, result_of(c));
    for_each_product(c, [&](int64_t i, int64_t j, int64_t k) { at(y, k) += x.at(i) * w.at(j); });
    return std::vector{y};
  };
  t.slack = 8;
  const Type x = {f32, {1, 2, 5, 5}, {}}, w = {f32, {2, 2, 3, 3}, {}};
  const std::string huge = std::to_string((1 << 15) + 1);
  t.bad = {
      {{{f32, {2, 5, 5}, {}}, w},
       {},
       "conv2d: expects a float tensor [N, C, H, W], got f32[2, 5, 5]"},
      {{{u8, {1, 2, 5, 5}, {}}, w},
       {},
       "conv2d: expects a float tensor [N, C, H, W], got u8[1, 2, 5, 5]"},
      {{{f32, {1, kBatch, 5, 5}, {}}, w},
       {},
       "conv2d: expects a float tensor [N, C, H, W], got f32[1, ?, 5, 5]"},
      {{x, {f64, {2, 2, 3, 3}, {}}},
       {},
       "conv2d: expects a filter [O, C / groups, KH, KW] of the input's dtype, got f64[2, 2, 3, "
       "3]"},
      {{x, w}, {{"groups", int64_t{0}}}, "conv2d: attribute 'groups' must be 1 or more"},
      {{x, {f32, {2, 3, 3, 3}, {}}},
       {},
       "conv2d: the input f32[1, 2, 5, 5] has 2 channels, but the filter f32[2, 3, 3, 3] takes 3"},
      {{x, {f32, {3, 1, 3, 3}, {}}},
       {{"groups", int64_t{2}}},
       "conv2d: the filter f32[3, 1, 3, 3] does not split into 2 groups"},
      {{x, {f32, {2, 2, 0, 3}, {}}},
       {},
       "conv2d: the filter f32[2, 2, 0, 3] must have between 1 and 32768 taps per side"},
      {{x, {f32, {2, 2, 3, (1 << 15) + 1}, {}}},
       {},
       "conv2d: the filter f32[2, 2, 3, " + huge + "] must have between 1 and 32768 taps per side"},
      {{x, w}, moves({0}), "conv2d: attribute 'stride' must lie between 1 and 32768"},
      {{x, w},
       moves({1, 1, 1}),
       "conv2d: attribute 'stride' takes one number, or one for the height and one for the width, "
       "not 3"},
      {{x, w},
       moves({1}, {0}, {1 << 16}),
       "conv2d: attribute 'dilation' must lie between 1 and 32768"},
      {{x, w}, moves({1}, {-1}), "conv2d: attribute 'padding' must lie between 0 and 32768"},
      {{x, w},
       moves({1}, {1, 1, 1}),
       "conv2d: attribute 'padding' takes one number, two (height, width) or four (top, left, "
       "bottom, right), not 3"},
      {{x, w},
       moves({1}, {0}, {3}),
       "conv2d: a window that reaches over 7 x 7 elements does not fit into the padded input "
       "[1, 2, 5, 5]"}};
  return t;
}

OpTest conv2d_grad_input_test() {
  OpTest t;
  t.op = "conv2d_grad_input";
  for (const Case& c : cases()) {
    const std::vector<int> batch = c.batch ? std::vector{0} : std::vector<int>{};
    Attrs attrs = c.attrs;
    attrs.set("input", type_of(c.x, c.batch));
    t.samples.push_back(
        {{random_tensor(result_of(c)), random_tensor(c.w, -2, 2, 1)}, attrs, batch});
  }
  t.reference = [](const Sample& s) {
    const Tensor &dy = s.inputs[0], &w = s.inputs[1];
    const Case c{shape_of(s.attrs.get<Type>("input"), dy.shape()[0]), w.shape(), s.attrs};
    Tensor dx(f64, c.x);
    for_each_product(c, [&](int64_t i, int64_t j, int64_t k) { at(dx, i) += dy.at(k) * w.at(j); });
    return std::vector{dx};
  };
  t.slack = 8;
  t.bad = {{{{f32, {1, 2, 5, 5}, {}}, {f32, {2, 2, 3, 3}, {}}},
            {{"input", Type{f32, {1, 2, 5, 5}, {}}}},
            "conv2d_grad_input: expects a gradient f32[1, 2, 3, 3], got f32[1, 2, 5, 5]"}};
  return t;
}

OpTest conv2d_grad_filter_test() {
  OpTest t;
  t.op = "conv2d_grad_filter";
  for (const Case& c : cases()) {
    const std::vector<int> batch = c.batch ? std::vector{0, 0} : std::vector<int>{};
    Attrs attrs = c.attrs;
    attrs.set("filter", type_of(c.w, false));
    t.samples.push_back(
        {{random_tensor(c.x), random_tensor(result_of(c), -2, 2, 1)}, attrs, batch});
  }
  t.reference = [](const Sample& s) {
    const Tensor &x = s.inputs[0], &dy = s.inputs[1];
    const Case c{x.shape(), shape_of(s.attrs.get<Type>("filter"), 1), s.attrs};
    Tensor dw(f64, c.w);
    for_each_product(c, [&](int64_t i, int64_t j, int64_t k) { at(dw, j) += x.at(i) * dy.at(k); });
    return std::vector{dw};
  };
  t.slack = 8;
  t.bad = {{{{f32, {1, 2, 5, 5}, {}}, {f32, {2, 2, 3, 3}, {}}},
            {{"filter", Type{f32, {2, 2, 3, 3}, {}}}},
            "conv2d_grad_filter: expects a gradient f32[1, 2, 3, 3], got f32[2, 2, 3, 3]"}};
  return t;
}

const AddOpTest kConv2d(conv2d_test());
const AddOpTest kConv2dGradInput(conv2d_grad_input_test());
const AddOpTest kConv2dGradFilter(conv2d_grad_filter_test());

}  // namespace
}  // namespace fluid::testing::conv_samples
