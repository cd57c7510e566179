#include "ops/random/philox.h"

#include <gtest/gtest.h>

namespace fluid::philox_test {
namespace {

using Words = std::array<uint32_t, 4>;

// The known-answer vectors of Random123 1.14.0 (kat_vectors, "philox4x32 10").
TEST(Philox, KnownAnswers) {
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}),
            (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox4x32({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, BitsUseEveryWordOfTheirArguments) {
  const int64_t index = 0x85a308d3'243f6a88, seed = 0x299f31d0'a4093822;
  EXPECT_EQ(philox_bits(seed, 0x13198a2e, 0x03707344, index), 0xd16cfe09u);
}

}  // namespace
}  // namespace fluid::philox_test
