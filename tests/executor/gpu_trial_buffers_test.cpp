// Where a library's task is tried while the memory it belongs in holds what is needed.

#include <gtest/gtest.h>

#include <cstdint>

#include "executor/gpu_libraries/gpu_trial_memory.h"

namespace fluid::gpu_trial_buffers_test {
namespace {

std::span<std::byte> at(uintptr_t begin, size_t bytes) {
  return {reinterpret_cast<std::byte*>(begin), bytes};
}

uintptr_t begin_of(const TrialBuffer& buffer) {
  return reinterpret_cast<uintptr_t>(buffer.memory.data());
}

TEST(GpuTrialBuffers, WhatIsNeededLiesElsewhere) {
  std::vector<TrialBuffer> buffers = {{.memory = at(0x9000, 500), .preserve = true},
                                      {.memory = at(0x1400, 0x100)},
                                      {.memory = at(0x1100, 0x80)},
                                      {.memory = at(0xA000, 500), .preserve = true}};
  move_preserved_buffers(buffers, at(0x1080, 0x1000));
  EXPECT_EQ(begin_of(buffers[0]), 0x1200U) << "between the others, from a multiple of 256 on";
  EXPECT_EQ(begin_of(buffers[1]), 0x1400U);
  EXPECT_EQ(begin_of(buffers[2]), 0x1100U);
  EXPECT_EQ(begin_of(buffers[3]), 0x1500U) << "behind them";
  for (const TrialBuffer& buffer : buffers) EXPECT_FALSE(buffer.preserve);
  EXPECT_EQ(buffers[3].memory.size(), 500U);
}

TEST(GpuTrialBuffers, WhatHasNoRoomStaysAndIsNeeded) {
  std::vector<TrialBuffer> buffers = {{.memory = at(0x9000, 500), .preserve = true},
                                      {.memory = at(0x1100, 0x100)},
                                      {.memory = at(0xA000, 200), .preserve = true}};
  move_preserved_buffers(buffers, at(0x1000, 0x200 + 499));
  EXPECT_EQ(begin_of(buffers[0]), 0x9000U);
  EXPECT_TRUE(buffers[0].preserve);
  EXPECT_EQ(begin_of(buffers[2]), 0x1000U);
  EXPECT_FALSE(buffers[2].preserve);
  std::vector<TrialBuffer> all = {{.memory = at(0x9000, 500), .preserve = true}};
  move_preserved_buffers(all, {});
  EXPECT_TRUE(all.front().preserve);
}

}  // namespace
}  // namespace fluid::gpu_trial_buffers_test
