#pragma once

#include <cstdint>

namespace fluid {

/// Which steps of each prepared size are recorded, in memory that is taken when it is prepared.
struct ProfileOptions {
  int64_t warm_up = 3;  ///< the first steps are not recorded
  int64_t steps = 20;   ///< and so many are, at most: up to kMost
  static constexpr int64_t kMost = 10'000;
};

}  // namespace fluid
