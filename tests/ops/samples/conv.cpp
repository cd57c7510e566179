// Convolutions of 1 to 3 spatial dimensions and their gradients against plain loops that scatter
// every product.

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

std::vector<Case> cases_1d() {
  return {{{2, 3, 7}, {4, 3, 3}, {}},
          {{1, 1, 1}, {1, 1, 1}, {}},
          {{1, 2, 9}, {3, 2, 2}, moves({2}, {2, 1}, {3})},
          {{1, 4, 5}, {6, 2, 3}, moves({1}, {1}, {1}, 2)},
          {{0, 2, 3}, {2, 2, 2}, {}},
          {{3, 2, 5}, {2, 2, 3}, moves({2}, {1}), true}};
}

std::vector<Case> cases_2d() {
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
          {{0, 2, 3, 18}, {16, 2, 2, 3}, {}},
          {{1, 2, 3, 18}, {0, 2, 2, 3}, {}},
          {{3, 2, 4, 3}, {2, 2, 3, 3}, moves({1}, {1}), true},
          {{1, 1, 3, 3}, {2, 1, 2, 2}, {}, true},
          {{0, 1, 3, 3}, {2, 1, 2, 2}, {}, true}};
}

std::vector<Case> cases_3d() {
  return {{{1, 2, 3, 2, 4}, {2, 2, 2, 1, 3}, {}},
          {{1, 1, 1, 1, 1}, {1, 1, 1, 1, 1}, {}},
          {{1, 1, 3, 5, 2}, {2, 1, 2, 3, 2}, moves({1, 2, 3}, {1, 0, 0, 0, 2, 1})},
          {{1, 1, 3, 4, 5}, {1, 1, 2, 2, 2}, moves({2, 1, 1}, {1, 1, 0}, {1, 3, 2})},
          {{1, 4, 2, 1, 2}, {2, 2, 2, 1, 1}, moves({1}, {1, 0, 0}, {1}, 2)},
          {{0, 1, 2, 2, 2}, {1, 1, 2, 2, 2}, {}},
          {{2, 1, 2, 3, 2}, {2, 1, 2, 2, 1}, moves({1}, {0, 1, 0}), true}};
}

std::vector<Case> cases(int dims) {
  if (dims == 1) return cases_1d();
  return dims == 2 ? cases_2d() : cases_3d();
}

std::string conv_of(int dims) { return "conv" + std::to_string(dims) + "d"; }

Windows windows_of_case(const Case& c) {
  return windows_of(c.attrs, c.w.size() - 2, image_of(c.w));
}

Extents result_of(const Case& c) {
  Extents y = windows_of_case(c).counts(image_of(c.x));
  y.insert(y.begin(), {c.x[0], c.w[0]});
  return y;
}

