// Convolution layers of 1 to 3 dimensions: shapes, parameters and padding by name.

#include <gtest/gtest.h>

#include "frontend/layers.h"
#include "frontend/program.h"
#include "tests/support/errors.h"

namespace fluid::convolution_layers_test {
namespace {

/// Type of a parameter of the program of x.
Type type_of(Value x, const std::string& name) {
  const Value parameter = x.op()->graph()->find("param", name)->result();
  return parameter.type();
}

TEST(ConvolutionLayers, AddParametersOfTheirDimensions) {
  Program net("net");
  const Value line = net.data("line", {kBatch, 4, 9}, f32);
  EXPECT_EQ(conv1d(line, {.filters = 6, .kernel = 3, .stride = 2, .groups = 2}).shape(),
            (Shape{kBatch, 6, 4}));
  EXPECT_EQ(type_of(line, "conv0.w"), (Type{f32, {6, 2, 3}, {}}));
  const Value volume = net.data("volume", {kBatch, 2, 4, 5, 6}, f32);
  EXPECT_EQ(conv3d(volume, {.filters = 3, .kernel = {1, 2, 3}, .padding = {1, 0, 0}}).shape(),
            (Shape{kBatch, 3, 6, 4, 4}));
  EXPECT_EQ(type_of(volume, "conv1.w"), (Type{f32, {3, 2, 1, 2, 3}, {}}));
  EXPECT_EQ(type_of(volume, "conv1.b"), (Type{f32, {3}, {}}));
}

TEST(ConvolutionLayers, TransposedOnesSwapTheChannelsOfTheWeight) {
  Program net("net");
  const Value image = net.data("image", {kBatch, 4, 5, 6}, f32);
  const ConvTranspose layer{
      .filters = 6, .kernel = 3, .stride = 2, .padding = 1, .output_padding = 1, .groups = 2};
  EXPECT_EQ(conv2d_transpose(image, layer).shape(), (Shape{kBatch, 6, 10, 12}));
  EXPECT_EQ(type_of(image, "conv_transpose0.w"), (Type{f32, {4, 3, 3, 3}, {}}));
  EXPECT_EQ(type_of(image, "conv_transpose0.b"), (Type{f32, {6}, {}}));
  const Value line = net.data("line", {kBatch, 1, 5}, f32);
  EXPECT_EQ(conv1d_transpose(line, {.filters = 2, .kernel = 2, .bias = false}).shape(),
            (Shape{kBatch, 2, 6}));
  const Value volume = net.data("volume", {kBatch, 1, 1, 2, 3}, f32);
  EXPECT_EQ(conv3d_transpose(volume, {.filters = 2, .kernel = 2, .stride = {2, 1, 1}}).shape(),
            (Shape{kBatch, 2, 2, 3, 4}));
}

TEST(ConvolutionLayers, SamePaddingKeepsTheExtents) {
  Program net("net");
  const Value x = net.data("x", {kBatch, 2, 7, 8}, f32);
  const auto same = [&](Same padding, Ints stride) {
    return conv2d(x, {.filters = 2,
                      .kernel = {4, 3},
                      .stride = stride,
                      .padding = padding,
                      .dilation = {1, 2},
                      .bias = false});
  };
  EXPECT_EQ(same(Same::upper, 1).shape(), (Shape{kBatch, 2, 7, 8}));
  EXPECT_EQ(same(Same::lower, {2, 3}).shape(), (Shape{kBatch, 2, 4, 3}));
  const auto numbers = [&](Same padding, Ints stride) {
    return same_padding(x,
                        {.kernel = {4, 3}, .stride = stride, .dilation = {1, 2}, .same = padding});
  };
  EXPECT_EQ(numbers(Same::upper, 1), (Ints{1, 2, 2, 2}));
  EXPECT_EQ(numbers(Same::lower, 1), (Ints{2, 2, 1, 2}));
  EXPECT_EQ(numbers(Same::upper, {2, 3}), (Ints{1, 1, 2, 2}));
  EXPECT_EQ(numbers(Same::upper, 5), (Ints{1, 1, 1, 1}));
  EXPECT_EQ(same_padding(x, {.kernel = 1, .stride = 3}), (Ints{0, 0, 0, 0}));
}

TEST(ConvolutionLayers, SamePaddingOfTransposedOnesMultipliesTheExtents) {
  Program net("net");
  const Value x = net.data("x", {kBatch, 2, 7, 8}, f32);
  const auto same = [&](Same padding, Ints stride) {
    return conv2d_transpose(x, {.filters = 2,
                                .kernel = {4, 3},
                                .stride = stride,
                                .padding = padding,
                                .dilation = {1, 2},
                                .bias = false});
  };
  const auto attribute = [](Value y, const char* name) {
    return y.op()->attrs.get<std::vector<int64_t>>(name);
  };
  const Value upper = same(Same::upper, {1, 3}), lower = same(Same::lower, {1, 2});
  EXPECT_EQ(upper.shape(), (Shape{kBatch, 2, 7, 24}));
  EXPECT_EQ(attribute(upper, "padding"), (Ints{1, 1, 2, 1}));
  EXPECT_EQ(attribute(upper, "output_padding"), (Ints{0, 0}));
  EXPECT_EQ(lower.shape(), (Shape{kBatch, 2, 7, 16}));
  EXPECT_EQ(attribute(lower, "padding"), (Ints{2, 2, 1, 1}));
  const Value wide = same(Same::upper, 7);
  EXPECT_EQ(wide.shape(), (Shape{kBatch, 2, 49, 56}));
  EXPECT_EQ(attribute(wide, "output_padding"), (Ints{3, 2}));
  // The padding of the convolution whose gradient it is.
  const Value y = net.data("y", {kBatch, 2, 7, 24}, f32);
  EXPECT_EQ(same_padding(y, {.kernel = {4, 3}, .stride = {1, 3}, .dilation = {1, 2}}),
            attribute(upper, "padding"));
  expect_user_error(
      [&] {
        conv2d_transpose(x,
                         {.filters = 2, .kernel = 3, .padding = Same::upper, .output_padding = 1});
      },
      "conv_transpose: Same padding determines output_padding; it must be 0, not 1");
}

TEST(ConvolutionLayers, SamePaddingRejectsWhatIsNoWindow) {
  Program net("net");
  const Value x = net.data("x", {kBatch, 2, 7, 8}, f32), flat = net.data("f", {kBatch, 2}, f32);
  expect_user_error([&] { same_padding(Value(), {.kernel = 2}); },
                    "same_padding: the input is an empty value");
  expect_user_error(
      [&] { same_padding(flat, {.kernel = 2}); },
      "same_padding: the input is f32[?, 2], not [N, C, ...] with fixed spatial extents");
  expect_user_error(
      [&] {
        same_padding(x, {.kernel = {1, 2, 3}});
      },
      "same_padding: kernel takes 1 or 2 numbers, not 3");
  expect_user_error([&] { same_padding(x, {.kernel = 2, .stride = 0}); },
                    "same_padding: stride must be positive, not 0");
}

TEST(ConvolutionLayers, RejectsKernelsOfOtherDimensions) {
  Program net("net");
  const Value line = net.data("line", {kBatch, 4, 9}, f32);
  expect_user_error(
      [&] {
        conv1d(line, {.filters = 2, .kernel = {3, 3}});
      },
      "conv1d: kernel has 2 numbers, not 1");
  expect_user_error([&] { conv3d(line, {.filters = 2, .kernel = 3}); },
                    "conv3d: the input is f32[?, 4, 9], not a float [N, C, D, H, W]");
  expect_user_error([&] { conv2d_transpose(line, {.filters = 2, .kernel = 3}); },
                    "conv2d_transpose: the input is f32[?, 4, 9], not a float [N, C, H, W]");
}

}  // namespace
}  // namespace fluid::convolution_layers_test
