#include "executor/device/half_arrays.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "ir/tensor.h"

namespace fluid::half_arrays_test {
namespace {

constexpr size_t kHalves = 1 << 16;

/// The values of each half, of the midpoints between neighbours, and of the floats beside these.
std::vector<float> interesting_floats(DType half) {
  std::vector<float> values = {1e-45f, 3e38f, -3e38f, 65519, 65520, 65521};
  for (uint32_t bits = 0; bits + 1 < kHalves; ++bits) {
    const float a = half_to_float(static_cast<uint16_t>(bits), half);
    const float b = half_to_float(static_cast<uint16_t>(bits + 1), half);
    const float middle = a / 2 + b / 2;
    for (const float v : {a, middle, std::nextafter(middle, a), std::nextafter(middle, b)}) {
      values.push_back(v);
    }
  }
  return values;
}

/// `length` is no multiple of the eight elements that an instruction converts.
void expect_equal_to_single_conversions(DType half) {
  const std::vector<float> from = interesting_floats(half);
  const size_t length = from.size() - (from.size() % 8 == 0 ? 1 : 0);
  std::vector<uint16_t> halves(length);
  floats_to_halves(half, from.data(), halves.data(), length);
  for (size_t i = 0; i < length; ++i) {
    if (std::isnan(from[i])) {
      EXPECT_TRUE(std::isnan(half_to_float(halves[i], half))) << from[i];
    } else {
      EXPECT_EQ(halves[i], float_to_half(from[i], half)) << from[i];
    }
  }
  std::vector<float> back(length);
  halves_to_floats(half, halves.data(), back.data(), length);
  for (size_t i = 0; i < length; ++i) {
    const float expected = half_to_float(halves[i], half);
    EXPECT_TRUE(std::bit_cast<uint32_t>(back[i]) == std::bit_cast<uint32_t>(expected) ||
                (std::isnan(back[i]) && std::isnan(expected)))
        << halves[i];
  }
}

TEST(HalfArrays, ConvertF16AsSingleNumbersAreConverted) { expect_equal_to_single_conversions(f16); }

TEST(HalfArrays, ConvertBf16AsSingleNumbersAreConverted) {
  expect_equal_to_single_conversions(bf16);
}

}  // namespace
}  // namespace fluid::half_arrays_test
