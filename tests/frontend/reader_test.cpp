#include "frontend/readers/reader.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <numeric>

#include "tests/support/errors.h"

namespace fluid::reader_test {
namespace {

/// Sample i is (i, {2 i, 2 i + 1}).
Dataset counting(int64_t n) {
  Dataset data;
  std::vector<int64_t> ids(static_cast<size_t>(n));
  std::iota(ids.begin(), ids.end(), 0);
  std::vector<int32_t> pairs(2 * static_cast<size_t>(n));
  std::iota(pairs.begin(), pairs.end(), 0);
  data.columns.emplace_back("id", Tensor::of<int64_t>({n}, ids));
  data.columns.emplace_back("pair", Tensor::of<int32_t>({n, 2}, pairs));
  return data;
}

std::vector<int64_t> epoch_of(Reader& reader) {
  std::vector<int64_t> ids;
  for (const Batch& batch : reader) {
    EXPECT_EQ(batch.find("id")->shape(), (std::vector<int64_t>{batch.size}));
    EXPECT_EQ(batch.find("pair")->shape(), (std::vector<int64_t>{batch.size, 2}));
    for (int64_t i = 0; i < batch.size; ++i) {
      ids.push_back(batch.find("id")->as<int64_t>()[static_cast<size_t>(i)]);
      EXPECT_EQ(batch.find("pair")->at(2 * i + 1), 2.0 * static_cast<double>(ids.back()) + 1);
    }
  }
  return ids;
}

TEST(Reader, HandsOutEverySampleOnceInOrder) {
  Reader reader(counting(10), {.batch = 4});
  EXPECT_EQ(reader.batches(), 3);
  EXPECT_EQ(reader.batch_sizes(), (std::vector<int64_t>{4, 2}));
  std::vector<int64_t> all(10);
  std::iota(all.begin(), all.end(), 0);
  for (int epoch = 0; epoch < 3; ++epoch) EXPECT_EQ(epoch_of(reader), all);
  EXPECT_EQ(reader.position(), (ReaderPosition{3, 0}));
}

TEST(Reader, DropsTheLastBatchOnRequest) {
  Reader reader(counting(10), {.batch = 4, .drop_last = true});
  EXPECT_EQ(reader.samples(), 8);
  EXPECT_EQ(reader.batch_sizes(), (std::vector<int64_t>{4}));
  EXPECT_EQ(epoch_of(reader).size(), 8u);
  EXPECT_EQ(epoch_of(reader).front(), 0);
}

TEST(Reader, ShufflesBySeedAndEpoch) {
  Reader first(counting(100), {.batch = 7, .shuffle_seed = 3});
  Reader second(counting(100), {.batch = 13, .shuffle_seed = 3});
  Reader other(counting(100), {.batch = 7, .shuffle_seed = 4});
  const std::vector<int64_t> a = epoch_of(first);
  EXPECT_EQ(a, epoch_of(second)) << "the order depends on the batch size";
  EXPECT_NE(a, epoch_of(other));
  EXPECT_NE(a, epoch_of(first)) << "two epochs have the same order";
  std::vector<int64_t> sorted = a;
  std::sort(sorted.begin(), sorted.end());
  for (int64_t i = 0; i < 100; ++i) EXPECT_EQ(sorted[static_cast<size_t>(i)], i);
}

TEST(Reader, GoesOnFromAPosition) {
  Reader straight(counting(50), {.batch = 8, .shuffle_seed = 1});
  epoch_of(straight);
  straight.next();
  straight.next();
  const ReaderPosition position = straight.position();
  EXPECT_EQ(position, (ReaderPosition{1, 16}));
  Reader resumed(counting(50), {.batch = 8, .shuffle_seed = 1});
  resumed.next();
  resumed.seek(position);
  EXPECT_EQ(resumed.position(), position);
  EXPECT_EQ(epoch_of(resumed), epoch_of(straight));
  EXPECT_EQ(epoch_of(resumed), epoch_of(straight));
  expect_user_error(
      [&] {
        resumed.seek({2, -8});
      },
      "the data cannot resume at sample -8 of epoch 2");
}

TEST(Reader, MovesOverTheEndOfAnEpoch) {
  Reader reader(counting(10), {.batch = 5});
  reader.next();
  reader.next();
  EXPECT_EQ(reader.position(), (ReaderPosition{1, 0}));
  reader.seek(reader.position());
  EXPECT_EQ(epoch_of(reader).size(), 10u) << "the end of the epoch before is still to come";
  reader.seek({4, 99});
  EXPECT_EQ(reader.position(), (ReaderPosition{5, 0}));
}

TEST(Reader, GoesOnWithAnotherBatchSize) {
  for (const bool shuffled : {false, true}) {
    const std::optional<uint64_t> seed = shuffled ? std::optional<uint64_t>(5) : std::nullopt;
    for (int64_t size : {7, 20, 60}) {  // unshuffled, the last one hands out all where it lies
      SCOPED_TRACE(size);
      Reader straight(counting(60), {.batch = 10, .shuffle_seed = seed});
      epoch_of(straight);
      straight.next();
      Reader resumed(counting(60), {.batch = size, .shuffle_seed = seed});
      resumed.next();
      resumed.seek(straight.position());
      const std::vector<int64_t> sizes = resumed.batch_sizes();
      EXPECT_NE(std::ranges::find(sizes, 50 % size), sizes.end());
      EXPECT_EQ(epoch_of(resumed), epoch_of(straight));
      EXPECT_EQ(resumed.position(), (ReaderPosition{2, 0}));
      EXPECT_EQ(epoch_of(resumed), epoch_of(straight));
    }
  }
}

TEST(Reader, DropsTheSmallerBatchAfterGoingOn) {
  Reader reader(counting(30), {.batch = 8, .drop_last = true});  // 24 an epoch
  reader.seek({1, 10});
  EXPECT_EQ(reader.batch_sizes(), (std::vector<int64_t>{8}));
  EXPECT_EQ(epoch_of(reader), (std::vector<int64_t>{10, 11, 12, 13, 14, 15, 16, 17}));
  EXPECT_EQ(reader.position(), (ReaderPosition{2, 0}));
  EXPECT_EQ(epoch_of(reader).size(), 24u);
  reader.seek({0, 20});
  EXPECT_EQ(epoch_of(reader).size(), 0u);
  EXPECT_EQ(epoch_of(reader).size(), 24u);
}

/// Returns the samples of an epoch of all ranks: global batches, with the shards in rank order.
/// Checks that the ranks agree on each batch.
std::vector<int64_t> epoch_of(std::vector<Reader>& ranks) {
  std::vector<int64_t> ids;
  while (true) {
    int64_t whole = 0, least = INT64_MAX, most = 0;
    const Batch* last = nullptr;
    for (Reader& rank : ranks) {
      const Batch* batch = rank.next();
      EXPECT_TRUE((batch != nullptr) == (last != nullptr) || &rank == &ranks.front());
      EXPECT_EQ(rank.position(), ranks.front().position());
      last = batch;
      if (batch == nullptr) continue;
      EXPECT_EQ(batch->first, whole);
      whole += batch->size;
      least = std::min(least, batch->size);
      most = std::max(most, batch->size);
      const std::vector<int64_t> sizes = rank.batch_sizes();
      EXPECT_NE(std::ranges::find(sizes, batch->size), sizes.end());
      EXPECT_EQ(batch->find("pair")->shape(), (std::vector<int64_t>{batch->size, 2}));
      for (const int64_t id : batch->find("id")->as<int64_t>()) ids.push_back(id);
      if (&rank == &ranks.back()) {
        EXPECT_EQ(batch->global_batch_size, whole);
      }
    }
    if (last == nullptr) return ids;
    EXPECT_LE(most - least, 1);
  }
}

std::vector<Reader> world_of(int world, int64_t samples, ReaderOptions options) {
  std::vector<Reader> ranks;
  for (int rank = 0; rank < world; ++rank) {
    options.rank = rank;
    options.world = world;
    ranks.emplace_back(counting(samples), options);
  }
  return ranks;
}

TEST(Reader, RanksShareEveryBatch) {
  for (int world : {2, 3, 4}) {
    for (const bool drop_last : {false, true}) {
      for (const bool shuffled : {false, true}) {
        // The last whole batch: none, one sample, one less than ranks, one more.
        for (int64_t more : {0, 1, world - 1, world + 1}) {
          SCOPED_TRACE(::testing::Message() << world << " ranks, " << more << " more, drop "
                                            << drop_last << ", shuffled " << shuffled);
          ReaderOptions options{.batch = 5, .drop_last = drop_last};
          if (shuffled) options.shuffle_seed = 9;
          const int64_t samples = 3 * 5 * world + more;
          std::vector<Reader> ranks = world_of(world, samples, options);
          options.batch *= world;
          Reader one(counting(samples), options);
          EXPECT_EQ(ranks.back().samples(), one.samples());
          EXPECT_EQ(ranks.back().batches(), one.batches());
          for (int epoch = 0; epoch < 2; ++epoch) EXPECT_EQ(epoch_of(ranks), epoch_of(one));
          EXPECT_EQ(ranks.front().position(), one.position());
        }
      }
    }
  }
}

TEST(Reader, ARankWithoutSamplesGetsAnEmptyBatch) {
  for (int64_t batch : {0, 1, 100}) {
    std::vector<Reader> ranks = world_of(4, 3, {.batch = batch});
    EXPECT_EQ(ranks[0].batch_sizes(), (std::vector<int64_t>{1}));
    EXPECT_EQ(ranks[3].batch_sizes(), (std::vector<int64_t>{0}));
    const Batch* none = ranks[3].next();
    ASSERT_NE(none, nullptr);
    EXPECT_EQ(none->size, 0);
    EXPECT_EQ(none->first, 3);
    EXPECT_EQ(none->global_batch_size, 3);
    EXPECT_EQ(none->find("pair")->shape(), (std::vector<int64_t>{0, 2}));
    EXPECT_EQ(ranks[3].next(), nullptr);
  }
}

TEST(Reader, AnotherWorldGoesOn) {
  for (const bool shuffled : {false, true}) {
    ReaderOptions options{.batch = 4};
    if (shuffled) options.shuffle_seed = 2;
    std::vector<Reader> two = world_of(2, 50, options), three = world_of(3, 50, options);
    std::vector<Reader> all = world_of(3, 50, {.batch = 0, .shuffle_seed = options.shuffle_seed});
    epoch_of(two);
    for (Reader& rank : two) rank.next();
    for (Reader& rank : three) rank.seek(two[0].position());
    for (Reader& rank : all) rank.seek(two[0].position());
    for (int epoch = 0; epoch < 2; ++epoch) {
      const std::vector<int64_t> expected = epoch_of(two);
      EXPECT_EQ(epoch_of(three), expected);
      EXPECT_EQ(epoch_of(all), expected);
    }
  }
}

TEST(Reader, FullBatchKeepsItsMemoryAndId) {
  for (int64_t size : {0, 10, 64}) {
    Reader reader(counting(10), {.batch = size});
    const Batch* first = reader.next();
    const void* memory = first->find("id")->data();
    const uint64_t id = first->id;
    EXPECT_NE(id, 0u);
    EXPECT_EQ(first->size, 10);
    EXPECT_EQ(reader.next(), nullptr);
    const Batch* again = reader.next();
    EXPECT_EQ(again->find("id")->data(), memory);
    EXPECT_EQ(again->id, id);
  }
  Reader one(counting(10), {.batch = 10}), two(counting(10), {.batch = 10});
  EXPECT_NE(one.next()->id, two.next()->id);
}

TEST(Reader, ReusesItsMemory) {
  Reader reader(counting(100), {.batch = 10});
  std::vector<const void*> seen;
  for (int epoch = 0; epoch < 3; ++epoch) {
    for (const Batch& batch : reader) {
      EXPECT_EQ(batch.id, 0u);
      seen.push_back(batch.find("id")->data());
    }
  }
  std::sort(seen.begin(), seen.end());
  seen.erase(std::unique(seen.begin(), seen.end()), seen.end());
  EXPECT_LE(seen.size(), 3u);
}

TEST(Reader, MistakesAreNamed) {
  expect_user_error([] { Reader(counting(0), {}); }, "the data has no sample");
  expect_user_error([] { Reader(Dataset(), {}); }, "the data has no sample");
  expect_user_error([] { Reader(counting(3), {.batch = -1}); }, "the batch size must be positive");
  expect_user_error(
      [] { Reader(counting(3), {.batch = 4, .drop_last = true}); },
      "a batch of 4 cannot be filled by 3 samples, and the smaller last batch is dropped");
  expect_user_error(
      [] { Reader(counting(7), {.batch = 4, .drop_last = true, .rank = 1, .world = 2}); },
      "a batch of 4 on each of 2 ranks cannot be filled by 7 samples");
  for (int rank : {-1, 2}) {
    expect_user_error([rank] { Reader(counting(3), {.rank = rank, .world = 2}); },
                      "no rank " + std::to_string(rank) + " reads in a world of 2");
  }
  Dataset uneven = counting(3);
  uneven.columns.emplace_back("more", Tensor(f32, {4}));
  expect_user_error([&] { Reader(uneven, {}); },
                    "column 'more' has 4 samples, but the first column has 3");
}

TEST(Reader, StopsWhileGathering) {
  for (int i = 0; i < 20; ++i) {
    Reader reader(counting(1000), {.batch = 3, .shuffle_seed = 1});
    for (int n = 0; n < i; ++n) reader.next();
  }
}

}  // namespace
}  // namespace fluid::reader_test
