// BatchLoader for a SampleStream: one thread reads each pass in order.

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <exception>
#include <mutex>
#include <numeric>
#include <thread>

#include "frontend/readers/batch_loader.h"
#include "frontend/readers/batch_transform.h"
#include "ir/error.h"
#include "ir/threads.h"

namespace fluid {
namespace {

constexpr auto kInterruptInterval = std::chrono::milliseconds(20);

SampleStreamPtr shuffled(SampleStreamPtr stream, const ReaderOptions& options) {
  if (stream == nullptr) throw UserError("a Reader needs data: this SPEC names no stream");
  if (options.shuffle_buffer == 0 && options.shuffle_seed) {
    throw UserError("data '" + stream->name() +
                    "' is a stream, which is shuffled through a buffer: set shuffle_buffer");
  }
  if (options.shuffle_buffer == 0) return stream;
  if (!options.shuffle_seed) throw UserError("shuffle_buffer needs a shuffle_seed");
  return shuffle_samples(std::move(stream), options.shuffle_buffer);
}

class StreamLoader : public BatchLoader {
 public:
  StreamLoader(SampleStreamPtr stream, ReaderOptions options)
      : stream_(shuffled(std::move(stream), options)), options_(options) {
    check_reader_options(options_);
    if (options_.batch == 0) fail("is a stream: set the batch size");
    if (options_.bad_records != BadRecords::stop) {
      fail("is a stream, which ends at a bad record: it cannot be skipped");
    }
    batch_ = options_.batch * options_.world;
    lead_ = stream_->batch_transform() != nullptr ? 1 : 0;
  }
  ~StreamLoader() override { stop(); }

  const SampleData& data() const override { return *stream_; }
  std::vector<int64_t> batch_sizes() const override { return {options_.batch}; }
  const ReaderOptions& options() const override { return options_; }
  std::span<const int64_t> sample_indices() const override { return sample_indices_; }
  SkippedRecords skipped() const override { return stream_->skipped(); }
  ReaderPosition position() const override { return position_; }

  int64_t buffer_bytes() const override {
    int64_t sample = 0;
    for (const Column& column : stream_->columns()) sample += column.bytes();
    const int64_t shared = options_.world > 1 ? batch_ : 0;
    return sample * (static_cast<int64_t>(kBatchSlots) * (options_.batch + lead_) + shared);
  }

  const Batch* next() override {
    sample_indices_.clear();
    if (at_end_) {
      stop();
      at_end_ = false;
      return nullptr;
    }
    if (!thread_.joinable()) start();
    std::unique_lock lock(mutex_);
    if (in_use_) {
      ++released_;
      changed_.notify_all();
    }
    in_use_ = false;
    changed_.wait(lock, [&] { return published_ > released_; });
    Slot& slot = slots_[static_cast<size_t>(released_) % kBatchSlots];
    if (slot.error) std::rethrow_exception(slot.error);
    in_use_ = true;
    const RankShard shard = shard_of(slot.rows, options_.rank, options_.world);
    sample_indices_.resize(static_cast<size_t>(shard.size));
    std::iota(sample_indices_.begin(), sample_indices_.end(), position_.sample + shard.first);
    position_.sample += slot.rows;
    if (slot.is_last) {
      position_ = {position_.epoch + 1, 0};
      at_end_ = slot.rows > 0;
    }
    if (slot.rows > 0) return &slot.batch;
    lock.unlock();
    stop();
    return nullptr;
  }

  void seek(const ReaderPosition& position) override {
    check_position(position);
    const bool goes_on = position == position_ && !has_failed();
    if (goes_on && !at_end_) return;
    stop();
    at_end_ = false;
    position_ = position;
  }

  Dataset read_first(int64_t samples, uint64_t seed) override {
    stop();
    at_end_ = false;
    position_ = {};
    stream_->open({.rank = options_.rank, .world = options_.world, .seed = seed});
    std::vector<Tensor> buffers = sample_buffers(stream_->columns(), samples);
    int64_t read = 0;
    while (read < samples && stream_->next(sample_addresses(buffers, read))) ++read;
    stream_->close();
    if (read == 0) fail("holds no sample");
    Dataset first = dataset_of(*stream_, std::move(buffers)).first(read);
    first.table = stream_->table();
    return first;
  }

