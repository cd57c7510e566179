#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <thread>

#include "executor/cpu/host_memory.h"
#include "executor/cpu/plan_guard.h"
#include "executor/device/variables.h"
#include "executor/host/arena.h"
#include "tests/support/errors.h"

namespace fluid::memory_test {
namespace {

/// Waits until `resident` returns at least `bytes`. Returns false if it still returns 0 after 10 s.
bool becomes_resident(const std::function<int64_t()>& resident, int64_t bytes) {
  const auto begin = std::chrono::steady_clock::now();
  const auto waited = [&] { return std::chrono::steady_clock::now() - begin; };
  while (resident() < bytes && waited() < std::chrono::seconds(resident() == 0 ? 10 : 60)) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return resident() > 0;
}

TEST(Arena, IsZeroedAndAligned) {
  Arena arena(5 << 20);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(arena.data()) % (2 << 20), 0u);
  for (int64_t i = 0; i < arena.size(); i += 4096) EXPECT_EQ(arena.data()[i], std::byte{0});
  arena.data()[arena.size() - 1] = std::byte{1};
  Arena moved = std::move(arena);
  EXPECT_EQ(moved.data()[moved.size() - 1], std::byte{1});
  EXPECT_NE(Arena(0).data(), nullptr);
}

TEST(Arena, CountsResidentPages) {
  Arena arena(1 << 20);
  EXPECT_EQ(arena.resident_bytes(), 0);
  arena.data()[0] = arena.data()[arena.size() - 1] = std::byte{1};
  EXPECT_GE(arena.resident_bytes(), 2 * sysconf(_SC_PAGESIZE));
}

TEST(Arena, IsBackedByMemoryBeforeItsFirstUse) {
  Arena arena(64 << 20);
  EXPECT_EQ(arena.resident_bytes(), 0);
  arena.prefault(0, 24 << 20);
  if (!becomes_resident([&] { return arena.resident_bytes(); }, 24 << 20)) {
    GTEST_SKIP() << "the system cannot prefault memory";
  }
  EXPECT_EQ(arena.resident_bytes(), 24 << 20);
  arena.shrink((20 << 20) + 1);
  EXPECT_EQ(arena.size(), (20 << 20) + 1);
  EXPECT_EQ(arena.data()[20 << 20], std::byte{0});
}

TEST(Arena, IsFreedWhileItIsPrefaulted) {
  for (int i = 0; i < 20; ++i) {
    Arena arena(64 << 20);
    arena.prefault(0, 64 << 20);
    Arena moved = std::move(arena);
    moved.data()[0] = std::byte{1};
    if (i % 2 == 0) moved.shrink(1 << 20);
  }
}

TEST(HostMemory, TakesThePreparedMemoryOnce) {
  const RegionSizes large{.state = 32 << 20, .transient = 64 << 20};
  HostMemory first({});
  first.prepare_for(large, false);
  first.prepare_for({.state = 1 << 20}, false);
  if (!becomes_resident([&] { return first.prepared_bytes(); }, large.total_bytes())) {
    GTEST_SKIP() << "the system cannot prefault memory";
  }
  const auto second = first.reallocate(large);
  EXPECT_EQ(second->resident_bytes(), large.total_bytes());
  EXPECT_EQ(first.prepared_bytes(), 0);
  const RegionSizes larger{.state = 32 << 20, .transient = 128 << 20};
  second->prepare_for(larger, false);
  EXPECT_EQ(static_cast<HostMemory&>(*second).prepared_bytes(), 0) << "both would be resident";
  EXPECT_LT(second->reallocate(larger)->resident_bytes(), larger.total_bytes() / 2);
}

TEST(HostMemory, PreparesNoStateThatFilesProvide) {
  const RegionSizes regions{.state = 32 << 20, .transient = 16 << 20};
  HostMemory memory({});
  memory.prepare_for(regions, true);
  if (!becomes_resident([&] { return memory.prepared_bytes(); }, regions.transient)) {
    GTEST_SKIP() << "the system cannot prefault memory";
  }
  EXPECT_EQ(memory.prepared_bytes(), regions.transient);
}

TEST(HostMemory, PreparedMemoryMayBeTooSmall) {
  const RegionSizes small{.transient = 64 << 20}, large{.transient = 256 << 20};
  HostMemory first({});
  first.prepare_for(small, false);
  EXPECT_EQ(first.reallocate(large)->regions(), large);
  first.prepare_for(small, false);
  first.prepare_for({}, false);
  EXPECT_EQ(first.prepared_bytes(), 0);
  first.prepare_for({.transient = int64_t{1} << 50}, false);
  EXPECT_EQ(first.prepared_bytes(), 0);
}

TEST(Arena, SaysWhatTheSystemRefuses) { EXPECT_THROW(Arena(int64_t{1} << 60), DeviceError); }

TEST(Variables, HaveOneAddressEach) {
  Variables variables;
  variables.add("w", Type{f32, {3}, {}}, std::nullopt);
  variables.add("w.m", Type{f64, {17}, {}}, VariableKind::optimizer);
  EXPECT_FALSE(variables.at("w").is_recorded());
  variables.add("w", Type{f32, {3}, {}}, VariableKind::recorded);
  variables.add("w", Type{f32, {3}, {}}, std::nullopt);
  ASSERT_EQ(variables.all().size(), 2u);
  EXPECT_EQ(variables.at("w.m").offset, 64);
  EXPECT_EQ(variables.bytes(), 64 + 192);
  EXPECT_TRUE(variables.at("w").is_recorded());
  EXPECT_THROW(variables.add("w", Type{f64, {3}, {}}, std::nullopt), InternalError);
  expect_user_error([&] { variables.at("w.n"); }, "no variable 'w.n' (did you mean 'w.m'?)");
}

/// Two values: [0, 64) lives at ops 0 to 1, [64, 128) at ops 1 to 2.
class PlanGuardTest : public ::testing::Test {
 protected:
  PlanGuardTest() {
    ir::Graph& graph = program_.main();
    for (int i = 0; i < 3; ++i) graph.append("op", {}, {}, {Type{f32, {16}, {}}});
    plan_.transient = 128;
    plan_.values[graph.ops[0]->result()] = {.offset = 0, .bytes = 64, .first = 0, .last = 1};
    plan_.values[graph.ops[1]->result()] = {.offset = 64, .bytes = 64, .first = 1, .last = 2};
  }
  const ir::Op& op(size_t i) { return *program_.main().ops[i]; }

