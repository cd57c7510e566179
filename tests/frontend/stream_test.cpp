// Readers of a SampleStream: samples in order, of unknown number.

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <numeric>
#include <thread>

#include "frontend/readers/image_stages.h"
#include "frontend/readers/reader.h"
#include "ir/error.h"
#include "ir/stopwatch.h"
#include "tests/support/errors.h"

namespace fluid::stream_test {
namespace {

/// `samples` samples of each epoch: id counts from 1000 times the epoch, pair is {id, -id}.
class Counting : public SampleStream {
 public:
  explicit Counting(int64_t samples) : samples_(samples) {}
  const std::vector<Column>& columns() const override { return columns_; }
  std::string name() const override { return "counting"; }
  void open(const StreamPass& pass) override {
    pass_ = pass;
    next_ = 0;
    ++opened;
  }
  bool next(std::span<std::byte* const> to) override {
    if (next_ == fails_at) throw UserError("sample " + std::to_string(next_) + " is broken");
    if (next_ == samples_) return false;
    const int64_t id = 1000 * pass_.epoch + next_++;
    const int64_t pair[] = {id, -id};
    if (to[0] != nullptr) std::memcpy(to[0], &id, sizeof id);
    if (to[1] != nullptr) std::memcpy(to[1], pair, sizeof pair);
    most_read = std::max<int64_t>(most_read, next_);
    return true;
  }

  std::atomic<int64_t> opened = 0, most_read = 0;
  int64_t fails_at = -1;

