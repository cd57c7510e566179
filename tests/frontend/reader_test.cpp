#include "frontend/readers/reader.h"

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>

#include "tests/support/errors.h"

namespace fluid {
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
  EXPECT_EQ(reader.position(), 30);
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
  const int64_t position = straight.position();
  EXPECT_EQ(position, 66);
  Reader resumed(counting(50), {.batch = 8, .shuffle_seed = 1});
  resumed.next();
  resumed.seek(position);
  EXPECT_EQ(resumed.position(), position);
  EXPECT_EQ(epoch_of(resumed), epoch_of(straight));
  EXPECT_EQ(epoch_of(resumed), epoch_of(straight));
  expect_user_error([&] { resumed.seek(51); },
                    "the data cannot go on at sample 51: no batch of 8 starts there");
  expect_user_error([&] { resumed.seek(-8); }, "cannot go on at sample -8");
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
}  // namespace fluid
