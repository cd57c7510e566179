#pragma once

#include <cstdlib>

namespace fluid::testing {

/// Whether tests take their time, as `scripts/test --all` has it: every seed, file and
/// architecture, where others look at a sample. Suites that run then alone are instantiated as
/// `Long`.
inline bool is_full_run() { return std::getenv("FLUID_TEST_ALL") != nullptr; }

}  // namespace fluid::testing