 private:
  /// A batch buffer. With mixup or cutmix, row 0 is an extra row. It holds the predecessor of the
  /// shard's first sample in the global batch, which is treated as cyclic.
  struct Slot {
    std::vector<Tensor> columns;
    Batch batch;
    int64_t rows = 0;          // number of samples in the global batch
    bool is_last = false;      // whether this is the last batch of the pass
    std::exception_ptr error;  // error that next() throws instead of returning the batch
  };

  [[noreturn]] void fail(const std::string& why) const {
    throw UserError("data '" + stream_->name() + "' " + why);
  }

  bool has_failed() const {
    const std::scoped_lock lock(mutex_);
    return published_ > released_ &&
           slots_[static_cast<size_t>(published_ - 1) % kBatchSlots].error != nullptr;
  }

  void start() {
    if (slots_[0].columns.empty()) allocate();
    opened_ = published_ = released_ = 0;
    in_use_ = stopping_ = done_ = false;
    thread_ = start_thread([this] { work(); });
  }

  void stop() {
    if (!thread_.joinable()) return;
    std::unique_lock lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
    while (!changed_.wait_for(lock, kInterruptInterval, [&] { return done_; })) {
      lock.unlock();
      stream_->interrupt();
      lock.lock();
    }
    lock.unlock();
    thread_.join();
    published_ = released_ = 0;
  }

  void allocate() {
    for (Slot& slot : slots_) {
      slot.columns = sample_buffers(stream_->columns(), options_.batch + lead_);
    }
    if (options_.world > 1) global_ = sample_buffers(stream_->columns(), batch_);
  }

  /// Main function of thread_.
  void work() {
    try {
      read_pass();
    } catch (...) {
      Slot& slot = slots_[static_cast<size_t>(published_) % kBatchSlots];
      slot.error = std::current_exception();
      publish(slot);
    }
    const std::scoped_lock lock(mutex_);
    done_ = true;
    changed_.notify_all();
  }

  /// Reads the pass from position_ to its end. Stops early when stop() is called.
  void read_pass() {
    const ReaderPosition begin = position_;
    const StreamPass pass = {.epoch = begin.epoch,
                             .rank = options_.rank,
                             .world = options_.world,
                             .seed = options_.shuffle_seed.value_or(0)};
    stream_->open(pass);
    skip_to(begin);
    int64_t read = begin.sample;
    // The newest complete batch. Published once its `is_last` is known.
    Slot* complete = nullptr;
    while (Slot* slot = wait_for_slot()) {
      int64_t rows = 0;
      const auto publish_complete = [&](bool is_last) {
        if (complete == nullptr) return;
        complete->is_last = is_last;
        publish(*std::exchange(complete, nullptr));
      };
      try {
        while (rows < batch_ && stream_->next(row(*slot, rows))) {
          ++rows;
          if (!options_.drop_last || rows == batch_) publish_complete(false);
        }
      } catch (...) {
        publish_complete(false);
        throw;
      }
      const bool ended = rows < batch_;
      const bool dropped = ended && options_.drop_last;
      if (rows == 0 || dropped) {
        check_not_empty(read, rows, pass.epoch);
        if (complete != nullptr) return publish_complete(true);
        slot->rows = 0;
        slot->is_last = true;
        return publish(*slot);
      }
      finish(*slot, rows, {pass.seed, pass.epoch}, read);
      read += rows;
      complete = slot;
      if (ended) return publish_complete(true);
    }
  }

  /// Reads and discards the samples of the pass before sample `position.sample`. Throws UserError
  /// if the pass is shorter.
  void skip_to(const ReaderPosition& position) {
    const std::vector<std::byte*> none(stream_->columns().size(), nullptr);
    for (int64_t i = 0; i < position.sample; ++i) {
      if (is_stopping()) return;
      if (stream_->next(none)) continue;
      fail("has " + std::to_string(i) + " samples in epoch " + std::to_string(position.epoch + 1) +
           ", but the reader goes on from sample " + std::to_string(position.sample));
    }
  }

