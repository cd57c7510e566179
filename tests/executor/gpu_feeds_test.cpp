// Feeds on their way to a GPU's slots, beside steps.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "executor/gpu/gpu_place_memory.h"
#include "executor/gpu/gpu_transfers.h"
#include "tests/support/errors.h"
#include "tests/support/host_gpu.h"

namespace fluid::gpu_feeds_test {
namespace {

using fluid::testing::host_gpu_table;
using fluid::testing::HostPace;

TEST(Stretches, JoinAcrossPaddingAlone) {
  const auto text = [](std::vector<ByteRange> stretches) {
    std::string all;
    for (const ByteRange& s : merge_ranges(std::move(stretches))) {
      all += std::to_string(s.offset) + "+" + std::to_string(s.bytes) + " ";
    }
    return all;
  };
  EXPECT_EQ(text({}), "");
  EXPECT_EQ(text({{64, 4}, {0, 4}}), "0+68 ");
  EXPECT_EQ(text({{128, 4}, {0, 4}}), "0+4 128+4 ");
  EXPECT_EQ(text({{192, 8}, {0, 64}, {64, 65}}), "0+200 ");
}

/// More pending writes than staging cells; none is copied before the host waits.
TEST(GpuPlaceMemory, KeepsSmallWritesUntilTheyAreCopied) {
  constexpr int64_t kWrites = 20'000;
  fluid::testing::reset_host_gpu({.pace = HostPace::late});
  const auto open = std::make_shared<const OpenGpu>(host_gpu_table(), 0);
  GpuPlaceMemory memory(open, {.state = kWrites * int64_t{sizeof(int64_t)}});
  for (int64_t i = 0; i < kWrites; ++i) {
    memory.write(memory.addresses().state + i * int64_t{sizeof i}, &i, sizeof i);
  }
  std::vector<int64_t> found(kWrites), expected(kWrites);
  std::iota(expected.begin(), expected.end(), 0);
  memory.read(found.data(), memory.addresses().state, memory.regions().state);
  EXPECT_TRUE(found == expected);
}

/// A GPU with more memory than a host can have; nothing of it is touched.
TEST(GpuPlaceMemory, SaysThatTheHostHasNoRoomForWhatIsKept) {
  constexpr int64_t kMuch = int64_t{1} << 60;
  fluid::testing::reset_host_gpu({});
  FluidGpuTable vast = host_gpu_table();
  vast.allocate = [](FluidGpu*, int64_t, void** address) {
    *address = reinterpret_cast<void*>(uintptr_t{4096});
    return fluid_gpu_ok;
  };
  vast.release = [](FluidGpu*, void*) { return fluid_gpu_ok; };
  vast.fill = [](FluidGpuStream*, void*, uint8_t, int64_t) { return fluid_gpu_ok; };
  GpuPlaceMemory memory(std::make_shared<const OpenGpu>(vast, 0), {.state = kMuch});
  EXPECT_TRUE(
      states(error_of<DeviceError>([&] { memory.reallocate({.state = kMuch, .transient = 64}); }),
             "the host has no 1073741824.00 GiB of memory, where a GPU's variables are saved while "
             "its arena grows: prepare the largest step first, or free host memory"));
  EXPECT_FALSE(memory.is_lost());
}

/// The contents of both feed slots during a step, while the next step's feeds are copied to one of
/// them.
struct Seen {
  static inline std::array<std::byte*, 2> slots = {};
  static inline std::vector<int> of[2];
  static void look(const FluidGpuLaunch&) {
    for (const size_t slot : {0, 1}) of[slot].push_back(static_cast<int>(*slots[slot]));
  }
};

constexpr ByteRange kFeed{0, 64};

/// Steps that read slot `reads[i]`, whose feeds come to slot `fed[i]` where it is not negative. As
/// in a session the step before the last is done by then.
void run_steps(uint64_t seed, std::vector<int> fed, std::vector<int> reads) {
  fluid::testing::reset_host_gpu({.pace = HostPace::late, .seed = seed});
  const auto open = std::make_shared<const OpenGpu>(host_gpu_table(), 0);
  const GpuModule module =
      open->gpu.load_module(fluid::testing::host_gpu_text({{"look", Seen::look}}));
  FluidGpuKernel* look = open->gpu.kernel(module, "look");
  GpuPlaceMemory memory(open, {.feeds = 64, .feed_slots = 2});
  Seen::slots = memory.addresses().slots.feeds;
  const GpuFeeds feeds(open);
  std::vector<GpuEvent> ends;
  int value = 0;
  for (size_t step = 0; step < reads.size(); ++step) {
    if (step > 1) open->gpu.synchronize(ends[step - 2]);
    if (fed[step] >= 0) {
      std::memset(memory.addresses().host_slots.feeds[static_cast<size_t>(fed[step])], ++value, 64);
      feeds.copy(memory.addresses(), fed[step], {&kFeed, 1});
    }
    open->gpu.launch(open->stream, look, 1, 1, {});
    feeds.record_slot_read(reads[step]);
    ends.push_back(open->gpu.create_event());
    open->gpu.record(ends.back(), open->stream);
  }
  open->gpu.synchronize(open->stream);
}

/// The first step never waits for the second one's feeds, nor these for it; a step whose slot they
/// go to is waited for.
TEST(GpuFeeds, GoBesideTheStepsThatDoNotReadTheirSlot) {
  std::vector<int> beside;
  for (uint64_t seed = 0; seed < 40; ++seed) {
    for (auto& seen : Seen::of) seen.clear();
    run_steps(seed, {0, 1}, {0, 1});
    ASSERT_EQ(Seen::of[0], (std::vector{1, 1}));
    ASSERT_EQ(Seen::of[1][1], 2);
    beside.push_back(Seen::of[1][0]);
  }
  EXPECT_NE(std::ranges::find(beside, 0), beside.end()) << "after the first step";
  EXPECT_NE(std::ranges::find(beside, 2), beside.end()) << "before it";
}

TEST(GpuFeeds, WaitForTheStepThatReadsTheirSlot) {
  for (uint64_t seed = 0; seed < 40; ++seed) {
    for (auto& seen : Seen::of) seen.clear();
    run_steps(seed, {0, -1, 0}, {0, 0, 0});
    EXPECT_EQ(Seen::of[0], (std::vector{1, 1, 2}));
  }
}

}  // namespace
}  // namespace fluid::gpu_feeds_test
