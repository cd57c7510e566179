// Reader with sources that are not in memory: workers, errors, bad records, positions.

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <set>
#include <thread>

#include "frontend/readers/reader.h"
#include "frontend/readers/sample_order.h"
#include "tests/support/errors.h"

namespace fluid::reader_workers_test {
namespace {

/// Sample i is i, and a value that depends on the AugmentationSeed. Samples in `bad` cannot be
/// read.
class Numbers : public SampleSource {
 public:
  explicit Numbers(int64_t n, std::set<int64_t> bad = {}, int delay_us = 0)
      : n_(n), bad_(std::move(bad)), delay_us_(delay_us) {}
  int64_t samples() const override { return n_; }
  const std::vector<Column>& columns() const override { return columns_; }
  void read(int64_t sample, const AugmentationSeed& seed,
            std::span<std::byte* const> to) const override {
    ++reads_;
    if (bad_.contains(sample)) throw UserError(location(sample) + ": damaged");
    // Later samples are ready first, so that workers overtake each other.
    if (delay_us_ > 0) {
      std::this_thread::sleep_for(std::chrono::microseconds((n_ - sample) % 7 * delay_us_));
    }
    const int64_t drawn = sample * 1000 + seed.epoch * 100 + static_cast<int64_t>(seed.seed);
    std::memcpy(to[0], &sample, sizeof sample);
    std::memcpy(to[1], &drawn, sizeof drawn);
  }
  std::string name() const override { return "numbers"; }
  int64_t reads() const { return reads_; }

