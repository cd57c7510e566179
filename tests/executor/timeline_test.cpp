// Steps of calls and messages, worked out by hand.

#include "executor/tuning/timeline.h"

#include <gtest/gtest.h>

#include "ir/error.h"

namespace fluid::timeline_test {
namespace {

constexpr Link kTwo{.world = 2, .bytes_per_ms = 100};  // an all-reduce of b bytes: b / 100 ms

TEST(Timeline, OfOneMessageGoesRoundTheRing) {
  EXPECT_DOUBLE_EQ(collective_ms({.bytes = 100}, kTwo), 1);
  EXPECT_DOUBLE_EQ(collective_ms({.bytes = 100, .ring_passes = 1}, kTwo), 0.5);
  // 2 (N - 1) messages of b / N bytes.
  const Link four{.world = 4, .bytes_per_ms = 100, .latency_ms = 0.25};
  EXPECT_DOUBLE_EQ(collective_ms({.bytes = 800}, four), 6 * (0.25 + 2));
  EXPECT_DOUBLE_EQ(collective_ms({.bytes = 800}, {.world = 1, .latency_ms = 1}), 0);
}

TEST(Timeline, OfOneProcessIsWhatItComputes) {
  const TimedCall calls[] = {{.ms = 2}, {.ms = 3}};
  const Timeline t = simulate_timeline(calls, {});
  EXPECT_EQ(t.step, 5);
  EXPECT_EQ(t.computing, 5);
  EXPECT_EQ(t.exposed_ms(), 0);
  EXPECT_EQ(t.overlap_fraction(), 1);
  EXPECT_TRUE(t.collectives.empty());
}

TEST(Timeline, HidesAMessageBehindWhatDoesNotWaitForIt) {
  const TimedCall calls[] = {{.ms = 2},
                             {.started_collective = CollectiveTraffic{.bytes = 300}},
                             {.ms = 4},
                             {.ms = 1, .awaited_collectives = 1}};
  const Timeline t = simulate_timeline(calls, kTwo);
  ASSERT_EQ(t.collectives.size(), 1U);
  EXPECT_DOUBLE_EQ(t.collectives[0].ready, 2);
  EXPECT_DOUBLE_EQ(t.collectives[0].begin, 2);
  EXPECT_DOUBLE_EQ(t.collectives[0].end, 5);
  EXPECT_DOUBLE_EQ(t.step, 7);
  EXPECT_DOUBLE_EQ(t.communicating, 3);
  EXPECT_DOUBLE_EQ(t.exposed_ms(), 0);
  EXPECT_DOUBLE_EQ(t.overlap_fraction(), 1);
}

TEST(Timeline, SendsOneMessageAfterTheOther) {
  const TimedCall calls[] = {{.ms = 1},
                             {.started_collective = CollectiveTraffic{.bytes = 400}},
                             {.ms = 1},
                             {.started_collective = CollectiveTraffic{.bytes = 200}},
                             {.ms = 2, .awaited_collectives = 1},
                             {.ms = 1, .awaited_collectives = 2}};
  const Timeline t = simulate_timeline(calls, kTwo);
  ASSERT_EQ(t.collectives.size(), 2U);
  // The first collective is in flight from 1 to 5, so the second, ready at 2, waits until 5.
  EXPECT_DOUBLE_EQ(t.collectives[0].end, 5);
  EXPECT_DOUBLE_EQ(t.collectives[1].ready, 2);
  EXPECT_DOUBLE_EQ(t.collectives[1].begin, 5);
  EXPECT_DOUBLE_EQ(t.collectives[1].end, 7);
  // Computing waits from 2 to 5; what it does until 7 needs the first message alone.
  EXPECT_DOUBLE_EQ(t.step, 8);
  EXPECT_DOUBLE_EQ(t.computing, 5);
  EXPECT_DOUBLE_EQ(t.communicating, 6);
  EXPECT_DOUBLE_EQ(t.exposed_ms(), 3);
  EXPECT_DOUBLE_EQ(t.overlap_fraction(), 0.5);
}

TEST(Timeline, EndsWhenTheLastMessageIsThere) {
  const TimedCall calls[] = {{.ms = 1}, {.started_collective = CollectiveTraffic{.bytes = 100}}};
  EXPECT_DOUBLE_EQ(simulate_timeline(calls, kTwo).step, 2);
  EXPECT_DOUBLE_EQ(simulate_timeline(calls, kTwo).overlap_fraction(), 0);
}

TEST(Timeline, KnowsOnlyMessagesThatWereSent) {
  const TimedCall calls[] = {{.ms = 1, .awaited_collectives = 1},
                             {.started_collective = CollectiveTraffic{.bytes = 100}}};
  EXPECT_THROW(simulate_timeline(calls, kTwo), InternalError);
}

}  // namespace
}  // namespace fluid::timeline_test
