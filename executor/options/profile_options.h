#pragma once

#include <cstdint>

namespace fluid {

/// Which steps of each prepared size are recorded. prepare() allocates the memory for them.
struct ProfileOptions {
  int64_t warm_up = 3;  ///< the first steps are not recorded
  int64_t steps = 20;   ///< recorded after them, at most; up to kMost
  static constexpr int64_t kMost = 10'000;
};

}  // namespace fluid
