// resize2d and its gradient against the matrices that they are along each axis.

#include <algorithm>

#include "tests/support/op_harness.h"

namespace fluid::testing::resize_samples {
namespace {

using Extents = std::vector<int64_t>;

/// Row i: how much of each of `in` elements is in element i of `out`.
std::vector<std::vector<double>> matrix(int64_t in, int64_t out, bool linear) {
  std::vector<std::vector<double>> rows;
  for (int64_t i = 0; i < out; ++i) {
    std::vector<double>& row = rows.emplace_back(static_cast<size_t>(in));
    if (!linear) {
      row[static_cast<size_t>(i * in / out)] = 1;
      continue;
    }
    const double scale = static_cast<double>(in) / static_cast<double>(out);
    const double place =
        std::clamp((static_cast<double>(i) + 0.5) * scale - 0.5, 0.0, static_cast<double>(in - 1));
    const auto lower = static_cast<size_t>(place);
    const double fraction = place - static_cast<double>(lower);
    row[lower] = 1 - fraction;
    if (fraction > 0) row[lower + 1] = fraction;
  }
  return rows;
}

bool is_linear(const Sample& s) {
  return s.attrs.get_or("mode", std::string("nearest")) == "bilinear";
}

/// Calls visit(element of the result, element of the input, weight) for images of these extents.
template <class F>
void for_each_weight(const Extents& in, const Extents& out, bool linear, F visit) {
  const auto rows = matrix(in[2], out[2], linear), columns = matrix(in[3], out[3], linear);
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
  for_each_weight(in, out, is_linear(s), [&](int64_t o, int64_t i, double weight) {
    at(y, o) += weight * s.inputs[0].at(i);
  });
  return {y};
}

std::vector<Tensor> gradients(const Sample& s) {
  const Extents& out = s.inputs[0].shape();
  Extents in;
  for (const Dim& d : s.attrs.get<Type>("input").shape) in.push_back(d.at(out[0]));
  Tensor dx(f64, in);
  for_each_weight(in, out, is_linear(s), [&](int64_t o, int64_t i, double weight) {
    at(dx, i) += weight * s.inputs[0].at(o);
  });
  return {dx};
}

struct Case {
  Extents input, output;
  bool batch = false;  ///< dimension 0 is the batch
};

const std::vector<Case> kCases = {
    {{2, 3, 4, 4}, {8}},          {{1, 2, 5, 7}, {7, 3}},       {{1, 2, 3, 2}, {11, 13}},
    {{1, 1, 7, 6}, {1}},          {{1, 2, 1, 1}, {3, 2}},       {{1, 1, 1, 1}, {1}},
    {{0, 2, 3, 3}, {2}},          {{3, 0, 2, 2}, {5}},          {{1, 1, 6, 8}, {3, 8}},
    {{5, 1, 3, 4}, {6, 2}, true}, {{1, 1, 3, 4}, {6, 2}, true}, {{0, 1, 3, 4}, {6, 2}, true},
};
const std::string kModes[] = {"nearest", "bilinear"};

OpTest resize2d_test() {
  OpTest t;
  t.op = "resize2d";
  for (const Case& c : kCases) {
    for (const std::string& mode : kModes) {
      Sample s{{random_tensor(c.input)}, {{"output", c.output}, {"mode", mode}}, {}};
      if (c.batch) s.batch_dims = {0};
      t.samples.push_back(s);
    }
  }
  t.reference = resized;
  t.slack = 8;
  const Type x = {f32, {1, 1, 4, 4}, {}};
  t.bad = {
      {{{f32, {4, 4}, {}}},
       {{"output", Extents{2}}},
       "resize2d: expects a float tensor [N, C, H, W], got f32[4, 4]"},
      {{x},
       {},
       "resize2d: needs attribute 'output' (output size: one number, or height and width)"},
      {{x}, {{"output", Extents{0}}}, "resize2d: attribute 'output' must lie between 1 and 32768"},
      {{{f32, {1, 1, 0, 4}, {}}},
       {{"output", Extents{2}}},
       "resize2d: the images of f32[1, 1, 0, 4] hold no element"},
      {{x},
       {{"output", Extents{2}}, {"mode", std::string("linear")}},
       "resize2d: mode must be \"nearest\" or \"bilinear\", not \"linear\""}};
  return t;
}

OpTest resize2d_grad_test() {
  OpTest t;
  t.op = "resize2d_grad";
  for (const Case& c : kCases) {
    for (const std::string& mode : kModes) {
      Type input{f64, Shape(c.input.begin(), c.input.end()), {}};
      Sample s{
          {random_tensor({c.input[0], c.input[1], c.output.front(), c.output.back()})}, {}, {}};
      if (c.batch) {
        s.batch_dims = {0};
        input.shape[0] = kBatch;
      }
      s.attrs = {{"input", input}, {"mode", mode}};
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
