// Options without a sensible default do not compile when they are left out.

#include <gtest/gtest.h>

#include "frontend/layers.h"
#include "frontend/optimizers.h"
#include "ops/functions.h"

namespace fluid::required_test {
namespace {

/// Whether `T{}` compiles.
template <class T>
concept Empty = requires {
  T{};
};
template <class T>
concept EmptyBraces = requires(Value x) {
  T{.kernel = {}};
};

static_assert(!Empty<Linear> && !Empty<Conv2d> && !Empty<StepDecay> && !Empty<Cosine>);
static_assert(!Empty<MaxPool2dAttrs> && !Empty<AvgPool2dAttrs> && !Empty<AdaptiveAvgPool2dAttrs> &&
              !Empty<AdaptiveMaxPool2dAttrs> && !Empty<Resize2dAttrs> && !Empty<SliceAttrs> &&
              !Empty<CastAttrs> && !Empty<ReshapeAttrs> && !Empty<BroadcastToAttrs> &&
              !Empty<OneHotAttrs> && !Empty<FillAttrs>);
static_assert(!EmptyBraces<MaxPool2dAttrs>);
static_assert(Empty<BatchNorm> && Empty<Dropout> && Empty<Plateau> && Empty<SoftmaxAttrs>);

template <class T>
concept WithoutKernel = requires {
  T{.filters = 2};
};
template <class T>
concept WithoutFilters = requires {
  T{.kernel = 2};
};
template <class T>
concept WithBoth = requires {
  T{.filters = 2, .kernel = {2, 2}};
};
static_assert(!WithoutKernel<Conv2d> && !WithoutFilters<Conv2d> && WithBoth<Conv2d>);

template <class T>
concept WithoutStops = requires {
  T{.starts = {0}};
};
template <class T>
concept WithStops = requires {
  T{.starts = {0}, .stops = 1};
};
static_assert(!WithoutStops<SliceAttrs> && WithStops<SliceAttrs>);

TEST(Required, TakesOneNumberOrAList) {
  EXPECT_EQ(*MaxPool2dAttrs{.kernel = 2}.kernel, Ints(2));
  EXPECT_EQ(*MaxPool2dAttrs{.kernel = int64_t{2}}.kernel, Ints(2));
  EXPECT_EQ(*MaxPool2dAttrs({.kernel = {2, 3}}).kernel, (Ints{2, 3}));
  EXPECT_EQ(*Linear{.units = 3}.units, 3);
}

}  // namespace
}  // namespace fluid::required_test
