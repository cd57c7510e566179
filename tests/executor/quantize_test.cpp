// fluid::quantize(): the quantized program computes about what the trained one does.

#include "executor/quantization/quantize.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "executor/quantization/int8_weight.h"
#include "executor/trainer/inference.h"
#include "frontend/fluid.h"
#include "tests/support/errors.h"
#include "tests/support/golden.h"
#include "tests/support/temp_dir.h"
#include "tests/support/training.h"

namespace fluid::quantize_test {
namespace {

/// Two linear layers, of which the second is narrow.
Program mlp() {
  Program net("mlp");
  const Value x = net.data("x", {kBatch, 24}, f32);
  const Value y = linear(linear(x, {.units = 40, .act = Act::relu}), {.units = 3});
  net.output("y", y);
  minimize(mean(square(y)), SGD{.lr = 0.1});
  return net;
}

/// Convolutions with batch norm, a residual connection, and a linear layer.
Program cnn() {
  Program net("cnn");
  const Value x = net.data("x", {kBatch, 3, 9, 9}, f32);
  const auto block = [](Value v, int64_t stride) {
    return batch_norm(
        conv2d(v, {.filters = 16, .kernel = 3, .stride = stride, .padding = 1, .bias = false}));
  };
  Value h = relu(block(x, 2));
  h = relu(block(h, 1) + h);
  net.output("y", linear(flatten(h), {.units = 4}));
  return net;
}

Batch batch_of(int64_t n, const Shape& shape) {
  std::vector<int64_t> extents = {n};
  for (size_t d = 1; d < shape.size(); ++d) extents.push_back(shape[d].size);
  return {n, {{"x", testing::golden_tensor(5, extents).cast(f32)}}, 0};
}

Reader reader_of(const Batch& batch) {
  Dataset data;
  data.columns = batch.columns;
  return Reader(data, {.batch = batch.size});
}

/// Largest distance of `y` from `expected`, relative to the largest expected value.
double distance(const Tensor& y, const Tensor& expected) {
  double largest = 0, off = 0;
  for (int64_t i = 0; i < y.numel(); ++i) {
    largest = std::max(largest, std::abs(expected.at(i)));
    off = std::max(off, std::abs(y.at(i) - expected.at(i)));
  }
  return off / largest;
}

TEST(Quantize, WeightsHaveOneScalePerOutputChannel) {
  const Tensor w = Tensor::of<float>({2, 3}, std::vector<float>{1, -0.5, 0, -0.3F, 2, 0});
  const Int8Weight rows = quantize_weight(w, 0, "w");
  EXPECT_EQ(rows.scale.shape(), std::vector<int64_t>{2});
  EXPECT_FLOAT_EQ(rows.scale.as<float>()[1], 2.0F / 127);
  const Int8Weight columns = quantize_weight(w, 1, "w");
  const std::vector<int> expected = {127, -32, 0, -38, 127, 0};
  for (int64_t i = 0; i < 6; ++i)
    EXPECT_EQ(columns.integers.integer(i), expected[static_cast<size_t>(i)]) << i;
  EXPECT_EQ(columns.scale.as<float>()[2], 1);
}

TEST(Quantize, WeightOnlyChangesProductsAlone) {
  const TempDir dir;
  const Program net = mlp();
  Executor exe(net, cpu());
  const Batch batch = batch_of(5, {5, 24});
  const Tensor expected = exe.predict(batch)["y"].copy();
  const QuantizedProgram quantized = quantize(exe, net);
  EXPECT_EQ(quantized.weights, (std::vector<std::string>{"fc0.w", "fc1.w"}));
  EXPECT_LT(quantized.bytes_after, 0.4 * quantized.bytes_before);
  quantized.program.save(dir.file("q.fluid"));
  Executor int8_exe(quantized.program, cpu());
  set_parameters(int8_exe, quantized);
  int8_exe.save(dir.file("q.safetensors"));
  const Tensor y = int8_exe.predict(batch)["y"].copy();
  EXPECT_GT(distance(y, expected), 0);
  EXPECT_LT(distance(y, expected), 0.02);
  Executor loaded(Program::load(dir.file("q.fluid")), cpu());
  loaded.load(dir.file("q.safetensors"));
  const Tensor again = loaded.predict(batch)["y"].copy();
  for (int64_t i = 0; i < y.numel(); ++i) EXPECT_EQ(again.at(i), y.at(i));
}

TEST(Quantize, ActivationsAreQuantizedByTheirRanges) {
  const Program net = cnn();
  Executor exe(net, cpu());
  const Batch batch = batch_of(8, {8, 3, 9, 9});
  const Tensor expected = exe.predict(batch)["y"].copy();
  Reader calibration = reader_of(batch);
  const QuantizedProgram quantized = quantize(exe, net, {.calibration = &calibration});
  EXPECT_EQ(quantized.weights, (std::vector<std::string>{"conv0.w", "conv1.w", "fc0.w"}));
  std::map<std::string, DType> dtypes;
  for (const auto& [name, value] : quantized.values) dtypes[name] = value.dtype();
  EXPECT_EQ(dtypes.at("conv0.w"), i8);
  EXPECT_EQ(dtypes.at("conv0.input.scale"), f32);
  EXPECT_FALSE(dtypes.contains("conv0.input.zero_point"));  // the padded input is i8
  EXPECT_FALSE(dtypes.contains("conv1.input.zero_point"));  // no activation is negative
  Executor int8_exe(quantized.program, cpu());
  set_parameters(int8_exe, quantized);
  EXPECT_LT(distance(int8_exe.predict(batch)["y"].copy(), expected), 0.05);
  EXPECT_LT(distance(int8_exe.eval(batch)["y"].copy(), expected), 0.05);
}

/// The figure of fluidrun quantize: at most a point of accuracy is lost.
TEST(Quantize, KeepsTheAccuracyOfDigits) {
  Program net = mnist_fluid_program();
  minimize(net.ir().main().outputs.at(0).value, Adam{.lr = 0.003});
  Trainer trainer(net, cpu(), {.seed = 1});
  Reader train(open_data("digits?n=2000").source, {.batch = 100, .shuffle_seed = 1});
  Reader test(open_data("digits?n=1000", "test").source, {.batch = 500});
  trainer.fit(train, {.epochs = 2});
  const auto accuracy = [](const NamedScalars& scalars) {
    return std::ranges::find(scalars, "accuracy", &NamedScalars::value_type::first)->second;
  };
  const double before = accuracy(trainer.evaluate(test));
  EXPECT_GT(before, 0.7);
  const QuantizedProgram quantized =
      quantize(trainer.executor(), net, {.calibration = &train, .calibration_batches = 4});
  EXPECT_EQ(quantized.weights.size(), 3u);
  Executor int8_exe(quantized.program, cpu());
  set_parameters(int8_exe, quantized);
  EXPECT_GT(accuracy(evaluate(int8_exe, test, quantized.program)), before - 0.01);
}

TEST(Quantize, KeepsTheWeightsThatPatternsSelect) {
  const Program net = mlp();
  Executor exe(net, cpu());
  EXPECT_EQ(quantize(exe, net, {.keep = {"fc1"}}).weights, std::vector<std::string>{"fc0.w"});
  expect_user_error(
      [&] {
        quantize(exe, net, {.keep = {"fc0", "head*"}});
      },
      "quantize: pattern 'head*' matches no weight; there are fc0.w, fc1.w");
  expect_user_error([&] { quantize(exe, net, {.keep = {"*"}}); },
                    "quantize: program 'mlp' has no weight to quantize");
}

/// The second product has no activation: both of its operands are weights.
TEST(Quantize, LeavesProductsOfWeightsAlone) {
  Program net("tied");
  const Value x = net.data("x", {kBatch, 6}, f32);
  const Value w = net.parameter("w", {6, 4}, Init::xavier_uniform());
  const Value v = net.parameter("v", {4, 4}, Init::xavier_uniform());
  net.output("y", matmul(x, w));
  net.output("z", matmul(w, v));
  Executor exe(net, cpu());
  const Batch batch = batch_of(8, {8, 6});
  Reader calibration = reader_of(batch);
  const QuantizedProgram quantized = quantize(exe, net, {.calibration = &calibration});
  EXPECT_EQ(quantized.weights, std::vector<std::string>{"w"});
  Executor int8_exe(quantized.program, cpu());
  set_parameters(int8_exe, quantized);
  EXPECT_LT(distance(int8_exe.predict(batch)["y"].copy(), exe.predict(batch)["y"].copy()), 0.05);
  expect_user_error([&] { quantize(int8_exe, quantized.program); },
                    "quantize: program 'tied' has no weight to quantize");
}

/// The scale of such an activation would not be a normal number.
TEST(Quantize, TakesTinyActivations) {
  const Program net = mlp();
  Executor exe(net, cpu());
  Batch batch = batch_of(4, {4, 24});
  for (float& value : batch.columns[0].second.as<float>()) value = 1e-44F;
  Reader calibration = reader_of(batch);
  const QuantizedProgram quantized = quantize(exe, net, {.calibration = &calibration});
  const auto scale = std::ranges::find(quantized.values, "fc0.input.scale",
                                       &std::pair<std::string, Tensor>::first);
  ASSERT_NE(scale, quantized.values.end());
  EXPECT_EQ(scale->second.as<float>()[0], 1);
}

TEST(Quantize, RejectsWhatItCannotQuantize) {
  const Program net = mlp();
  Executor exe(net, cpu());
  Batch batch = batch_of(4, {4, 24});
  batch.columns[0].second.as<float>()[3] = std::numeric_limits<float>::infinity();
  Reader infinite = reader_of(batch);
  expect_user_error([&] { quantize(exe, net, {.calibration = &infinite}); },
                    "quantize: a result of data is not finite for the calibration data");
  Reader at_its_end = reader_of(batch_of(4, {4, 24}));
  at_its_end.next();
  expect_user_error([&] { quantize(exe, net, {.calibration = &at_its_end}); },
                    "quantize: the calibration data is empty");
  Tensor w = exe.parameter("fc0.w").copy();
  w.as<float>()[0] = std::numeric_limits<float>::quiet_NaN();
  exe.set_parameter("fc0.w", w);
  expect_user_error([&] { quantize(exe, net); }, "quantize: an element of 'fc0.w' is not finite");
  Program text("text");
  text.output("y", linear(text.data("x", {kBatch, kLength, 8}, f32), {.units = 2}));
  Executor text_exe(text, cpu());
  expect_user_error([&] { quantize(text_exe, text, {.calibration = &infinite}); },
                    "quantize: program 'text' has a dimension kLength; only its weights can be "
                    "quantized, without calibration data");
}

TEST(Quantize, HasNoGradient) {
  Program net("qat");
  const Value x = net.data("x", {kBatch, 4}, f32), w = net.parameter("w", {4, 4}, Init::zeros());
  const Value scale = net.parameter("scale", {}, Init::constant(1));
  const QuantizeAttrs to{.to = Type{i8, {}, {}}};
  const Value loss = mean(square(matmul(x, dequantize(quantize(w, scale, to), scale))));
  net.output("loss", loss);
  minimize(loss, SGD{.lr = 0.1});
  Executor exe(net, cpu());
  expect_user_error(
      [&] {
        exe.run(batch_of(4, {4, 4}));
      },
      "dequantize has no gradient, but a parameter reaches the loss through it");
}

}  // namespace
}  // namespace fluid::quantize_test