  /// Throws UserError unless the pass had a batch. `read`: number of samples in the batches of the
  /// pass. `rows`: number of samples in an incomplete last batch, which `drop_last` discards.
  void check_not_empty(int64_t read, int64_t rows, int64_t epoch) const {
    if (read > 0) return;
    if (rows > 0) fail_no_full_batch(options_, rows);
    fail("holds no sample in epoch " + std::to_string(epoch + 1));
  }

  bool is_stopping() const {
    const std::scoped_lock lock(mutex_);
    return stopping_;
  }

  /// Returns the next free slot. Returns null when stop() was called.
  Slot* wait_for_slot() {
    std::unique_lock lock(mutex_);
    changed_.wait(
        lock, [&] { return stopping_ || opened_ - released_ < static_cast<int64_t>(kBatchSlots); });
    if (stopping_) return nullptr;
    Slot& slot = slots_[static_cast<size_t>(opened_++) % kBatchSlots];
    slot.is_last = false;
    slot.error = nullptr;
    return &slot;
  }

  void publish(Slot&) {
    const std::scoped_lock lock(mutex_);
    ++published_;
    changed_.notify_all();
  }

  /// Returns the buffers of row `i` of the global batch.
  std::vector<std::byte*> row(Slot& slot, int64_t i) {
    return options_.world > 1 ? sample_addresses(global_, i)
                              : sample_addresses(slot.columns, i + lead_);
  }

  /// Completes a global batch of `rows` samples: copies this rank's shard to `slot`, if there are
  /// several ranks, and applies mixup or cutmix. `first`: position of the first sample of the batch
  /// in the pass.
  void finish(Slot& slot, int64_t rows, const AugmentationSeed& seed, int64_t first) {
    const RankShard shard = shard_of(rows, options_.rank, options_.world);
    if (options_.world > 1) copy_rows(slot, shard.first, lead_, shard.size);
    if (lead_ > 0) {
      copy_rows(slot, (shard.first + rows - 1) % rows, 0, 1);
      stream_->batch_transform()->apply(sample_addresses(slot.columns, 0), shard.size, seed, first);
    }
    slot.rows = rows;
    const bool has_view = slot.batch.size == shard.size && slot.batch.global_size() == rows;
    if (!has_view) slot.batch = batch_view(*stream_, slot.columns, rows, lead_, options_);
  }

  /// Copies rows [from, from + count) of the global batch to rows [to, to + count) of the slot.
  void copy_rows(Slot& slot, int64_t from, int64_t to, int64_t count) {
    const std::vector<std::byte*> source = row(slot, from),
                                  target = sample_addresses(slot.columns, to);
    for (size_t c = 0; c < source.size(); ++c) {
      const int64_t bytes = count * stream_->columns()[c].bytes();
      if (bytes > 0) std::memcpy(target[c], source[c], static_cast<size_t>(bytes));
    }
  }

  SampleStreamPtr stream_;
  ReaderOptions options_;
  int64_t batch_ = 0;  // number of samples in a full global batch
  int64_t lead_ = 0;   // number of extra rows before the shard; see Slot
  /// Position after the last batch that next() returned. The thread reads this member when it
  /// starts.
  ReaderPosition position_;
  std::vector<int64_t> sample_indices_;  // see Reader::sample_indices()
  bool at_end_ = false;                  // whether the following call of next() returns null

  Slot slots_[kBatchSlots];
  std::vector<Tensor> global_;  // the global batch being read, if there are several ranks

  std::thread thread_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  // Counts since start(): slots opened by the thread, slots published to next(), slots released by
  // next().
  int64_t opened_ = 0, published_ = 0, released_ = 0;
  bool in_use_ = false, stopping_ = false, done_ = false;
};

}  // namespace

std::unique_ptr<BatchLoader> make_batch_loader(SampleStreamPtr stream, ReaderOptions options) {
  return std::make_unique<StreamLoader>(std::move(stream), options);
}

}  // namespace fluid