 private:
  int64_t n_;
  std::set<int64_t> bad_;
  int delay_us_;
  mutable std::atomic<int64_t> reads_ = 0;
  std::vector<Column> columns_ = {{"id", DType::i64, {}}, {"drawn", DType::i64, {}}};
};

void append(const Batch& batch, std::vector<int64_t>& to) {
  for (const auto& [name, column] : batch.columns) {
    const std::span<const int64_t> values = std::as_const(column).as<int64_t>();
    to.insert(to.end(), values.begin(), values.end());
  }
}

/// All values of two epochs, batch by batch.
std::vector<int64_t> two_epochs(Reader& reader) {
  std::vector<int64_t> values;
  for (int epoch = 0; epoch < 2; ++epoch) {
    for (const Batch& batch : reader) append(batch, values);
  }
  return values;
}

TEST(ReaderWorkers, GiveTheSameBatchesInAnyNumber) {
  for (const auto& [rank, world] : {std::pair(0, 1), std::pair(1, 3)}) {
    std::vector<int64_t> expected;
    for (const int workers : {1, 2, 3, 8}) {
      Reader reader(
          std::make_shared<Numbers>(103, std::set<int64_t>(), 20),
          {.batch = 8, .shuffle_seed = 5, .rank = rank, .world = world, .workers = workers});
      const std::vector<int64_t> values = two_epochs(reader);
      if (expected.empty()) expected = values;
      EXPECT_EQ(values, expected) << workers << " workers";
    }
    if (world == 1) {
      EXPECT_EQ(expected.size(), 2u * 2 * 103);
    }
    EXPECT_EQ(expected[8] % 1000, 5) << "the seed";
    EXPECT_EQ(expected.back() % 1000, 105) << "the epoch and the seed";
  }
}

TEST(ReaderWorkers, ErrorsArriveWithTheirBatch) {
  for (const int workers : {1, 4}) {
    Reader reader(std::make_shared<Numbers>(40, std::set<int64_t>{21, 23}),
                  {.batch = 10, .workers = workers});
    EXPECT_NE(reader.next(), nullptr);
    EXPECT_NE(reader.next(), nullptr);
    expect_user_error([&] { reader.next(); }, "sample 21 of 'numbers': damaged");
    const Batch* last = reader.next();
    ASSERT_NE(last, nullptr);
    EXPECT_EQ(last->find("id")->integer(0), 30);
    EXPECT_EQ(reader.next(), nullptr);
  }
}

TEST(ReaderWorkers, SkipBadRecords) {
  std::vector<int64_t> expected;
  for (const int workers : {1, 4}) {
    Reader reader(std::make_shared<Numbers>(20, std::set<int64_t>{3, 4, 19}),
                  {.batch = 5, .workers = workers, .bad_records = BadRecords::skip});
    std::vector<int64_t> ids;
    for (const Batch& batch : reader) {
      const std::span<const int64_t> values = batch.find("id")->as<int64_t>();
      ids.insert(ids.end(), values.begin(), values.end());
    }
    EXPECT_EQ(ids, (std::vector<int64_t>{0,  1,  2,  5,  5,  5,  6,  7,  8,  9,
                                         10, 11, 12, 13, 14, 15, 16, 17, 18, 0}));
    for (const Batch& batch : reader) EXPECT_EQ(batch.size, 5);
    EXPECT_EQ(reader.skipped().count, 3);
    EXPECT_EQ(reader.skipped().errors.front(), "sample 3 of 'numbers': damaged");
  }
  Reader none(std::make_shared<Numbers>(2, std::set<int64_t>{0, 1}),
              {.batch = 2, .bad_records = BadRecords::skip});
  expect_user_error([&] { none.next(); },
                    "no sample of the data can be read: sample 0 of 'numbers'");
}

TEST(ReaderWorkers, LeaveOutBadRecords) {
  const auto source =
      std::make_shared<Numbers>(20, std::set<int64_t>{3, 4, 10, 11, 12, 13, 14, 19});
  for (const int workers : {1, 4}) {
    Reader reader(source, {.batch = 5, .workers = workers, .bad_records = BadRecords::drop});
    for (int epoch = 0; epoch < 2; ++epoch) {
      std::vector<int64_t> ids, sizes;
      for (const Batch& batch : reader) {
        sizes.push_back(batch.size);
        EXPECT_TRUE(std::ranges::equal(batch.find("id")->as<int64_t>(), reader.sample_indices()));
        for (int64_t i = 0; i < batch.size; ++i) {
          ids.push_back(batch.find("id")->integer(i));
          EXPECT_EQ(batch.find("drawn")->integer(i), ids.back() * 1000 + epoch * 100);
        }
      }
      EXPECT_EQ(ids, (std::vector<int64_t>{0, 1, 2, 5, 6, 7, 8, 9, 15, 16, 17, 18}));
      EXPECT_EQ(sizes, (std::vector<int64_t>{3, 5, 0, 4}));
    }
    EXPECT_EQ(reader.skipped().count, 8);
  }
  for (int rank = 0; rank < 2; ++rank) {
    Reader reader(source, {.batch = 5, .rank = rank, .world = 2, .bad_records = BadRecords::drop});
    std::vector<int64_t> ids;
    for (const Batch& batch : reader) {
      EXPECT_EQ(batch.global_size(), 10);
      const std::span<const int64_t> indices = reader.sample_indices();
      EXPECT_EQ(std::ssize(indices), batch.size);
      ids.insert(ids.end(), indices.begin(), indices.end());
    }
    EXPECT_EQ(ids, rank == 0 ? (std::vector<int64_t>{0, 1, 2})
                             : (std::vector<int64_t>{5, 6, 7, 8, 9, 15, 16, 17, 18}));
  }
}

TEST(ReaderWorkers, AreJoinedInTheMiddleOfABatch) {
  const auto source = std::make_shared<Numbers>(1000, std::set<int64_t>(), 500);
  for (int i = 0; i < 5; ++i) {
    Reader reader(source, {.batch = 50, .shuffle_seed = 1, .workers = 4});
    if (i > 0) reader.next();
    if (i > 2) reader.seek({0, 300});
    if (i > 3) reader.next();
  }
  EXPECT_EQ(source.use_count(), 1);
}

TEST(ReaderWorkers, NumberMustBePositive) {
  expect_user_error([] { Reader(std::make_shared<Numbers>(2), {.workers = -1}); },
                    "the number of workers must be 1 to 1024, not -1");
}

TEST(ReaderWorkers, ResumeReadsOnlyWhatFollows) {
  const int64_t samples = 3'000'000'000;
  const ReaderOptions options = {.batch = 4, .shuffle_seed = 9};
  const auto source = std::make_shared<Numbers>(samples);
  Reader reader(source, options);
  reader.seek({5, samples / 2});
  std::vector<int64_t> values, expected;
  append(*reader.next(), values);
  EXPECT_LE(source->reads(), 12) << "reads the batches that are prefetched";
  EXPECT_LT(reader.buffer_bytes(), 1000);
  SampleOrder order;
  order.set(samples, 9, 5);
  for (int64_t i = 0; i < 4; ++i) EXPECT_EQ(values[static_cast<size_t>(i)], order[samples / 2 + i]);
}

TEST(SampleOrder, LargeDataIsPermuted) {
  const int64_t n = SampleOrder::kMaxListed + 12345;
  SampleOrder order, other;
  order.set(n, 7, 3);
  other.set(n, 7, 4);
  std::vector<bool> seen(static_cast<size_t>(n));
  int64_t fixed = 0, same = 0, ascents = 0;
  for (int64_t i = 0, before = 0; i < n; ++i) {
    const int64_t sample = order[i];
    ASSERT_TRUE(sample >= 0 && sample < n && !seen[static_cast<size_t>(sample)]) << i;
    seen[static_cast<size_t>(sample)] = true;
    fixed += sample == i;
    same += sample == other[i];
    ascents += sample > before;
    before = sample;
  }
  EXPECT_LT(fixed, 10);
  EXPECT_LT(same, 10);
  EXPECT_NEAR(static_cast<double>(ascents) / static_cast<double>(n), 0.5, 0.002);
  order.set(n, {}, 3);
  EXPECT_EQ(order[n - 1], n - 1);
}

}  // namespace
}  // namespace fluid::reader_workers_test