 private:
  int64_t samples_, next_ = 0;
  StreamPass pass_;
  std::vector<Column> columns_ = {{"id", i64, {}}, {"pair", i64, {2}}};
};

/// Expects that the columns of a batch belong together, and appends its ids.
void append(const Batch& batch, std::vector<int64_t>& ids) {
  ASSERT_EQ(batch.find("id")->shape(), (std::vector<int64_t>{batch.size}));
  for (int64_t i = 0; i < batch.size; ++i) {
    ids.push_back(batch.find("id")->integer(i));
    EXPECT_EQ(batch.find("pair")->integer(2 * i + 1), -ids.back());
  }
}

std::vector<int64_t> epoch_of(Reader& reader) {
  std::vector<int64_t> ids;
  for (const Batch& batch : reader) append(batch, ids);
  return ids;
}

std::vector<int64_t> counted(int64_t samples, int64_t first = 0) {
  std::vector<int64_t> ids(static_cast<size_t>(samples));
  std::iota(ids.begin(), ids.end(), first);
  return ids;
}

std::vector<int64_t> sorted(std::vector<int64_t> ids) {
  std::ranges::sort(ids);
  return ids;
}

TEST(Stream, IsReadOnceAnEpoch) {
  for (const int64_t samples : {10, 12}) {
    const auto stream = std::make_shared<Counting>(samples);
    Reader reader(stream, {.batch = 4});
    EXPECT_FALSE(reader.samples());
    EXPECT_FALSE(reader.batches());
    EXPECT_EQ(reader.as_sample_source(), nullptr);
    EXPECT_EQ(reader.source().location(3), "sample 3 of 'counting'");
    EXPECT_EQ(reader.batch_sizes(), (std::vector<int64_t>{4}));
    EXPECT_EQ(epoch_of(reader), counted(samples));
    EXPECT_EQ(stream->opened, 1) << "the next pass begins when it is asked for";
    EXPECT_EQ(epoch_of(reader), counted(samples, 1000));
    EXPECT_EQ(reader.position(), (ReaderPosition{2, 0}));
  }
}

TEST(Stream, KnowsTheLastBatchOfAnEpoch) {
  for (const bool drop_last : {false, true}) {
    Reader reader(std::make_shared<Counting>(drop_last ? 11 : 8),
                  {.batch = 4, .drop_last = drop_last});
    reader.next();
    EXPECT_EQ(reader.position(), (ReaderPosition{0, 4}));
    reader.next();
    EXPECT_EQ(reader.position(), (ReaderPosition{1, 0}));
    EXPECT_EQ(reader.next(), nullptr);
    EXPECT_EQ(epoch_of(reader), counted(8, 1000));
  }
}

TEST(Stream, IsShuffledThroughABuffer) {
  const auto order = [](uint64_t seed, int64_t buffer, int64_t batch) {
    Reader reader(std::make_shared<Counting>(100),
                  {.batch = batch, .shuffle_seed = seed, .shuffle_buffer = buffer});
    std::vector<int64_t> ids = epoch_of(reader);
    const std::vector<int64_t> second = epoch_of(reader);
    ids.insert(ids.end(), second.begin(), second.end());
    return ids;
  };
  const std::vector<int64_t> ids = order(3, 20, 7);
  EXPECT_EQ(ids, order(3, 20, 13)) << "the order depends on the batch size";
  EXPECT_NE(ids, order(4, 20, 7));
  EXPECT_NE(ids, order(3, 21, 7));
  const std::vector<int64_t> first(ids.begin(), ids.begin() + 100),
      second(ids.begin() + 100, ids.end());
  EXPECT_EQ(sorted(first), counted(100));
  EXPECT_EQ(sorted(second), counted(100, 1000));
  bool same = true;
  for (size_t i = 0; i < 100; ++i) {
    same = same && second[i] == first[i] + 1000;
    EXPECT_LT(first[i], static_cast<int64_t>(i) + 20) << "comes from the buffer";
  }
  EXPECT_FALSE(same) << "two epochs have the same order";
  EXPECT_EQ(order(3, 1, 7), [] {
    std::vector<int64_t> both = counted(100);
    for (const int64_t id : counted(100, 1000)) both.push_back(id);
    return both;
  }());
  EXPECT_EQ(sorted(order(3, 1000, 7)), sorted(ids)) << "a buffer that is never full";
}

/// The samples of an epoch as the ranks of a world read them, in the order of the global batches.
/// Checks that the ranks agree on each batch.
std::vector<int64_t> epoch_of(std::vector<Reader>& ranks) {
  std::vector<int64_t> ids;
  for (;;) {
    int64_t whole = 0, expected = 0, smallest = INT64_MAX, largest = 0;
    size_t ended = 0;
    for (Reader& rank : ranks) {
      const Batch* batch = rank.next();
      EXPECT_EQ(rank.position(), ranks.front().position());
      if (batch == nullptr) {
        ++ended;
        continue;
      }
      EXPECT_EQ(batch->first, whole);
      whole += batch->size;
      expected = batch->global_batch_size;
      smallest = std::min(smallest, batch->size);
      largest = std::max(largest, batch->size);
      append(*batch, ids);
    }
    if (ended > 0) {
      EXPECT_EQ(ended, ranks.size());
      return ids;
    }
    EXPECT_EQ(whole, expected);
    EXPECT_LE(largest - smallest, 1);
  }
}

std::vector<Reader> world_of(int world, int64_t samples, ReaderOptions options) {
  std::vector<Reader> ranks;
  for (int rank = 0; rank < world; ++rank) {
    options.rank = rank;
    options.world = world;
    ranks.emplace_back(std::make_shared<Counting>(samples), options);
  }
  return ranks;
}

TEST(Stream, RanksShareEveryBatch) {
  for (const int world : {2, 3}) {
    for (const bool drop_last : {false, true}) {
      for (const int64_t buffer : {0, 8}) {
        for (const int64_t more : {0, 1, world - 1, world + 1}) {
          SCOPED_TRACE(::testing::Message() << world << " ranks, " << more << " more, drop "
                                            << drop_last << ", buffer " << buffer);
          ReaderOptions options{.batch = 5, .drop_last = drop_last, .shuffle_buffer = buffer};
          if (buffer > 0) options.shuffle_seed = 9;
          const int64_t samples = 3 * 5 * world + more;
          std::vector<Reader> ranks = world_of(world, samples, options);
          options.batch *= world;
          Reader one(std::make_shared<Counting>(samples), options);
          for (int epoch = 0; epoch < 2; ++epoch) EXPECT_EQ(epoch_of(ranks), epoch_of(one));
        }
      }
    }
  }
  std::vector<Reader> ranks = world_of(3, 2, {.batch = 4});
  EXPECT_EQ(epoch_of(ranks), counted(2)) << "the last rank gets an empty batch";
}

TEST(Stream, GoesOnFromAPosition) {
  for (const int64_t buffer : {0, 6}) {
    ReaderOptions options{.batch = 4, .shuffle_buffer = buffer};
    if (buffer > 0) options.shuffle_seed = 2;
    Reader straight(std::make_shared<Counting>(50), options);
    epoch_of(straight);
    straight.next();
    straight.next();
    Reader resumed(std::make_shared<Counting>(50), options);
    resumed.next();
    resumed.seek(straight.position());
    std::vector<Reader> ranks = world_of(3, 50, options);
    for (Reader& rank : ranks) rank.seek(straight.position());
    for (int epoch = 0; epoch < 2; ++epoch) {
      const std::vector<int64_t> expected = epoch_of(straight);
      EXPECT_EQ(epoch_of(resumed), expected);
      EXPECT_EQ(epoch_of(ranks), expected) << "another world";
    }
  }
}

TEST(Stream, GoesOnAtTheEnd) {
  Reader reader(std::make_shared<Counting>(8), {.batch = 4});
  reader.seek({0, 8});
  EXPECT_EQ(reader.next(), nullptr);
  EXPECT_EQ(reader.position(), (ReaderPosition{1, 0}));
  EXPECT_EQ(epoch_of(reader), counted(8, 1000));
  reader.next();
  reader.next();
  reader.seek(reader.position());
  EXPECT_EQ(epoch_of(reader), counted(8, 3000)) << "the end of the epoch before is still to come";
  reader.seek({0, 9});
  expect_user_error(
      [&] { reader.next(); },
      "data 'counting' has 8 samples in epoch 1, but the reader goes on from sample 9");
}

TEST(Stream, IsReadAheadByThreeBatches) {
  const auto stream = std::make_shared<Counting>(1'000'000);
  Reader reader(stream, {.batch = 10});
  for (int i = 0; i < 5; ++i) reader.next();
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_LE(stream->most_read, 71) << "5 batches, 2 more, and a sample";
  EXPECT_EQ(reader.buffer_bytes(), 3 * 10 * 24);
  Reader rank(stream, {.batch = 10, .rank = 1, .world = 2});
  EXPECT_EQ(rank.buffer_bytes(), (3 * 10 + 20) * 24);
}

TEST(Stream, AnErrorEndsTheEpochUntilSeek) {
  const auto stream = std::make_shared<Counting>(100);
  stream->fails_at = 10;
  Reader reader(stream, {.batch = 4});
  EXPECT_NE(reader.next(), nullptr);
  EXPECT_NE(reader.next(), nullptr);
  expect_user_error([&] { reader.next(); }, "sample 10 is broken");
  expect_user_error([&] { reader.next(); }, "sample 10 is broken");
  EXPECT_EQ(reader.position(), (ReaderPosition{0, 8}));
  reader.seek(reader.position());
  expect_user_error([&] { reader.next(); }, "sample 10 is broken");
  stream->fails_at = 8;  // between two batches: the batch before is returned
  reader.seek({});
  EXPECT_NE(reader.next(), nullptr);
  EXPECT_NE(reader.next(), nullptr);
  expect_user_error([&] { reader.next(); }, "sample 8 is broken");
  stream->fails_at = -1;
  reader.seek({});
  EXPECT_EQ(epoch_of(reader), counted(100));
}

TEST(Stream, FirstSamplesAreReadIntoMemory) {
  Reader reader(std::make_shared<Counting>(5), {.batch = 2});
  reader.next();
  EXPECT_EQ(reader.read_first(3, 0).samples(), 3);
  const Dataset all = reader.read_first(9, 0);
  EXPECT_EQ(all.samples(), 5);
  EXPECT_EQ(all.find("id")->integer(4), 4);
  EXPECT_EQ(epoch_of(reader), counted(5)) << "starts again";
  Reader first(first_samples(std::make_shared<Counting>(5), 3), {.batch = 2});
  EXPECT_EQ(epoch_of(first), counted(3));
  EXPECT_EQ(epoch_of(first), counted(3, 1000));
}

/// Images whose pixels are the number of the sample, and its label.
class Images : public SampleStream {
 public:
  const std::vector<Column>& columns() const override { return columns_; }
  std::string name() const override { return "images"; }
  void open(const StreamPass&) override { next_ = 0; }
  bool next(std::span<std::byte* const> to) override {
    if (next_ == 7) return false;
    if (to[0] != nullptr) std::memset(to[0], static_cast<int>(next_), 4 * 4);
    if (to[1] != nullptr) std::memcpy(to[1], &next_, sizeof next_);
    ++next_;
    return true;
  }

