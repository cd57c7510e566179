// Convolutions and products of dequantized tensors, compiled, against PyTorch's kernels of 8-bit
// integers (tests/golden/quantized.py), with oneDNN's kernels and with generated ones.

#include <gtest/gtest.h>

#include <cmath>

#include "executor/executor.h"
#include "frontend/fluid.h"
#include "tests/support/golden.h"

namespace fluid::quantized_kernels_test {
namespace {

using Json = nlohmann::json;
using Extents = std::vector<int64_t>;

int64_t numel_of(const Extents& shape) {
  int64_t n = 1;
  for (const int64_t extent : shape) n *= extent;
  return n;
}

/// Whole numbers in [low, high].
Tensor integers(uint64_t stream, const Extents& shape, DType dtype, double low, double high) {
  Tensor t(f64, shape);
  const std::vector<double> uniform = testing::golden_uniform(stream, numel_of(shape));
  for (size_t i = 0; i < uniform.size(); ++i)
    t.as<double>()[i] = std::floor(low + (high - low + 1) * uniform[i]);
  return t.cast(dtype);
}

Tensor scalar(double value, DType dtype) {
  return Tensor::of<double>({}, std::span(&value, 1)).cast(dtype);
}

Shape shape_of(const Extents& extents) { return {extents.begin(), extents.end()}; }

/// A quantized layer of a golden case, as a program with the output "y".
class Layer {
 public:
  explicit Layer(const Json& json) : json_(json) {
    const Extents x_shape = json.at("x"), w_shape = json.at("w");
    is_conv_ = json.at("op") == "conv2d";
    const size_t axis = is_conv_ ? 0 : 1;
    const int64_t channels = w_shape[axis];
    Shape batched = shape_of(x_shape);
    batched[0] = kBatch;
    x_ = integers(1, x_shape, u8, 0, 255);
    const Value x = dequantized(net_.data("x", batched, u8), "x");
    const Value w = dequantize(variable("w", integers(2, w_shape, i8, -127, 127)),
                               variable("w.scale", weight_scales(channels)),
                               {.axis = static_cast<int64_t>(axis)});
    Value y = is_conv_ ? conv2d(x, w,
                                {.stride = json.at("stride").get<Extents>(),
                                 .padding = json.at("padding").get<Extents>()})
                       : matmul(x, w);
    const Value bias = variable("bias", biases(channels));
    y = y + (is_conv_ ? reshape(bias, Shape{channels, 1, 1}) : bias);
    if (json.at("relu")) y = relu(y);
    const Value scale = variable("y.scale", scalar(json.at("y_scale"), f32));
    const QuantizeAttrs attrs{.to = Type{u8, {}, {}}};
    const int64_t point = json.at("y_zero_point");
    const Value q = point == 0 ? quantize(y, scale, attrs)
                               : quantize(y, scale, variable("y.point", scalar(point, u8)), attrs);
    net_.output("y", q);
  }

  Tensor run(bool use_libraries, int threads = 1, Mode mode = Mode::predict) {
    ExecutorOptions options{.threads = threads};
    options.debug.libraries = use_libraries;
    Executor exe(net_, cpu(), options);
    for (const auto& [name, value] : values_) exe.set_parameter(name, value);
    const Batch batch{x_.shape()[0], {{"x", x_}}, 0};
    return (mode == Mode::predict ? exe.predict(batch) : exe.eval(batch))["y"].copy();
  }

 private:
  Value variable(const std::string& name, const Tensor& value) {
    values_.emplace_back(name, value);
    return record_source(net_.ir().main(), "param", name,
                         {value.dtype(), shape_of(value.shape()), {}}, {{"trainable", false}}, {});
  }

  Value dequantized(Value q, const std::string& name) {
    const Value scale = variable(name + ".scale", scalar(json_.at(name + "_scale"), f32));
    const int64_t point = json_.at(name + "_zero_point");
    if (point == 0) return dequantize(q, scale);
    return dequantize(q, scale, variable(name + ".point", scalar(point, u8)));
  }

  static Tensor weight_scales(int64_t channels) {
    Tensor scales(f32, {channels});
    for (int64_t c = 0; c < channels; ++c)
      scales.as<float>()[static_cast<size_t>(c)] = static_cast<float>(c + 8) / 4096;
    return scales;
  }

  static Tensor biases(int64_t channels) {
    Tensor t(f64, {channels});
    const std::vector<double> uniform = testing::golden_uniform(3, channels);
    for (size_t c = 0; c < uniform.size(); ++c) t.as<double>()[c] = 4 * uniform[c] - 2;
    return t.cast(f32);
  }

  Json json_;
  Program net_{"layer"};
  bool is_conv_ = false;
  Tensor x_;
  std::vector<std::pair<std::string, Tensor>> values_;
};

void expect_within_a_quantum(const Tensor& y, const std::vector<int64_t>& expected) {
  ASSERT_EQ(y.numel(), static_cast<int64_t>(expected.size()));
  for (int64_t i = 0; i < y.numel(); ++i)
    EXPECT_LE(std::abs(y.integer(i) - expected[static_cast<size_t>(i)]), 1) << i;
}

TEST(QuantizedKernels, ComputeWhatPyTorchDoes) {
  for (const Json& json : testing::golden_json("quantized.json")) {
    SCOPED_TRACE(json.at("op").get<std::string>() + " " + json.at("w").dump());
    const auto expected = json.at("y").get<std::vector<int64_t>>();
    for (const bool use_libraries : {false, true}) {
      Layer layer(json);
      expect_within_a_quantum(layer.run(use_libraries), expected);
      expect_within_a_quantum(layer.run(use_libraries, 1, Mode::eval), expected);
    }
  }
}

/// 80,000 products of 255 and 127 do not fit in 32 bits, in which libraries add up.
TEST(QuantizedKernels, AddUpManyProducts) {
  constexpr int64_t kProducts = 80'000;
  Program net("long");
  const Value x = net.data("x", {kBatch, kProducts}, u8);
  const Value w = net.parameter("w", {kProducts, 16}, Init::constant(127));
  const Value one = net.parameter("one", {}, Init::constant(1));
  const Value integers = quantize(w, one, {.to = Type{i8, {}, {}}});
  net.output("y", matmul(dequantize(x, one), dequantize(integers, one)));
  Executor exe(net, cpu());
  Tensor column(u8, {64, kProducts});
  std::ranges::fill(column.as<uint8_t>(), uint8_t{255});
  const Tensor y = exe.predict({.size = 64, .columns = {{"x", column}}})["y"].copy();
  for (int64_t i = 0; i < y.numel(); ++i)
    ASSERT_NEAR(y.at(i), 255.0 * 127 * kProducts, 1e-4 * 255 * 127 * kProducts) << i;
}

TEST(QuantizedKernels, GiveTheSameBitsForAnyNumberOfThreads) {
  for (const Json& json : testing::golden_json("quantized.json")) {
    Layer layer(json);
    const Tensor one = layer.run(true, 1), three = layer.run(true, 3);
    for (int64_t i = 0; i < one.numel(); ++i) ASSERT_EQ(one.integer(i), three.integer(i)) << i;
  }
}

}  // namespace
}  // namespace fluid::quantized_kernels_test
