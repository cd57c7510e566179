#include "ir/type.h"

#include <gtest/gtest.h>

#include "ir/length.h"
#include "ir/parse.h"
#include "tests/support/errors.h"

namespace fluid::type_test {
namespace {

Dim dim(int64_t size, bool batch, int length_power) {
  Dim d(size);
  d.batch = batch;
  d.length_power = static_cast<uint8_t>(length_power);
  return d;
}

TEST(Dim, PrintsItsFactors) {
  EXPECT_EQ(Dim(1).str(), "1");
  EXPECT_EQ(kBatch.str(), "?");
  EXPECT_EQ(kLength.str(), "L");
  EXPECT_EQ(dim(16, false, 1).str(), "16L");
  EXPECT_EQ(dim(1, true, 1).str(), "?L");
  EXPECT_EQ(dim(4, true, 2).str(), "4?LL");
  EXPECT_EQ(dim(0, false, 1).str(), "0L");
}

TEST(Dim, ReplacesTheLength) {
  EXPECT_EQ(kLength.at_length(8), Dim(8));
  EXPECT_EQ(dim(4, true, 2).at_length(3), Dim::of_batch(36));
  EXPECT_EQ(dim(4, true, 2).at_length(3).at(5), 180);
  EXPECT_EQ(kBatch.at_length(8), kBatch);
  expect_user_error([] { dim(2, false, 2).at_length(int64_t{1} << 40); },
                    "a shape has more elements than a 64-bit integer counts");
}

TEST(Dim, IsSymbolicOrConstant) {
  EXPECT_TRUE(Dim(8).is_constant());
  EXPECT_FALSE(kBatch.is_constant());
  EXPECT_FALSE(kLength.is_constant());
  EXPECT_FALSE(kLength.is(1)) << "a length is no extent that broadcasts";
  EXPECT_NE(kLength, Dim(1));
  EXPECT_NE(kLength, kBatch);
  EXPECT_THROW(kLength.at(1), InternalError) << "used before the length is set";
}

TEST(Shape, MultipliesBatchAndLengths) {
  const Shape scores = {kBatch, 4, kLength, kLength};
  EXPECT_EQ(scores.numel(), dim(4, true, 2));
  EXPECT_TRUE(scores.has_length());
  EXPECT_FALSE(scores.is_constant());
  EXPECT_EQ(scores.at_length(3), (Shape{kBatch, 4, 3, 3}));
  EXPECT_EQ(scores.at_length(3).numel_at(2), 72);
  EXPECT_FALSE((Shape{kBatch, 4}).has_length());
  EXPECT_TRUE((Shape{2, 4}).is_constant());
}

TEST(Type, ReplacesTheLength) {
  const Type type{f32, {kBatch, kLength, 2}, {}};
  EXPECT_EQ(type.at_length(8).str(), "f32[?, 8, 2]");
  EXPECT_EQ(type.at_length(8).bytes_at(3), 192);
  EXPECT_THROW(type.bytes_at(3), InternalError) << "used before the length is set";
}

TEST(Program, HasALengthInTypesOrAttributes) {
  const auto has = [](const std::string& ops) {
    return ir::has_length(*ir::parse("program @p { " + ops + " }", "t.fir"));
  };
  EXPECT_FALSE(has("%a = a {t = f32[?]} : f32[8]"));
  EXPECT_TRUE(has("%a = a : f32[?, L]"));
  EXPECT_TRUE(has("%a = a {t = f32[L]} : f32[]"));
  EXPECT_TRUE(has("%a = a : f32[] graph @g { %b = b : f32[L] }"));
}

}  // namespace
}  // namespace fluid::type_test