 private:
  int64_t next_ = 0;
  std::vector<Column> columns_ = {{"image", u8, {1, 4, 4}}, {"label", i64, {}}};
};

/// The same images as a source.
SampleSourcePtr images() {
  Reader reader(std::make_shared<Images>(), {.batch = 1});
  return make_source(reader.read_first(7, 0));
}

/// Bytes of all columns in two epochs.
std::string bytes_of(Reader reader) {
  std::string bytes;
  for (int epoch = 0; epoch < 2; ++epoch) {
    for (const Batch& batch : reader) {
      for (const auto& [name, column] : batch.columns) {
        bytes.append(static_cast<const char*>(column.data()), static_cast<size_t>(column.bytes()));
      }
    }
  }
  return bytes;
}

TEST(Stream, StagesChangeItsImages) {
  const SourceTransform stages = [](SampleSourcePtr source) {
    source =
        augment_images(std::move(source), {.stages = {augment::pad({.border = {1, 1, 1, 1}}),
                                                      augment::crop({.height = 3, .width = 5})}});
    return mixup(std::move(source), {.alpha = 0.7, .classes = 7});
  };
  for (int rank = 0; rank < 2; ++rank) {
    const ReaderOptions options = {.batch = 2, .rank = rank, .world = 2};
    const std::string streamed =
        bytes_of(Reader(transform_samples(std::make_shared<Images>(), stages), options));
    EXPECT_EQ(streamed, bytes_of(Reader(stages(images()), options)));
    EXPECT_NE(streamed, "");
  }
  const ReaderOptions whole = {.batch = 4};
  EXPECT_EQ(bytes_of(Reader(transform_samples(std::make_shared<Images>(), stages), whole)),
            bytes_of(Reader(stages(images()), whole)));
}

TEST(Stream, AChangeKeepsTheMixOfAnotherOne) {
  const SourceTransform mix = [](SampleSourcePtr source) {
    return mixup(std::move(source), {.classes = 7});
  };
  const SourceTransform select = [](SampleSourcePtr source) {
    return select_columns(std::move(source), {{.index = 1, .name = "target"}});
  };
  const std::string mixed = bytes_of(Reader(select(mix(images())), {.batch = 4}));
  EXPECT_NE(mixed, "");
  const SampleStreamPtr stream = transform_samples(std::make_shared<Images>(), mix);
  EXPECT_EQ(bytes_of(Reader(transform_samples(stream, select), {.batch = 4})), mixed);
}

/// A stream that stalls after 4 samples until it is interrupted.
class Stalled : public Counting {
 public:
  Stalled() : Counting(100) {}
  bool next(std::span<std::byte* const> to) override {
    while (most_read == 4 && !interrupted_) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    if (interrupted_) throw UserError("interrupted");
    return Counting::next(to);
  }
  void interrupt() override { interrupted_ = true; }

