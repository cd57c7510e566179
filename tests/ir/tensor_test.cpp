#include "ir/tensor.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "tests/support/errors.h"

namespace fluid::tensor_test {
namespace {

using Shape64 = std::vector<int64_t>;

TEST(Tensor, OwnsZeroedAlignedMemory) {
  Tensor t(f32, {3, 5});
  EXPECT_EQ(t.numel(), 15);
  EXPECT_EQ(t.bytes(), 60);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(t.data()) % 64, 0u);
  for (float v : t.as<float>()) EXPECT_EQ(v, 0.0f);
  EXPECT_EQ(t.str(), "f32[3, 5]");
}

TEST(Tensor, EmptyAndScalar) {
  EXPECT_EQ(Tensor(f64, {0, int64_t{1} << 62, int64_t{1} << 62}).numel(), 0);
  EXPECT_EQ(Tensor(f64, {}).numel(), 1);
  EXPECT_EQ(Tensor(f64, {}).item(), 0.0);
}

TEST(Tensor, CopyOwnsAndViewDoesNot) {
  std::vector<int64_t> values = {1, 2, 3};
  Tensor view = Tensor::view(i64, {3}, values.data());
  Tensor copy = view.copy();
  values[1] = 7;
  EXPECT_EQ(view.at(1), 7.0);
  EXPECT_EQ(copy.at(1), 2.0);
}

TEST(Tensor, CastKeepsLargeIntegers) {
  const int64_t big = (int64_t{1} << 62) + 1;
  const Tensor t = Tensor::of<int64_t>({1}, std::vector<int64_t>{big});
  EXPECT_EQ(t.cast(i64).as<int64_t>()[0], big);
  EXPECT_EQ(t.cast(boolean).as<bool>()[0], true);
}

TEST(Tensor, CastOfFloatsSaturates) {
  const Tensor t = Tensor::of<double>({4}, std::vector<double>{1e30, -1e30, NAN, -2.9});
  const Tensor n = t.cast(i32);
  EXPECT_EQ(n.as<int32_t>()[0], INT32_MAX);
  EXPECT_EQ(n.as<int32_t>()[1], INT32_MIN);
  EXPECT_EQ(n.as<int32_t>()[2], 0);
  EXPECT_EQ(n.as<int32_t>()[3], -2);
}

TEST(Tensor, HalfRoundTripsEveryBitPattern) {
  for (DType dtype : {f16, bf16}) {
    for (uint32_t bits = 0; bits < 65536; ++bits) {
      const float value = half_to_float(static_cast<uint16_t>(bits), dtype);
      if (std::isnan(value)) {
        EXPECT_TRUE(std::isnan(half_to_float(float_to_half(value, dtype), dtype)));
      } else {
        ASSERT_EQ(float_to_half(value, dtype), bits);
      }
    }
  }
}

TEST(Tensor, HalfRoundsToNearestEven) {
  for (DType dtype : {f16, bf16}) {
    const uint32_t infinity = dtype == f16 ? 0x7c00 : 0x7f80;
    for (uint32_t bits = 0; bits + 1 < infinity; ++bits) {
      const float low = half_to_float(static_cast<uint16_t>(bits), dtype);
      const float high = half_to_float(static_cast<uint16_t>(bits + 1), dtype);
      const float middle = low + (high - low) / 2;
      ASSERT_EQ(float_to_half(middle, dtype), bits + (bits & 1));
      ASSERT_EQ(float_to_half(std::nextafter(middle, high), dtype), bits + 1);
      ASSERT_EQ(float_to_half(-std::nextafter(middle, 0.0f), dtype), bits | 0x8000u);
    }
  }
  EXPECT_EQ(float_to_half(65519.99f, f16), 0x7bff);
  EXPECT_EQ(float_to_half(65520.0f, f16), 0x7c00);
}

TEST(Tensor, DoubleToHalfRoundsOnce) {
  const double just_above_the_middle = 1.0 + 0x1p-11 + 0x1p-40;
  const Tensor t = Tensor::of<double>({1}, std::vector<double>{just_above_the_middle});
  EXPECT_EQ(t.cast(f16).as<uint16_t>()[0], 0x3c01);
}

TEST(Tensor, MistakesAreNamed) {
  expect_user_error([] { Tensor(f32, {-1, 2}); }, "tensor f32[-1, 2] has a negative extent");
  expect_user_error(
      [] {
        Tensor(f32, {int64_t{1} << 40, int64_t{1} << 40});
      },
      "is larger than a 64-bit size");
  expect_user_error([] { Tensor(f64, {int64_t{1} << 61}); }, "is larger than a 64-bit size");
  expect_user_error([] { Tensor(f32, {int64_t{1} << 58}); }, "no memory for tensor");
  expect_user_error([] { Tensor(f32, {2}).item(); }, "tensor f32[2] asked for its single element");
  expect_user_error([] { Tensor(f32, {2}).at(2); }, "tensor f32[2] indexed out of range");
  expect_user_error([] { Tensor(f32, {2}).as<double>(); }, "tensor f32[2] read as another dtype");
  expect_user_error([] { Tensor(f32, {2}).integer(0); }, "tensor f32[2] read as integers");
  expect_user_error([] { Tensor::of<float>({3}, std::vector<float>{1}); },
                    "tensor f32[3] given another number of values");
}

TEST(Batch, FindsColumnsByName) {
  Batch batch;
  batch.columns.emplace_back("x", Tensor(f32, {2}));
  EXPECT_NE(batch.find("x"), nullptr);
  EXPECT_EQ(batch.find("y"), nullptr);
}

}  // namespace
}  // namespace fluid::tensor_test
