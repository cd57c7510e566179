// Conversions between floats and 8-bit integers. All scales are powers of two, so that no rounding
// of the quotient decides between two integers.

#include <algorithm>
#include <cmath>

#include "tests/support/op_harness.h"

namespace fluid::testing::quantization_samples {
namespace {

Tensor numbers(const std::vector<double>& values, DType dtype = f64) {
  return Tensor::of<double>({static_cast<int64_t>(values.size())}, values).cast(dtype);
}

Tensor scalar(double value, DType dtype = f64) {
  return Tensor::of<double>({}, std::span(&value, 1)).cast(dtype);
}

Tensor integers(const Extents& shape, DType dtype) {
  return random_tensor(shape, dtype == u8 ? 0 : -128, dtype == u8 ? 255 : 127).cast(dtype);
}

/// Element of `values`, a scale or a zero point, that belongs to element `i` of `x`.
double parameter_at(const Sample& s, const Tensor& values, int64_t i) {
  if (values.numel() == 1) return values.at(0);
  const Extents& shape = s.inputs[0].shape();
  const auto rank = static_cast<int64_t>(shape.size());
  auto axis = s.attrs.get_or<int64_t>("axis", 1);
  if (axis < 0) axis += rank;
  int64_t inner = 1;
  for (int64_t d = axis + 1; d < rank; ++d) inner *= shape[static_cast<size_t>(d)];
  return values.at(i / inner % shape[static_cast<size_t>(axis)]);
}

double zero_point_at(const Sample& s, int64_t i) {
  return s.inputs.size() > 2 ? parameter_at(s, s.inputs[2], i) : 0;
}

/// A reference that computes each element from x, scale and zero point.
std::function<std::vector<Tensor>(const Sample&)> elementwise(double (*f)(const Sample&, double x,
                                                                          double scale,
                                                                          double zero_point)) {
  return [f](const Sample& s) {
    Tensor y(f64, s.inputs[0].shape());
    for (int64_t i = 0; i < y.numel(); ++i) {
      at(y, i) = f(s, s.inputs[0].at(i), parameter_at(s, s.inputs[1], i), zero_point_at(s, i));
    }
    const bool quantizes = s.attrs.has("to");
    return std::vector{quantizes ? y.cast(s.attrs.get<Type>("to").dtype) : y};
  };
}

Attrs to(DType dtype, int64_t axis = 1) { return {{"to", Type{dtype, {}, {}}}, {"axis", axis}}; }

OpTest quantize_test() {
  OpTest t{.op = "quantize"};
  const Tensor halves =
      numbers({-40, -32.125, -0.625, -0.375, -0.125, 0, 0.125, 0.375, 31.875, 64});
  t.samples = {
      {{random_tensor({37}, -40, 40), scalar(0.25)}, to(i8), {}},
      {{halves, scalar(0.25)}, to(i8), {}},
      {{halves, scalar(0.25), scalar(7, u8)}, to(u8), {}},
      {{random_tensor({5, 3, 7}, -40, 40), numbers({0.25, 0.5, 2}), numbers({0, 128, 255}, u8)},
       to(u8),
       {0}},
      {{random_tensor({3, 5}, -40, 40), numbers({0.25, 0.5, 2}), numbers({-128, 1, 127}, i8)},
       to(i8, -2),
       {}},
      {{random_tensor({2, 3}, 0, 40), numbers({0.125}), numbers({3}, u8)}, to(u8), {0}},
      {{random_tensor({1}), scalar(1)}, to(u8), {}},
      {{random_tensor({0, 3}), numbers({1, 2, 4})}, to(i8), {}},
      {{random_tensor({}), scalar(0.5)}, to(i8), {}}};
  t.reference = elementwise([](const Sample& s, double x, double scale, double zero_point) {
    const bool is_unsigned = s.attrs.get<Type>("to").dtype == u8;
    return std::clamp(std::nearbyint(x / scale) + zero_point, is_unsigned ? 0.0 : -128.0,
                      is_unsigned ? 255.0 : 127.0);
  });
  t.gradient = false;
  const Type x{f32, {2, 3}, {}}, one{f32, {}, {}};
  t.bad = {
      {{{i64, {3}, {}}, one}, to(i8), "quantize: expects a float tensor, got i64[3]"},
      {{x, one}, to(i32), "quantize: attribute 'to' must be i8 or u8, not i32"},
      {{x, {f64, {}, {}}}, to(i8), "quantize: the scale f64[] must have the dtype of f32[2, 3]"},
      {{x, {f32, {2}, {}}},
       to(i8),
       "quantize: the scale f32[2] has neither one element nor one per index of axis 1 of f32[2, "
       "3]"},
      {{x, {f32, {3}, {}}}, to(i8, 2), "quantize: there is no axis 2 in f32[2, 3]"},
      {{x, one, {i8, {}, {}}}, to(u8), "quantize: the zero point i8[] must be of dtype u8"},
      {{x, one, {u8, {2}, {}}},
       to(u8),
       "quantize: the zero point u8[2] has neither one element nor one per index of axis 1 of "
       "f32[2, 3]"}};
  return t;
}

OpTest dequantize_test() {
  OpTest t{.op = "dequantize"};
  const auto axis = [](int64_t n) { return Attrs{{"axis", n}}; };
  t.samples = {
      {{integers({37}, i8), scalar(0.25)}, axis(1), {}},
      {{integers({5, 3, 7}, u8), numbers({0.25, 0.5, 2}), numbers({0, 128, 255}, u8)},
       axis(1),
       {0}},
      {{integers({3, 5}, i8), numbers({0.25, 0.5, 2}), numbers({-128, 1, 127}, i8)}, axis(0), {}},
      {{integers({2, 3}, i32), numbers({0.125}), numbers({3}, i32)}, axis(-1), {}},
      {{integers({1}, u8), scalar(1)}, axis(0), {}},
      {{integers({0, 3}, i8), numbers({1, 2, 4})}, axis(1), {}},
      {{integers({}, i8), scalar(0.5)}, axis(1), {}}};
  t.reference = elementwise([](const Sample&, double x, double scale, double zero_point) {
    return (x - zero_point) * scale;
  });
  t.gradient = false;
  const Type x{i8, {2, 3}, {}}, one{f32, {}, {}};
  t.bad = {
      {{{f32, {3}, {}}, one}, axis(1), "dequantize: expects a tensor of i8, u8 or i32, got f32[3]"},
      {{x, {i32, {}, {}}}, axis(1), "dequantize: the scale must be a float tensor, not i32[]"},
      {{x, one, {u8, {}, {}}}, axis(1), "dequantize: the zero point u8[] must be of dtype i8"}};
  return t;
}

OpTest round_saturate_test() {
  OpTest t{.op = "round_saturate"};
  const Attrs to_i8 = {{"to", Type{i8, {}, {}}}}, to_u8 = {{"to", Type{u8, {}, {}}}};
  t.samples = {
      {{numbers({-500, -128.5, -2.5, -1.5, -0.5, 0, 0.5, 1.5, 126.5, 127.5, 300})}, to_i8, {}},
      {{numbers({-500, -0.5, 0.5, 1.5, 2.5, 254.5, 255.5, 300})}, to_u8, {}},
      {{random_tensor({5, 7}, -200, 200)}, to_i8, {0}},
      {{random_tensor({0, 3})}, to_u8, {}},
      {{random_tensor({})}, to_i8, {}}};
  t.reference = [](const Sample& s) {
    const bool is_unsigned = s.attrs.get<Type>("to").dtype == u8;
    return std::vector{map_elements(
        s.inputs,
        [&](const std::vector<double>& x) {
          return std::clamp(std::nearbyint(x[0]), is_unsigned ? 0.0 : -128.0,
                            is_unsigned ? 255.0 : 127.0);
        },
        is_unsigned ? u8 : i8)};
  };
  t.gradient = false;
  t.bad = {
      {{{i64, {3}, {}}}, to_i8, "round_saturate: the operand must be a float tensor, not i64[3]"},
      {{{f32, {3}, {}}},
       {{"to", Type{f32, {}, {}}}},
       "round_saturate: attribute 'to' must be i8 or u8, not f32"}};
  return t;
}

int64_t extent(const Tensor& t, int64_t d) {
  const auto rank = static_cast<int64_t>(t.shape().size());
  return t.shape()[static_cast<size_t>(d < 0 ? d + rank : d)];
}

OpTest matmul_int8_test() {
  OpTest t{.op = "matmul_int8"};
  const auto transposed = [](bool b) { return Attrs{{"transpose_b", b}}; };
  t.samples = {{{random_tensor({5, 33}), integers({33, 17}, i8)}, transposed(false), {0}},
               {{integers({3, 2, 11}, u8), integers({11, 7}, i8)}, transposed(false), {0}},
               {{integers({1, 37}, i8), integers({5, 37}, i8)}, transposed(true), {}},
               {{random_tensor({1, 5}), integers({5, 1}, i8)}, transposed(false), {}},
               {{integers({0, 5}, u8), integers({5, 3}, i8)}, transposed(false), {}},
               {{integers({2, 0}, u8), integers({0, 3}, i8)}, transposed(false), {}}};
  t.reference = [](const Sample& s) {
    const Tensor &a = s.inputs[0], &b = s.inputs[1];
    const bool transpose = s.attrs.get<bool>("transpose_b");
    const int64_t k = extent(a, -1), n = extent(b, transpose ? 0 : 1);
    Extents shape = a.shape();
    shape.back() = n;
    Tensor y(f64, shape);
    for (int64_t i = 0; i < y.numel(); ++i) {
      for (int64_t j = 0; j < k; ++j)
        at(y, i) += a.at(i / n * k + j) * b.at(transpose ? i % n * k + j : j * n + i % n);
    }
    return std::vector{y};
  };
  t.gradient = false;
  t.slack = 10;
  const Type a{u8, {2, 3}, {}}, b{i8, {3, 4}, {}};
  t.bad = {
      {{a, {u8, {3, 4}, {}}},
       transposed(false),
       "matmul_int8: expects a matrix of floats, i8 or u8 and one of i8, got u8[2, 3] and u8[3, "
       "4]"},
      {{{u8, {3}, {}}, b},
       transposed(false),
       "matmul_int8: expects [..., m, k] and a matrix, got u8[3] and i8[3, 4]"},
      {{a, b},
       transposed(true),
       "matmul_int8: cannot multiply u8[2, 3] by i8[3, 4]: the inner extents are 3 and 4"}};
  return t;
}

/// The convolution of x [N, C, H, W] by its definition, with equal strides, paddings and dilations
/// of both axes.
OpTest conv2d_int8_test() {
  OpTest t{.op = "conv2d_int8"};
  const auto attrs = [](int64_t stride, int64_t padding, int64_t dilation = 1, int64_t groups = 1) {
    return Attrs{{"stride", std::vector{stride}},
                 {"padding", std::vector{padding}},
                 {"dilation", std::vector{dilation}},
                 {"groups", groups}};
  };
  t.samples = {{{integers({2, 3, 7, 5}, u8), integers({4, 3, 3, 3}, i8)}, attrs(1, 1), {0}},
               {{integers({1, 5, 7, 7}, i8), integers({3, 5, 3, 3}, i8)}, attrs(2, 1), {}},
               {{integers({2, 17, 3, 3}, u8), integers({5, 17, 1, 1}, i8)}, attrs(1, 0), {0}},
               {{integers({1, 1, 1, 1}, u8), integers({1, 1, 1, 1}, i8)}, attrs(1, 0), {}},
               {{integers({1, 4, 7, 6}, u8), integers({6, 2, 3, 3}, i8)}, attrs(1, 2, 2, 2), {}},
               {{integers({0, 2, 3, 3}, i8), integers({2, 2, 3, 3}, i8)}, attrs(1, 0), {}}};
  t.reference = [](const Sample& s) {
    const Tensor &x = s.inputs[0], &w = s.inputs[1];
    const int64_t stride = s.attrs.get<std::vector<int64_t>>("stride")[0];
    const int64_t padding = s.attrs.get<std::vector<int64_t>>("padding")[0];
    const int64_t dilation = s.attrs.get<std::vector<int64_t>>("dilation")[0];
    const int64_t channels = extent(x, 1), height = extent(x, 2), width = extent(x, 3);
    const int64_t filters = extent(w, 0), taps = extent(w, 2), seen = extent(w, 1);
    const int64_t filters_per_group = filters / s.attrs.get<int64_t>("groups");
    const auto outputs = [&](int64_t n) {
      return (n + 2 * padding - dilation * (taps - 1) - 1) / stride + 1;
    };
    Tensor y(f64, {extent(x, 0), filters, outputs(height), outputs(width)});
    for (int64_t i = 0; i < y.numel(); ++i) {
      const int64_t q = i % outputs(width), p = i / outputs(width) % outputs(height);
      const int64_t image = i / outputs(width) / outputs(height);
      const int64_t first = image % filters / filters_per_group * seen;
      for (int64_t c = 0; c < seen; ++c) {
        for (int64_t tap = 0; tap < taps * taps; ++tap) {
          const int64_t row = p * stride + tap / taps * dilation - padding;
          const int64_t column = q * stride + tap % taps * dilation - padding;
          if (row < 0 || row >= height || column < 0 || column >= width) continue;
          const int64_t channel = image / filters * channels + first + c;
          at(y, i) += x.at((channel * height + row) * width + column) *
                      w.at((image % filters * seen + c) * taps * taps + tap);
        }
      }
    }
    return std::vector{y};
  };
  t.gradient = false;
  t.bad = {{{{f32, {1, 2, 5, 5}, {}}, {i8, {3, 2, 3, 3}, {}}},
            attrs(1, 0),
            "conv2d_int8: expects an input of i8 or u8 and a filter of i8, got f32[1, 2, 5, 5] and "
            "i8[3, 2, 3, 3]"}};
  return t;
}

const AddOpTest kRoundSaturate(round_saturate_test());
const AddOpTest kMatmulInt8(matmul_int8_test());
const AddOpTest kConv2dInt8(conv2d_int8_test());
const AddOpTest kQuantize(quantize_test());
const AddOpTest kDequantize(dequantize_test());

}  // namespace
}  // namespace fluid::testing::quantization_samples