 private:
  std::atomic<bool> interrupted_ = false;
};

TEST(Stream, AReaderDoesNotWaitForAStalledOne) {
  const Stopwatch watch;
  for (const bool seeks : {false, true}) {
    Reader reader(std::make_shared<Stalled>(), {.batch = 1});
    reader.next();
    if (seeks) reader.seek({});
  }
  EXPECT_LT(watch.ms(), 10'000);
}

TEST(Stream, MistakesAreNamed) {
  const auto reader_of = [](int64_t samples, ReaderOptions options) {
    return Reader(std::make_shared<Counting>(samples), options);
  };
  expect_user_error([&] { reader_of(1, {.batch = 0}); },
                    "data 'counting' is a stream: set the batch size");
  expect_user_error([&] { reader_of(1, {.shuffle_seed = 1}); }, "set shuffle_buffer");
  expect_user_error([&] { reader_of(1, {.shuffle_buffer = 1}); },
                    "shuffle_buffer needs a shuffle_seed");
  expect_user_error([&] { reader_of(1, {.shuffle_seed = 1, .shuffle_buffer = -1}); },
                    "shuffle_buffer must be positive");
  expect_user_error([&] { reader_of(1, {.bad_records = BadRecords::skip}); },
                    "data 'counting' is a stream, which ends at a bad record");
  expect_user_error([&] { reader_of(1, {.rank = 2, .world = 2}); },
                    "no rank 2 reads in a world of 2");
  expect_user_error([&] { reader_of(0, {}).next(); }, "data 'counting' holds no sample in epoch 1");
  expect_user_error([&] { reader_of(0, {}).read_first(1, 0); }, "data 'counting' holds no sample");
  expect_user_error([&] { reader_of(3, {.batch = 2, .drop_last = true, .world = 2}).next(); },
                    "a batch of 2 on each of 2 ranks cannot be filled by 3 samples");
  expect_user_error([&] { reader_of(3, {}).seek({0, -1}); }, "cannot resume at sample -1");
  expect_user_error([] { Reader(SampleStreamPtr(), {}); }, "a Reader needs data");
  expect_user_error([] { Reader(SampleSourcePtr(), {}); }, "a Reader needs data");
  expect_user_error([] { Reader(images(), {.shuffle_buffer = 5}); },
                    "shuffle_buffer is for streams");
  const SourceTransform stages = [](SampleSourcePtr source) {
    return augment_images(std::move(source), {});
  };
  expect_user_error([&] { transform_samples(std::make_shared<Counting>(3), stages); },
                    "stages need a column of images");
}

}  // namespace
}  // namespace fluid::stream_test
