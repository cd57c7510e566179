// Patterns of names, and groups of parameters that they select.

#include "frontend/name_pattern.h"

#include <gtest/gtest.h>

#include <limits>

#include "frontend/layers.h"
#include "frontend/optimizers.h"
#include "frontend/program.h"
#include "tests/support/errors.h"

namespace fluid::name_pattern_test {
namespace {

TEST(NamePattern, SelectsNamesAndLayers) {
  EXPECT_TRUE(NamePattern("conv*").selects("conv12.w"));
  EXPECT_TRUE(NamePattern("fc1").selects("fc1.w"));
  EXPECT_FALSE(NamePattern("fc1").selects("fc10.w"));
  EXPECT_TRUE(NamePattern("head.*").selects("head.w"));
  EXPECT_FALSE(NamePattern("head.*").selects("header.w"));
  EXPECT_FALSE(NamePattern("head.*").selects("head"));
  EXPECT_TRUE(NamePattern("layer[34].?").selects("layer3.0.conv1.w"));
  EXPECT_FALSE(NamePattern("layer[!34]").selects("layer3.w"));
  EXPECT_TRUE(NamePattern("*.{gamma,beta}").selects("bn0.beta"));
  EXPECT_FALSE(NamePattern("a.b").matches("axb"));
  EXPECT_TRUE(NamePattern("a\\*[.]b").matches("a*.b"));
  EXPECT_TRUE(NamePattern("a+b,c").matches("a+b,c"));
  EXPECT_FALSE(NamePattern("[^a]").matches("b"));
}

TEST(NamePattern, WithAWildcardMatchesAnyNames) {
  for (const std::string text : {"conv*", "fc?", "layer[34]"}) {
    EXPECT_TRUE(NamePattern(text).has_wildcard()) << text;
  }
  for (const std::string text : {"fc1", "{a,b}.w", "a\\*", "(fc1)"}) {
    EXPECT_FALSE(NamePattern(text).has_wildcard()) << text;
  }
}

TEST(NamePattern, RenamesByItsCaptures) {
  EXPECT_EQ(NamePattern("backbone.(.*)").renamed("backbone.conv1.w", "$1"), "conv1.w");
  EXPECT_EQ(NamePattern("(*).layer.([0-9]).(*)").renamed("bert.layer.3.q", "$3.b$2"), "q.b3");
  EXPECT_EQ(NamePattern("backbone.(*)").renamed("head.w", "$1"), std::nullopt);
  EXPECT_EQ(NamePattern("(a)(b)").num_captures(), 2U);
}

TEST(NamePattern, RejectsBracketsWithoutPartners) {
  for (const char* text : {"a[b", "{a,b", "(*", "a)", "a}", "{(a}", "a\\"}) {
    expect_user_error([&] { NamePattern{text}; }, "'" + std::string(text) + "'");
  }
  expect_user_error([] { NamePattern("[z-a]"); }, "pattern '[z-a]': the characters in []");
}

TEST(NamePattern, SuggestsOneThatMatches) {
  const std::vector<std::string> names = {"block0.attention.qkv.w", "block0.fc.w", "head.w",
                                          "block10.attention_out.w"};
  EXPECT_EQ(pattern_suggestion("attention.*", names),
            "; did you mean '*attention.*', which matches 'block0.attention.qkv.w'?");
  EXPECT_EQ(pattern_suggestion("attention.v", names),
            "; there are 'block0.attention.qkv.w', 'block10.attention_out.w'");
  EXPECT_EQ(pattern_suggestion("{haed,fx}", {&names[2], 1}), "; there are 'head.w'");
}

TEST(ParameterGroups, NameWhatTheyDoNotFind) {
  Program net("net");
  const Value x = net.data("x", {kBatch, 4}, f32);
  const Value loss = mean(square(linear(x, {.units = 2})));
  expect_user_error([&] { minimize(loss, SGD{}, {.groups = {{.pattern = "fx0", .lr_scale = 2}}}); },
                    "pattern 'fx0' matches no parameter; there are 'fc0.w', 'fc0.b'");
  expect_user_error(
      [&] { set_parameter_groups(net, {{.pattern = "fc0", .freeze_statistics = true}}); },
      "pattern 'fc0' matches no running statistics; there are none");
  expect_user_error([&] { set_parameter_groups(net, {{.pattern = "fc0", .lr_scale = -1}}); },
                    "group 'fc0': lr_scale must be a number of 0 or more, not -1");
  const double inf = std::numeric_limits<double>::infinity();
  expect_user_error([&] { set_parameter_groups(net, {{.pattern = "fc0", .decay_scale = inf}}); },
                    "group 'fc0': decay_scale must be a number of 0 or more, not inf");
}

}  // namespace
}  // namespace fluid::name_pattern_test
