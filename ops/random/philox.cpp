#include "ops/random/philox.h"

namespace fluid {
namespace {

uint32_t low(int64_t x) { return static_cast<uint32_t>(static_cast<uint64_t>(x)); }
uint32_t high(int64_t x) { return static_cast<uint32_t>(static_cast<uint64_t>(x) >> 32); }

}  // namespace

std::array<uint32_t, 4> philox4x32(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key) {
  constexpr int kRounds = 10;
  constexpr uint64_t kMultiplier0 = 0xD2511F53, kMultiplier1 = 0xCD9E8D57;
  constexpr uint32_t kWeyl0 = 0x9E3779B9, kWeyl1 = 0xBB67AE85;
  for (int round = 0; round < kRounds; ++round) {
    const uint64_t product0 = kMultiplier0 * counter[0];
    const uint64_t product1 = kMultiplier1 * counter[2];
    counter = {static_cast<uint32_t>(product1 >> 32) ^ counter[1] ^ key[0],
               static_cast<uint32_t>(product1),
               static_cast<uint32_t>(product0 >> 32) ^ counter[3] ^ key[1],
               static_cast<uint32_t>(product0)};
    key = {key[0] + kWeyl0, key[1] + kWeyl1};
  }
  return counter;
}

uint32_t philox_bits(int64_t seed, int64_t counter, int64_t stream, int64_t index) {
  return philox4x32({low(index), high(index), low(counter), low(stream)},
                    {low(seed), high(seed)})[0];
}

}  // namespace fluid
