// Tests errors in the construction of a program, and the source lines that they name.

#include <gtest/gtest.h>

#include <cmath>

#include "frontend/layers.h"
#include "frontend/optimizers.h"
#include "frontend/program.h"
#include "ops/functions.h"
#include "ops/no_amp.h"
#include "tests/support/errors.h"
#include "tests/support/temp_dir.h"

namespace fluid::building_test {
namespace {

/// Expects the message after this file's name and a line.
template <class F>
void expect_rejection(F call, const std::string& message) {
  expect_user_error(call, message);
  expect_user_error(call, "building_test.cpp:");
}

TEST(Building, NamesTheLineOfAMistake) {
  Program net("net");
  const Value x = net.data("x", {kBatch, 4}, f32);
  const int line = __LINE__ + 1;
  expect_user_error([&] { matmul(x, x); },
                    "building_test.cpp:" + std::to_string(line) + ": matmul: cannot multiply");
}

TEST(Building, RejectsWrongConvolutions) {
  Program net("net");
  const Value x = net.data("x", {kBatch, 4, 8, 8}, f32);
  const Value flat = net.data("flat", {kBatch, 4}, f32);
  expect_rejection([&] { conv2d(Value(), {.filters = 2, .kernel = 3}); },
                   "conv2d: the input is an empty value");
  expect_rejection([&] { conv2d(x, {.filters = 0, .kernel = 3}); },
                   "conv2d: filters must be positive, not 0");
  expect_rejection([&] { conv2d(x, {.filters = 2, .kernel = Ints()}); },
                   "conv2d: kernel has 0 numbers, not 1 or 2");
  expect_rejection(
      [&] {
        conv2d(x, {.filters = 2, .kernel = {1, 2, 3}});
      },
      "conv2d: kernel has 3 numbers, not 1 or 2");
  expect_rejection([&] { conv2d(flat, {.filters = 2, .kernel = 3}); },
                   "conv2d: the input is f32[?, 4], not a float [N, C, H, W]");
  const Value pixels = net.data("pixels", {kBatch, 4, 8, 8}, u8);
  expect_rejection([&] { conv2d(pixels, {.filters = 2, .kernel = 3}); },
                   "conv2d: the input is u8[?, 4, 8, 8], not a float [N, C, H, W]");
  expect_rejection([&] { conv2d_transpose(pixels, {.filters = 2, .kernel = 3}); },
                   "conv2d_transpose: the input is u8[?, 4, 8, 8], not a float [N, C, H, W]");
  expect_rejection([&] { conv2d(x, {.filters = 2, .kernel = 3, .groups = 3}); },
                   "conv2d: 3 groups do not divide 4 input channels and 2 filters");
}

TEST(Building, RejectsWrongDenseLayers) {
  Program net("net");
  const Value x = net.data("x", {kBatch, 4}, f32);
  const Value ids = net.data("ids", {kBatch}, f32);
  expect_rejection([&] { linear(Value(), {.units = 2}); }, "linear: the input is an empty value");
  expect_rejection([&] { linear(x, {.units = 0}); }, "linear: units must be positive, not 0");
  expect_rejection([&] { linear(ids, {.units = 2}); },
                   "linear: the input is f32[?], not a float [..., features]");
  expect_rejection(
      [&] {
        linear(net.data("words", {kBatch, 4}, i64), {.units = 2});
      },
      "linear: the input is i64[?, 4], not a float [..., features]");
  expect_rejection([&] { dropout(Value(), Dropout{}); }, "dropout: the input is an empty value");
}

TEST(Building, DropoutTakesEveryProbability) {
  Program net("net");
  const Value x = net.data("x", {kBatch, 4, 2, 2}, f32);
  for (const double p : {0.0, 0.5, 1.0})
    EXPECT_TRUE(dropout(x, {.p = p}) && dropout2d(x, {.p = p}));
  expect_rejection(
      [&] {
        dropout2d(net.data("flat", {kBatch, 4}, f32), {});
      },
      "dropout2d: the input is f32[?, 4], not a float [N, C, H, W]");
  for (const double p : {-0.1, 1.1, std::nan("")}) {
    expect_rejection([&] { dropout(x, {.p = p}); }, "attribute 'p' must lie between 0 and 1");
    expect_rejection([&] { dropout2d(x, {.p = p}); }, "attribute 'p' must lie between 0 and 1");
  }
}

TEST(Building, ActivationsAreTheOpsOfTheirNames) {
  Program net("net");
  const Value x = net.data("x", {kBatch, 4}, f32);
  EXPECT_EQ(activate(x, Act::none), x);
  const std::vector<std::string> names = {"relu",     "sigmoid",      "tanh",       "gelu",
                                          "relu6",    "leaky_relu",   "elu",        "selu",
                                          "celu",     "silu",         "mish",       "softplus",
                                          "softsign", "hard_sigmoid", "hard_swish", "log_sigmoid"};
  for (size_t i = 0; i < names.size(); ++i) {
    EXPECT_EQ(activate(x, static_cast<Act>(i + 1)).op()->name, names[i]);
  }
}

TEST(Building, NoAmpMarksWhatIsRecordedMeanwhile) {
  Program net("net");
  const Value x = net.data("x", {kBatch, 4}, f32);
  const Value before = linear(x, {.units = 4, .act = Act::relu});
  Value marked;
  {
    const NoAmp guard;
    marked = linear(before, {.units = 4, .name = "head"});
    const NoAmp::Suspend paused;
    relu(marked);
  }
  net.output("y", relu(marked));
  const TempDir dir;
  net.save(dir.file("net.fluid"));
  const Program read = Program::load(dir.file("net.fluid"));
  EXPECT_EQ(read.text(), net.text());
  int marks = 0;
  for (const auto& op : read.ir().main().ops) {
    const bool computed_in_head = op->scope == "head" && op->symbol.empty();
    EXPECT_EQ(op->attrs.get_or(kNoAmp, false), computed_in_head) << op->name;
    marks += computed_in_head ? 1 : 0;
  }
  EXPECT_EQ(marks, 2);
}

TEST(Building, RejectsLossesThatAreNone) {
  Program net("net");
  const Value x = net.data("x", {kBatch, 4}, f32);
  expect_rejection([&] { minimize(Value(), SGD{}); }, "minimize: the loss is an empty value");
  expect_rejection([&] { minimize(x, SGD{}); },
                   "minimize: the loss is f32[?, 4], not a float scalar; take its mean()");
}

TEST(Building, RejectsWrongFeedsAndOutputs) {
  Program net("net"), other("other");
  const Value x = net.data("x", {kBatch, 4}, f32);
  expect_rejection([&] { net.data("label", {kBatch}, i64, {.scale = 0.5}); },
                   "data: only floats are scaled and normalised, not i64[?]");
  expect_rejection([&] { net.data("label", {kBatch}, i64, {.std = {2}}); },
                   "data: only floats are scaled and normalised, not i64[?]");
  expect_rejection(
      [&] {
        net.data("image", {kBatch, 3, 8, 8}, f32, {.mean = {0.5, 0.5}});
      },
      "data: attribute 'mean' has 2 numbers, but the feed is f32[?, 3, 8, 8]: one "
      "number, or one per channel (dimension 1)");
  expect_rejection(
      [&] {
        net.data("image", {kBatch}, f32, {.std = {0.5, 0.5}});
      },
      "data: attribute 'std' has 2 numbers, but the feed is f32[?]");
  expect_rejection(
      [&] {
        net.data("z", {kBatch, -3}, f32);
      },
      "data: the shape [?, -3] of 'z' has a negative dimension");
  expect_rejection(
      [&] {
        net.parameter("w", {-1, 2}, Init::zeros());
      },
      "param: the shape [-1, 2] of 'w' has a negative dimension");
  expect_rejection([&] { net.data("x", {kBatch}, f32); },
                   "data: the name 'x' is taken by the data");
  net.output("x", x);
  expect_rejection([&] { net.output("x", x); }, "output 'x' exists already");
  expect_rejection([&] { other.output("x", x); }, "output 'x' is not a value of program 'other'");
  expect_rejection([&] { net.output("y", Value()); }, "output 'y' is not a value of program 'net'");
}

}  // namespace
}  // namespace fluid::building_test