  ir::Program program_{"p"};
  MemoryPlan plan_;
  std::vector<std::byte> memory_{128};
};

TEST_F(PlanGuardTest, AcceptsWritesToLiveMemoryAndClearsTheDead) {
  PlanGuard guard(plan_, 3);
  guard.bind(memory_.data());
  guard.begin_step();
  EXPECT_EQ(memory_[0], std::byte{0xFF});
  memory_[3] = std::byte{1};
  guard.check_after_op(0, op(0));
  memory_[70] = std::byte{2};
  guard.check_after_op(1, op(1));
  EXPECT_EQ(memory_[3], std::byte{0xFF}) << "dead after op 1";
  EXPECT_EQ(memory_[70], std::byte{2});
}

TEST_F(PlanGuardTest, TakesAnEmptyValuePastTheEndForNoMemory) {
  plan_.values[program_.main().ops[2]->result()] = {.offset = 192, .bytes = 0, .last = 2};
  memory_.resize(192);  // the memory beyond belongs to others
  PlanGuard guard(plan_, 3);
  guard.bind(memory_.data());
  guard.begin_step();
  for (int i = 0; i < 3; ++i) guard.check_after_op(i, op(static_cast<size_t>(i)));
  EXPECT_EQ(memory_[130], std::byte{0});
}

TEST_F(PlanGuardTest, FindsAWriteToDeadMemory) {
  PlanGuard guard(plan_, 3);
  guard.bind(memory_.data());
  guard.begin_step();
  memory_[64] = std::byte{0};
  EXPECT_THROW(guard.check_after_op(0, op(0)), InternalError);
}

}  // namespace
}  // namespace fluid::memory_test
