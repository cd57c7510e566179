#include "executor/comm/half_sum.h"

#include <gtest/gtest.h>

#include <cmath>

#include "ir/tensor.h"

namespace fluid::half_sum_test {
namespace {

/// Every half plus some: small and large ones, of both signs, subnormal, infinite, nan.
void expect_rounded_sums(DType dtype, void (*add)(void*, const void*, const void*, size_t)) {
  constexpr size_t kAll = 65536, kOdd = kAll - 3;  // not a multiple of a vector
  std::vector<uint16_t> every(kAll), other(kAll), sum(kAll);
  for (size_t i = 0; i < kAll; ++i) every[i] = static_cast<uint16_t>(i);
  for (uint32_t bits = 0; bits < kAll; bits += 509) {
    std::fill(other.begin(), other.end(), static_cast<uint16_t>(bits));
    sum = every;
    add(sum.data(), sum.data(), other.data(), kOdd);
    for (size_t i = 0; i < kOdd; ++i) {
      const float exact = half_to_float(every[i], dtype) + half_to_float(other[i], dtype);
      if (std::isnan(exact)) {
        ASSERT_TRUE(std::isnan(half_to_float(sum[i], dtype))) << i << " + " << bits;
      } else {
        ASSERT_EQ(sum[i], float_to_half(exact, dtype)) << i << " + " << bits;
      }
    }
    for (size_t i = kOdd; i < kAll; ++i) ASSERT_EQ(sum[i], every[i]) << "beyond the end";
  }
}

TEST(HalfSum, RoundsEverySumOfF16) { expect_rounded_sums(f16, comm::add_f16); }

TEST(HalfSum, RoundsEverySumOfBf16) { expect_rounded_sums(bf16, comm::add_bf16); }

}  // namespace
}  // namespace fluid::half_sum_test
