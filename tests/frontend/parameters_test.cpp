// Parameters: in which program they are recorded, their options, and layers that are given theirs.

#include <gtest/gtest.h>

#include <limits>
#include <thread>

#include "frontend/layers.h"
#include "frontend/optimizers.h"
#include "frontend/program.h"
#include "ops/functions.h"
#include "tests/support/errors.h"
#include "tests/support/temp_dir.h"

namespace fluid::parameters_test {
namespace {

/// Expects the message after this file's name and a line.
template <class F>
void expect_rejected(F call, const std::string& message) {
  expect_user_error(call, message);
  expect_user_error(call, "parameters_test.cpp:");
}

std::string symbol(Value v) { return v.op()->symbol; }

TEST(Parameters, BelongToTheOnlyProgram) {
  Program net("net");
  const Value w = parameter("w", {784, 10}, Init::zeros());
  EXPECT_EQ(w.op()->graph(), &net.ir().main());
  EXPECT_EQ(w.type().str(), "f32[784, 10]");
  expect_rejected([&] { parameter("w", {3}, Init::zeros()); },
                  "the name 'w' is taken by the param");
  const Program moved = std::move(net);
  EXPECT_EQ(parameter("v", {2}, Init::zeros()).op()->graph(), &moved.ir().main());
}

TEST(Parameters, NeedAChoiceBetweenPrograms) {
  Program a("a");
  {
    Program b("b");
    expect_rejected([] { parameter("w", {3}, Init::zeros()); },
                    "parameter 'w': there are 2 programs, 'a' and 'b' among them; call the "
                    "program's parameter(), or open a Scope");
    EXPECT_EQ(b.parameter("w", {3}, Init::zeros()).op()->graph(), &b.ir().main());
    const Scope outer(a, "outer");
    EXPECT_EQ(symbol(parameter("w", {3}, Init::zeros())), "outer.w");
    {
      const Scope inner(b, "inner");
      const Value w = parameter("w", {3}, Init::zeros());
      EXPECT_EQ(w.op()->graph(), &b.ir().main());
      EXPECT_EQ(symbol(w), "inner.w");
    }
    EXPECT_EQ(parameter("v", {3}, Init::zeros()).op()->graph(), &a.ir().main());
  }
  EXPECT_EQ(parameter("w", {3}, Init::zeros()).op()->graph(), &a.ir().main());
}

TEST(Parameters, NeedAProgramOfTheirThread) {
  Program net("net");
  std::thread([&] {
    expect_rejected([] { parameter("w", {3}, Init::zeros()); },
                    "parameter 'w': this thread has made no program that is alive; call the "
                    "program's parameter()");
    net.parameter("w", {3}, Init::zeros());
  }).join();
  EXPECT_EQ(symbol(parameter("v", {3}, Init::zeros())), "v");
}

TEST(Parameters, OptionsAreAttributesThatAreSaved) {
  Program net("net");
  const Value x = net.data("x", {kBatch, 4}, f32);
  net.parameter("plain", {2}, Init::constant(1), {});
  const Value w = net.parameter("w", {4, 4}, Init::zeros(),
                                {.trainable = false, .lr_scale = 0.5, .weight_decay = false});
  Value h = linear(x, {.units = 4, .weight = w, .lr_scale = 2});
  h = linear(h, {.units = 4, .trainable = false, .name = "frozen"});
  net.output("y", h);
  EXPECT_NE(net.text().find("param \"plain\" {init = \"constant\", value = 1.0} : f32[2]"),
            std::string::npos)
      << net.text();
  for (const char* options : {"trainable = false, lr_scale = 0.5, weight_decay = false",
                              "trainable = false", "lr_scale = 2.0"})
    EXPECT_NE(net.text().find(options), std::string::npos) << options << "\n" << net.text();
  const TempDir dir;
  for (const char* file : {"net.fluid", "net.fir"}) {
    net.save(dir.file(file));
    EXPECT_EQ(Program::load(dir.file(file)).text(), net.text());
  }
}

TEST(Parameters, RejectsWrongOptions) {
  Program net("net");
  for (const double scale : {-1.0, std::numeric_limits<double>::infinity()}) {
    expect_rejected([&] { net.parameter("w", {3}, Init::zeros(), {.lr_scale = scale}); },
                    "param: attribute 'lr_scale' must be a number of 0 or more, not ");
  }
  const Value x = net.data("x", {kBatch, 4}, f32);
  const Value w = net.parameter("w", {4, 4}, Init::zeros());
  expect_rejected(
      [&] { linear(x, {.units = 4, .bias = false, .weight = w, .trainable = false}); },
      "linear: options of parameters, such as trainable and lr_scale, have no effect on "
      "given parameters; set them where the parameters are made");
  expect_rejected([&] { linear(x, {.units = 4, .weight = w, .weight_init = Init::zeros()}); },
                  "linear: the weight is given, so its initialiser has no effect");
}

TEST(Parameters, AreSharedByLayers) {
  Program net("net");
  const Value x = net.data("x", {kBatch, 10}, f32);
  const Value w = parameter("w", {10, 10}, Init::zeros());
  const Value b = parameter("b", {10}, Init::zeros());
  Value h = linear(x, {.units = 10, .weight = w});
  h = linear(h, {.units = 10, .bias = b, .weight = w});
  net.output("y", linear(h, {.units = 10, .bias = false, .weight = transpose(w)}));
  std::vector<std::string> parameters;
  for (const auto& op : net.ir().main().ops) {
    if (op->name == "param") parameters.push_back(op->symbol);
  }
  EXPECT_EQ(parameters, (std::vector<std::string>{"w", "b", "fc0.b"}));
}

TEST(Parameters, GivenToALayerMustFit) {
  Program net("net"), other("other");
  const Value x = net.data("x", {kBatch, 4}, f32);
  const Value image = net.data("image", {kBatch, 3, 8, 8}, f32);
  const Value w = net.parameter("w", {4, 4}, Init::zeros());
  expect_rejected([&] { linear(x, {.units = 5, .weight = w}); },
                  "linear: the weight is f32[4, 4], but the layer needs f32[4, 5]");
  expect_rejected([&] { linear(x, {.units = 5, .bias = w}); },
                  "linear: the bias is f32[4, 4], but the layer needs f32[5]");
  expect_rejected([&] { conv2d(image, {.filters = 2, .kernel = 3, .weight = w}); },
                  "conv2d: the weight is f32[4, 4], but the layer needs f32[2, 3, 3, 3]");
  expect_rejected([&] { conv2d(image, {.filters = 2, .kernel = 3, .bias = w}); },
                  "conv2d: the bias is f32[4, 4], but the layer needs f32[2]");
  expect_rejected([&] { batch_norm(image, {.gamma = w}); },
                  "batch_norm: the gamma is f32[4, 4], but the layer needs f32[3]");
  expect_rejected([&] { batch_norm(image, {.beta = w}); },
                  "batch_norm: the beta is f32[4, 4], but the layer needs f32[3]");
  expect_rejected([&] { linear(x, {.units = 4, .weight = Value()}); },
                  "linear: the weight is an empty value");
  expect_rejected(
      [&] {
        linear(x, {.units = 4, .weight = other.parameter("w", {4, 4}, Init::zeros())});
      },
      "linear: the weight belongs to another program");
}

}  // namespace
}  // namespace fluid::parameters_test
