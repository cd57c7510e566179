// Layers that normalise: their parameters, and what they reject.

#include <gtest/gtest.h>

#include "frontend/layers.h"
#include "frontend/program.h"
#include "tests/support/errors.h"
#include "tests/support/parameters_of.h"

namespace fluid::normalization_layers_test {
namespace {

using Names = std::vector<std::string>;

TEST(NormalizationLayers, AddParameters) {
  Program net("net");
  const Value x = net.data("x", {kBatch, 6, 4}, f32);
  Value y = layer_norm(x);
  y = layer_norm(y, {.axis = 1, .bias = false, .act = Act::relu});
  y = rms_norm(y);
  y = group_norm(y, {.groups = 3, .name = "norm"});
  y = instance_norm(y);
  y = instance_norm(y, {.affine = true});
  EXPECT_EQ(y.type(), x.type());
  EXPECT_EQ(parameters_of(net), (Names{"ln0.scale f32[4]", "ln0.bias f32[4]", "ln1.scale f32[6, 4]",
                                       "rms0.scale f32[4]", "norm.scale f32[6]", "norm.bias f32[6]",
                                       "in1.scale f32[6]", "in1.bias f32[6]"}));
}

TEST(NormalizationLayers, AddNoParametersWhereNotAffine) {
  Program net("net");
  const Value x = net.data("x", {kBatch, 6, 4}, f32);
  layer_norm(x, {.affine = false});
  rms_norm(x, {.affine = false});
  group_norm(x, {.groups = 2, .affine = false});
  EXPECT_EQ(parameters_of(net), Names{});
}

TEST(NormalizationLayers, KeepF32ParametersForHalfPrecision) {
  Program net("net");
  const Value x = net.data("x", {kBatch, 4}, f16);
  EXPECT_EQ(layer_norm(x).type(), x.type());
  EXPECT_EQ(parameters_of(net), (Names{"ln0.scale f32[4]", "ln0.bias f32[4]"}));
}

TEST(NormalizationLayers, TakeGivenParameters) {
  Program net("net");
  const Value x = net.data("x", {kBatch, 4}, f32);
  const Value w = net.parameter("w", {4}, Init::constant(1));
  layer_norm(x, {.bias = w, .scale = w});
  rms_norm(x, {.scale = w});
  EXPECT_EQ(parameters_of(net), (Names{"w f32[4]"}));
}

TEST(NormalizationLayers, RejectMisuse) {
  Program net("net");
  const Value x = net.data("x", {kBatch, 4}, f32);
  const Value w = net.parameter("w", {3}, Init::zeros());
  expect_user_error([&] { layer_norm(Value()); }, "layer_norm: the input is an empty value");
  expect_user_error([&] { layer_norm(x, {.axis = 0}); },
                    "layer_norm: the input is f32[?, 4], not a float tensor with fixed extents "
                    "from axis 0 on");
  expect_user_error([&] { rms_norm(x, {.axis = 2}); },
                    "rms_norm: the input is f32[?, 4], not a float tensor with fixed extents from "
                    "axis 2 on");
  expect_user_error([&] { layer_norm(x, {.scale = w}); },
                    "layer_norm: the scale is f32[3], but the layer needs f32[4]");
  expect_user_error([&] { layer_norm(x, {.affine = false, .bias = w}); },
                    "layer_norm: affine is false, so a given scale or bias has no effect");
  expect_user_error([&] { instance_norm(x); },
                    "instance_norm: the input is f32[?, 4], not a float [N, C, L, ...]");
  expect_user_error([&] { group_norm(x, {.groups = 3}); },
                    "group_norm: 3 groups do not divide the 4 channels of f32[?, 4]");
  expect_user_error([&] { group_norm(w, {.groups = 3}); },
                    "group_norm: the input is f32[3], not a float [N, C, ...]");
}

}  // namespace
}  // namespace fluid::normalization_layers_test
