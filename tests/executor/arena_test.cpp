// Tests the arena size of a real network.

#include <gtest/gtest.h>

#include "tests/support/small_programs.h"
#include "tests/support/training.h"

namespace fluid::arena_test {
namespace {

TEST(ArenaFigure, SeedNetworkTakesNoMoreThan22MiB) {
  const Program net(testing::conv_net());
  for (const bool libraries : {false, true}) {
    Executor exe(net, cpu(), {.batch = 128, .debug = {.libraries = libraries}});
    const MemoryUse use = exe.memory();
    EXPECT_LE(use.total, 22 << 20) << "libraries " << libraries << ", state " << use.state
                                   << ", slots " << use.slots << ", transient " << use.transient;
  }
}

}  // namespace
}  // namespace fluid::arena_test