/// Calls visit(position in x, in w, in y) for every product of the convolution.
template <class F>
void for_each_product(const Case& c, F visit) {
  const Extents image = image_of(c.x);
  const int64_t groups = c.attrs.get_or<int64_t>("groups", 1);
  const int64_t in = numel_of(image), out = numel_of(image_of(result_of(c)));
  const int64_t taps = numel_of(image_of(c.w));
  for (int64_t n = 0; n < c.x[0]; ++n) {
    for (int64_t o = 0; o < c.w[0]; ++o) {
      for (int64_t i = 0; i < c.w[1]; ++i) {
        const int64_t channel = o / (c.w[0] / groups) * c.w[1] + i;
        for_each_tap(windows_of_case(c), image, [&](const Tap& t) {
          if (!t.inside) return;
          visit((n * c.x[1] + channel) * in + t.element, (o * c.w[1] + i) * taps + t.tap,
                (n * c.w[0] + o) * out + t.window);
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

OpTest conv_test(int dims) {
  OpTest t;
  t.op = conv_of(dims);
  for (const Case& c : cases(dims)) {
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
  return t;
}

OpTest conv1d_test() {
  OpTest t = conv_test(1);
  const Type x = {f32, {1, 2, 5}, {}}, w = {f32, {2, 2, 3}, {}};
  t.bad = {
      {{{f32, {2, 5}, {}}, w}, {}, "conv1d: expects a float tensor [N, C, L], got f32[2, 5]"},
      {{x, {f32, {2, 2, 3, 1}, {}}},
       {},
       "conv1d: expects a filter [O, C / groups, KL] of the input's dtype, got f32[2, 2, 3, 1]"},
      {{x, w}, moves({1, 1}), "conv1d: attribute 'stride' takes one number, not 2"},
      {{x, w},
       moves({1}, {0, 1, 2}),
       "conv1d: attribute 'padding' takes one number or two (before, after), not 3"},
      {{x, w},
       moves({1}, {0}, {3}),
       "conv1d: a window that reaches over 7 elements does not fit into the padded input [1, 2, "
       "5]"}};
  return t;
}

OpTest conv2d_test() {
  OpTest t = conv_test(2);
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
      {{x, w}, {{"groups", int64_t{0}}}, "conv2d: attribute 'groups' must be 1 or more, not 0"},
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
      {{x, w}, moves({0}), "conv2d: attribute 'stride' must lie between 1 and 32768, not be 0"},
      {{x, w},
       moves({1, 1, 1}),
       "conv2d: attribute 'stride' takes one number, or one for the height and one for the width, "
       "not 3"},
      {{x, w},
       moves({1}, {0}, {1 << 16}),
       "conv2d: attribute 'dilation' must lie between 1 and 32768, not be 65536"},
      {{x, w},
       moves({1}, {-1}),
       "conv2d: attribute 'padding' must lie between 0 and 32768, not be -1"},
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

OpTest conv3d_test() {
  OpTest t = conv_test(3);
  const Type x = {f32, {1, 2, 5, 5, 5}, {}}, w = {f32, {2, 2, 3, 3, 3}, {}};
  t.bad = {
      {{{f32, {1, 2, 5, 5}, {}}, w},
       {},
       "conv3d: expects a float tensor [N, C, D, H, W], got f32[1, 2, 5, 5]"},
      {{x, {f32, {2, 2, 3, 3}, {}}},
       {},
       "conv3d: expects a filter [O, C / groups, KD, KH, KW] of the input's dtype, got f32[2, 2, "
       "3, 3]"},
      {{x, w},
       moves({1, 1}),
       "conv3d: attribute 'stride' takes one number, or one each for the depth, the height and the "
       "width, not 2"},
      {{x, w},
       moves({1}, {0, 1}),
       "conv3d: attribute 'padding' takes one number, three (depth, height, width) or six (all "
       "before, then all after), not 2"}};
  return t;
}

OpTest conv_grad_input_test(int dims) {
  OpTest t;
  t.op = conv_of(dims) + "_grad_input";
  for (const Case& c : cases(dims)) {
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
  if (dims != 2) return t;
  t.bad = {{{{f32, {1, 2, 5, 5}, {}}, {f32, {2, 2, 3, 3}, {}}},
            {{"input", Type{f32, {1, 2, 5, 5}, {}}}},
            "conv2d_grad_input: expects a gradient f32[1, 2, 3, 3], got f32[1, 2, 5, 5]"}};
  return t;
}

OpTest conv_grad_filter_test(int dims) {
  OpTest t;
  t.op = conv_of(dims) + "_grad_filter";
  for (const Case& c : cases(dims)) {
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
  if (dims != 2) return t;
  t.bad = {{{{f32, {1, 2, 5, 5}, {}}, {f32, {2, 2, 3, 3}, {}}},
            {{"filter", Type{f32, {2, 2, 3, 3}, {}}}},
            "conv2d_grad_filter: expects a gradient f32[1, 2, 3, 3], got f32[2, 2, 3, 3]"}};
  return t;
}

const AddOpTest kConv1d(conv1d_test());
const AddOpTest kConv2d(conv2d_test());
const AddOpTest kConv2dGradInput(conv_grad_input_test(2));
const AddOpTest kConv2dGradFilter(conv_grad_filter_test(2));
const AddOpTest kConv3d(conv3d_test());
const AddOpTest kConv3dGradInput(conv_grad_input_test(3));
const AddOpTest kConv3dGradFilter(conv_grad_filter_test(3));

}  // namespace
}  // namespace fluid::testing::conv_samples
