#pragma once

#include <cstdint>
#include <random>
#include <string>

#include "ir/error.h"

namespace fluid {

/// Gives `read` every prefix of `bytes` (each `step` bytes) and `flips` copies with one changed
/// byte. It must return or throw UserError: anything else ends the test program.
template <class F>
void survives_damage(const std::string& bytes, F read, size_t step = 1, int flips = 1000) {
  int refused = 0;
  const auto attempt = [&](const std::string& damaged) {
    try {
      read(damaged);
    } catch (const UserError& e) {
      ++refused;
      EXPECT_EQ(std::string(e.what()).find('\n'), std::string::npos) << e.what();
    }
  };
  int prefixes = 0;
  for (size_t n = 0; n < bytes.size(); n += step, ++prefixes) attempt(bytes.substr(0, n));
  EXPECT_EQ(refused, prefixes) << "a truncated file was accepted";
  std::mt19937 random(1);
  for (int i = 0; i < flips; ++i) {
    std::string damaged = bytes;
    damaged[random() % damaged.size()] ^= static_cast<char>(1 + random() % 255);
    attempt(damaged);
  }
}

}  // namespace fluid
