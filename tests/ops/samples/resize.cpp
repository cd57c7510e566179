// resize2d and its gradient against the matrices that they are along each axis.

#include <algorithm>
#include <cmath>

#include "tests/support/op_harness.h"

namespace fluid::testing::resize_samples {
namespace {

using Extents = std::vector<int64_t>;

/// Source coordinate of output i.
double source_of(int64_t i, int64_t in, int64_t out, bool align_corners) {
  const auto position = static_cast<double>(i), n = static_cast<double>(in);
  if (align_corners) {
    return out == 1 ? 0 : position * (n - 1) / static_cast<double>(out - 1);
  }
  return (position + 0.5) * n / static_cast<double>(out) - 0.5;
}

/// Weight of an element at this distance from the source coordinate (Keys, 1981).
double cubic(double distance) {
  const double a = -0.75, d = std::abs(distance);
  if (d < 1) return (a + 2) * d * d * d - (a + 3) * d * d + 1;
  return d < 2 ? a * (d * d * d - 5 * d * d + 8 * d - 4) : 0;
}

/// Row i: how much of each of `in` elements is in element i of `out`.
std::vector<std::vector<double>> matrix(int64_t in, int64_t out, const Attrs& attrs) {
  const std::string mode = attrs.get_or("mode", std::string("nearest"));
  const bool align = attrs.get_or("align_corners", false);
  std::vector<std::vector<double>> rows;
  for (int64_t i = 0; i < out; ++i) {
    std::vector<double>& row = rows.emplace_back(static_cast<size_t>(in));
    const auto add = [&](int64_t element, double weight) {
      row[static_cast<size_t>(std::clamp(element, int64_t{0}, in - 1))] += weight;
    };
    if (mode == "nearest") {
      add(i * in / out, 1);
      continue;
    }
    double place = source_of(i, in, out, align);
    if (mode == "bilinear") place = std::clamp(place, 0.0, static_cast<double>(in - 1));
    const auto lower = static_cast<int64_t>(std::floor(place));
    for (int64_t element = lower - 1; element < lower + 3; ++element) {
      const double distance = place - static_cast<double>(element);
      add(element, mode == "bilinear" ? std::max(1 - std::abs(distance), 0.0) : cubic(distance));
    }
  }
  return rows;
}

/// Calls visit(element of the result, element of the input, weight) for images of these extents.
template <class F>
void for_each_weight(const Extents& in, const Extents& out, const Attrs& attrs, F visit) {
  const auto rows = matrix(in[2], out[2], attrs), columns = matrix(in[3], out[3], attrs);
  for (int64_t image = 0; image < in[0] * in[1]; ++image) {
    for (int64_t i = 0; i < out[2] * out[3]; ++i) {
      const std::vector<double>& row = rows[static_cast<size_t>(i / out[3])];
      const std::vector<double>& column = columns[static_cast<size_t>(i % out[3])];
      for (int64_t e = 0; e < in[2] * in[3]; ++e) {
        visit(image * out[2] * out[3] + i, image * in[2] * in[3] + e,
              row[static_cast<size_t>(e / in[3])] * column[static_cast<size_t>(e % in[3])]);
      }
    }
  }
}

std::vector<Tensor> resized(const Sample& s) {
  const Extents& in = s.inputs[0].shape();
  const auto output = s.attrs.get<Extents>("output");
  const Extents out = {in[0], in[1], output.front(), output.back()};
  Tensor y(f64, out);
  for_each_weight(in, out, s.attrs, [&](int64_t o, int64_t i, double weight) {
    at(y, o) += weight * s.inputs[0].at(i);
  });
  return {y};
}

std::vector<Tensor> gradients(const Sample& s) {
  const Extents& out = s.inputs[0].shape();
  Extents in;
  for (const Dim& d : s.attrs.get<Type>("input").shape) in.push_back(d.at(out[0]));
  Tensor dx(f64, in);
  for_each_weight(in, out, s.attrs, [&](int64_t o, int64_t i, double weight) {
    at(dx, i) += weight * s.inputs[0].at(o);
  });
  return {dx};
}

struct Case {
  Extents input, output;
  bool batch = false;  ///< dimension 0 is the batch
};

const std::vector<Case> kCases = {
    {{2, 3, 4, 4}, {8}},          {{1, 2, 5, 7}, {7, 3}},       {{1, 1, 3, 2}, {5, 7}},
    {{1, 1, 7, 6}, {1}},          {{1, 2, 1, 1}, {3, 2}},       {{1, 1, 1, 1}, {1}},
    {{0, 2, 3, 3}, {2}},          {{3, 0, 2, 2}, {5}},          {{1, 1, 6, 8}, {3, 8}},
    {{5, 1, 3, 4}, {6, 2}, true}, {{1, 1, 3, 4}, {6, 2}, true}, {{0, 1, 3, 4}, {6, 2}, true},
};
/// Cases of the modes that read many elements.
const std::vector<Case> kSmallCases = {
    {{1, 1, 5, 3}, {3, 5}}, {{1, 2, 3, 2}, {1, 2}},       {{1, 1, 1, 1}, {3, 1}},
    {{0, 2, 3, 3}, {2}},    {{3, 1, 2, 3}, {3, 2}, true},
};

struct ModeCases {
  Attrs attrs;
  const std::vector<Case>& cases;
};
const ModeCases kModes[] = {
    {{{"mode", std::string("nearest")}}, kCases},
    {{{"mode", std::string("bilinear")}}, kCases},
    {{{"mode", std::string("bilinear")}, {"align_corners", true}}, kSmallCases},
    {{{"mode", std::string("bicubic")}}, kSmallCases},
    {{{"mode", std::string("bicubic")}, {"align_corners", true}}, kSmallCases}};

OpTest resize2d_test() {
  OpTest t;
  t.op = "resize2d";
  for (const ModeCases& mode : kModes) {
    for (const Case& c : mode.cases) {
      Sample s{{random_tensor(c.input)}, mode.attrs, {}};
      s.attrs.set("output", c.output);
      if (c.batch) s.batch_dims = {0};
      t.samples.push_back(s);
    }
  }
  t.reference = resized;
  t.slack = 8;
  const Type x = {f32, {1, 1, 4, 4}, {}};
  t.bad = {{{{f32, {4, 4}, {}}},
            {{"output", Extents{2}}},
            "resize2d: expects a float tensor [N, C, H, W], got f32[4, 4]"},
           {{x},
            {},
            "resize2d: needs attribute 'output' (output size: one number, or height and width)"},
           {{x},
            {{"output", Extents{0}}},
            "resize2d: attribute 'output' must lie between 1 and 32768, not be 0"},
           {{{f32, {1, 1, 0, 4}, {}}},
            {{"output", Extents{2}}},
            "resize2d: the images of f32[1, 1, 0, 4] hold no element"},
           {{x},
            {{"output", Extents{2}}, {"mode", std::string("linear")}},
            "resize2d: mode must be \"nearest\", \"bilinear\" or \"bicubic\", not \"linear\""},
           {{x},
            {{"output", Extents{2}}, {"align_corners", true}},
            "resize2d: align_corners needs mode \"bilinear\" or \"bicubic\""}};
  return t;
}

OpTest resize2d_grad_test() {
  OpTest t;
  t.op = "resize2d_grad";
  for (const ModeCases& mode : kModes) {
    for (const Case& c : mode.cases) {
      Type input{f64, Shape(c.input.begin(), c.input.end()), {}};
      Sample s{
          {random_tensor({c.input[0], c.input[1], c.output.front(), c.output.back()})}, {}, {}};
      if (c.batch) {
        s.batch_dims = {0};
        input.shape[0] = kBatch;
      }
      s.attrs = mode.attrs;
      s.attrs.set("input", input);
      t.samples.push_back(s);
    }
  }
  t.reference = gradients;
  t.slack = 8;
  t.bad = {{{{f32, {1, 2, 1, 1}, {}}},
            {{"input", Type{f32, {1, 1, 4, 4}, {}}}},
            "resize2d_grad: the gradient f32[1, 2, 1, 1] does not fit to the input "
            "f32[1, 1, 4, 4]"}};
  return t;
}

const AddOpTest kResize(resize2d_test());
const AddOpTest kResizeGrad(resize2d_grad_test());

}  // namespace
}  // namespace fluid::testing::resize_samples
