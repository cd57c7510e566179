#include "frontend/readers/reader.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <limits>
#include <mutex>
#include <numeric>
#include <set>
#include <thread>

#include "frontend/readers/batch_mix.h"
#include "frontend/readers/sample_order.h"
#include "ir/error.h"
#include "ir/threads.h"

namespace fluid {
namespace {

/// Number of batch buffers: the caller uses one, the workers fill the others.
constexpr size_t kSlots = 3;
constexpr int kMaxDefaultWorkers = 4;

uint64_t fresh_batch_id() {
  static std::atomic<uint64_t> last{0};
  return ++last;
}

int default_workers(const SampleSource& source) {
  if (source.in_memory() != nullptr) return 1;
  const auto cores = static_cast<int>(std::thread::hardware_concurrency());
  return std::clamp(cores, 1, kMaxDefaultWorkers);
}

}  // namespace

class Reader::Impl {
 public:
  Impl(SampleSourcePtr source, ReaderOptions options)
      : source_(std::move(source)), options_(options) {
    const int64_t all = source_->samples();
    if (all == 0) throw UserError("the data has no sample");
    if (options_.rank < 0 || options_.rank >= options_.world) {
      throw UserError("no rank " + std::to_string(options_.rank) + " reads in a world of " +
                      std::to_string(options_.world));
    }
    if (options_.batch < 0) throw UserError("the batch size must be positive");
    if (options_.workers < 0) throw UserError("the number of workers must be positive");
    if (options_.workers == 0) options_.workers = default_workers(*source_);
    const bool fits = options_.batch <= all / options_.world;
    batch_ = options_.batch == 0 ? all : fits ? options_.batch * options_.world : all + 1;
    if (options_.drop_last && batch_ > all) {
      throw UserError("a batch of " + std::to_string(options_.batch) + each_rank() +
                      " cannot be filled by " + std::to_string(all) +
                      " samples, and the smaller last batch is dropped");
    }
    samples_ = options_.drop_last ? all / batch_ * batch_ : all;
    batch_ = std::min(batch_, samples_);
    last_batch_ = seek_remainder_ = samples_ % batch_;
    for (const Column& column : source_->columns()) sample_bytes_.push_back(column.bytes());
    lead_ = source_->batch_mix() != nullptr ? 1 : 0;
    const Dataset* data = source_->in_memory();
    single_batch_ = batch_ == all && !options_.shuffle_seed && data != nullptr;
    if (single_batch_) {
      for (const auto& [name, tensor] : data->columns) slots_[0].columns.push_back(tensor);
      slots_[0].full = batch_view(0, batch_, shard_of(batch_).first);
      slots_[0].full.id = fresh_batch_id();
      slots_[0].samples.resize(static_cast<size_t>(all));
      std::iota(slots_[0].samples.begin(), slots_[0].samples.end(), 0);
    }
  }

  ~Impl() { stop(); }

  const Batch* next() {
    sample_indices_ = {};
    if (position_in_epoch_ == end_of(epoch_)) {
      position_in_epoch_ = 0;
      ++epoch_;
      return nullptr;
    }
    const int64_t begin = position_in_epoch_, size = size_at(epoch_, position_in_epoch_);
    position_in_epoch_ += size;
    if (single_batch_) {
      const RankShard shard = shard_of(size);
      sample_indices_ =
          std::span(slots_[0].samples)
              .subspan(static_cast<size_t>(begin + shard.first), static_cast<size_t>(shard.size));
      return size == batch_ ? &slots_[0].full : &slots_[0].seek_last;
    }
    if (threads_.empty()) start(begin);
    std::unique_lock lock(mutex_);
    if (in_use_) {
      ++released_;
      free_.notify_all();
    }
    Slot& slot = slots_[static_cast<size_t>(released_) % kSlots];
    ready_.wait(lock, [&] { return opened_ > released_ && slot.is_filled(); });
    in_use_ = true;
    if (slot.error) std::rethrow_exception(slot.error);
    sample_indices_ = std::span(slot.samples)
                          .subspan(static_cast<size_t>(slot.rows - slot.shard.size),
                                   static_cast<size_t>(slot.shard.size));
    if (size == batch_) return &slot.full;
    return epoch_ == seek_epoch_ ? &slot.seek_last : &slot.last;
  }

  int64_t position() const {
    return epoch_ * samples_ +
           (position_in_epoch_ == end_of(epoch_) ? samples_ : position_in_epoch_);
  }

  void seek(int64_t position) {
    if (position < 0) {
      throw UserError("the data cannot resume at sample " + std::to_string(position));
    }
    stop();
    epoch_ = seek_epoch_ = position / samples_;
    position_in_epoch_ = position % samples_;
    seek_remainder_ = (samples_ - position_in_epoch_) % batch_;
    // If a batch is the whole dataset, only the first batch after seek() can be smaller.
    if (single_batch_ && position_in_epoch_ > 0) {
      slots_[0].seek_last =
          batch_view(0, seek_remainder_, position_in_epoch_ + shard_of(seek_remainder_).first);
    }
  }

  std::vector<int64_t> batch_sizes() const {
    std::vector<int64_t> sizes;
    for (const int64_t whole : {batch_, last_batch_, options_.drop_last ? 0 : seek_remainder_}) {
      const int64_t size = shard_of(whole).size;
      if (whole > 0 && std::ranges::find(sizes, size) == sizes.end()) sizes.push_back(size);
    }
    return sizes;
  }

  int64_t batches() const { return samples_ / batch_ + (last_batch_ > 0); }

  int64_t buffer_bytes() const {
    if (single_batch_) return 0;
    int64_t sample = 0;
    for (const int64_t bytes : sample_bytes_) sample += bytes;
    return static_cast<int64_t>(kSlots) *
           (sample * (shard_of(batch_).size + lead_) +
            SampleOrder::bytes(source_->samples(), options_.shuffle_seed.has_value()));
  }

  SkippedRecords skipped() const {
    const std::scoped_lock lock(mutex_);
    SkippedRecords all = source_->skipped();
    all.count += static_cast<int64_t>(bad_samples_.size());
    if (all.first_error.empty()) all.first_error = first_error_;
    return all;
  }

  std::span<const int64_t> sample_indices() const { return sample_indices_; }

  SampleSourcePtr source_;
  ReaderOptions options_;
  int64_t samples_ = 0;

 private:
  /// A buffer of a batch, and how far the workers have filled it. A mixed batch has one row more
  /// than samples: row 0 is the sample before the first one.
  struct Slot {
    std::vector<Tensor> columns;
    std::vector<int64_t> samples;  // index in the source of each row
    Batch full, last, seek_last;
    int64_t epoch = 0, at = 0;      // of the global batch's first sample
    int64_t whole = 0;              // size of the global batch
    RankShard shard;                // of this rank
    int64_t rows = 0;               // to be read
    int64_t claimed = 0, done = 0;  // rows that workers have begun, and finished
    std::exception_ptr error;       // of the first row that could not be read
    int64_t error_row = 0;
    bool is_filled() const { return done == rows; }
  };

  std::string each_rank() const {
    return options_.world == 1 ? "" : " on each of " + std::to_string(options_.world) + " ranks";
  }

  RankShard shard_of(int64_t samples) const {
    return fluid::shard_of(samples, options_.rank, options_.world);
  }

  /// Returns the number of samples in `epoch`, without a dropped last batch.
  int64_t end_of(int64_t epoch) const {
    const bool drops_remainder = options_.drop_last && epoch == seek_epoch_;
    return samples_ - (drops_remainder ? seek_remainder_ : 0);
  }

  /// Returns the size of the global batch that starts at sample `at` of `epoch`.
  int64_t size_at(int64_t epoch, int64_t at) const { return std::min(batch_, end_of(epoch) - at); }

  void start(int64_t at) {
    if (slots_[0].columns.empty()) allocate();
    for (size_t slot = 0; slot < kSlots && seek_remainder_ > 0; ++slot) {
      slots_[slot].seek_last = batch_view(slot, seek_remainder_, lead_);
    }
    opened_ = released_ = 0;
    in_use_ = stopping_ = false;
    next_epoch_ = epoch_;
    next_at_ = at;
    orders_[order_index(next_epoch_)].set(source_->samples(), options_.shuffle_seed, next_epoch_);
    for (int i = 0; i < options_.workers; ++i) threads_.push_back(start_thread([this] { work(); }));
  }

  void stop() {
    {
      const std::scoped_lock lock(mutex_);
      stopping_ = true;
      free_.notify_all();
    }
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }

  void allocate() {
    for (size_t slot = 0; slot < kSlots; ++slot) {
      for (const Column& column : source_->columns()) {
        std::vector<int64_t> shape = {shard_of(batch_).size + lead_};
        shape.insert(shape.end(), column.shape.begin(), column.shape.end());
        slots_[slot].columns.emplace_back(column.dtype, shape);
      }
      slots_[slot].samples.resize(static_cast<size_t>(shard_of(batch_).size + lead_));
      slots_[slot].full = batch_view(slot, batch_, lead_);
      if (last_batch_ > 0) slots_[slot].last = batch_view(slot, last_batch_, lead_);
    }
  }

  /// Returns a batch with this rank's shard of a global batch of `whole` samples. Its columns are
  /// views of buffer `slot` that start at row `from`.
  Batch batch_view(size_t slot, int64_t whole, int64_t from) {
    const RankShard shard = shard_of(whole);
    Batch batch;
    batch.size = shard.size;
    if (options_.world > 1) {
      batch.first = shard.first;
      batch.whole = whole;
    }
    for (size_t c = 0; c < slots_[slot].columns.size(); ++c) {
      Tensor& column = slots_[slot].columns[c];
      std::vector<int64_t> shape = column.shape();
      shape[0] = shard.size;
      auto* data = static_cast<std::byte*>(column.data()) + from * sample_bytes_[c];
      batch.columns.emplace_back(source_->columns()[c].name,
                                 Tensor::view(column.dtype(), shape, data));
    }
    return batch;
  }

  static size_t order_index(int64_t epoch) { return static_cast<size_t>(epoch) % kSlots; }

  /// Opens the next batch for the workers. Needs a free slot, and the lock.
  void open_batch() {
    if (next_at_ == end_of(next_epoch_)) {
      next_at_ = 0;
      ++next_epoch_;
      orders_[order_index(next_epoch_)].set(source_->samples(), options_.shuffle_seed, next_epoch_);
    }
    Slot& slot = slots_[static_cast<size_t>(opened_) % kSlots];
    slot.epoch = next_epoch_;
    slot.at = next_at_;
    slot.whole = size_at(next_epoch_, next_at_);
    slot.shard = shard_of(slot.whole);
    slot.rows = slot.shard.size > 0 ? slot.shard.size + lead_ : 0;
    slot.claimed = slot.done = 0;
    slot.error = nullptr;
    slot.error_row = std::numeric_limits<int64_t>::max();
    next_at_ += slot.whole;
    ++opened_;
    if (slot.is_filled()) ready_.notify_all();
  }

  /// Returns the slot with rows that no worker has begun; opens batches as slots get free. Waits
  /// until there is one. Returns null when stop() was called.
  Slot* wait_for_rows(std::unique_lock<std::mutex>& lock) {
    for (;;) {
      if (stopping_) return nullptr;
      if (opened_ > 0) {
        Slot& newest = slots_[static_cast<size_t>(opened_ - 1) % kSlots];
        if (newest.claimed < newest.rows) return &newest;
      }
      if (opened_ - released_ < static_cast<int64_t>(kSlots)) {
        open_batch();
      } else {
        free_.wait(lock);
      }
    }
  }

  /// Main function of the workers.
  void work() {
    std::vector<std::byte*> to(sample_bytes_.size());
    std::unique_lock lock(mutex_);
    while (Slot* slot = wait_for_rows(lock)) {
      const int64_t begin = slot->claimed;
      const int64_t chunk = std::max<int64_t>(1, slot->rows / (options_.workers * int64_t{16}));
      const int64_t end = options_.workers == 1 ? slot->rows : std::min(begin + chunk, slot->rows);
      slot->claimed = end;
      lock.unlock();
      for (int64_t row = begin; row < end; ++row) read_row(*slot, row, to);
      lock.lock();
      if (lead_ > 0 && slot->done + end - begin == slot->rows && !slot->error) {
        lock.unlock();
        mix(*slot, to);
        lock.lock();
      }
      slot->done += end - begin;
      if (slot->is_filled()) ready_.notify_all();
    }
  }

  /// Mixes a batch whose rows have been read.
  void mix(Slot& slot, std::vector<std::byte*>& to) {
    for (size_t c = 0; c < to.size(); ++c) {
      to[c] = static_cast<std::byte*>(slot.columns[c].data());
    }
    source_->batch_mix()->apply(to, slot.shard.size, draw_of(slot), slot.at);
  }

  Draw draw_of(const Slot& slot) const { return {options_.shuffle_seed.value_or(0), slot.epoch}; }

  /// Returns the position in the epoch of a row of `slot`.
  int64_t position_of(const Slot& slot, int64_t row) const {
    const int64_t in_batch = slot.shard.first + row - lead_;
    return slot.at + (in_batch < 0 ? slot.whole - 1 : in_batch);
  }

  /// Reads a row of `slot`; records its error, if any, in the slot.
  void read_row(Slot& slot, int64_t row, std::vector<std::byte*>& to) {
    try {
      for (size_t c = 0; c < to.size(); ++c) {
        to[c] = static_cast<std::byte*>(slot.columns[c].data()) + row * sample_bytes_[c];
      }
      slot.samples[static_cast<size_t>(row)] =
          read_sample(orders_[order_index(slot.epoch)][position_of(slot, row)], draw_of(slot), to);
    } catch (...) {
      const std::scoped_lock lock(mutex_);
      if (row >= slot.error_row) return;
      slot.error = std::current_exception();
      slot.error_row = row;
    }
  }

  /// Reads sample `first`. If bad records are skipped, reads the next good sample instead of a bad
  /// one. Returns the index of the sample read.
  int64_t read_sample(int64_t first, const Draw& draw, std::span<std::byte* const> to) {
    const int64_t all = source_->samples();
    for (int64_t tried = 0; tried < all; ++tried) {
      const int64_t sample = (first + tried) % all;
      try {
        source_->read(sample, draw, to);
        return sample;
      } catch (const UserError& error) {
        if (options_.bad_records == BadRecords::stop) throw;
        note_bad_sample(sample, error.what());
      }
    }
    throw UserError("no sample of the data can be read: " + first_error_);
  }

  void note_bad_sample(int64_t sample, const std::string& error) {
    const std::scoped_lock lock(mutex_);
    if (!bad_samples_.insert(sample).second || sample != *bad_samples_.begin()) return;
    first_error_ = error;
  }

  std::vector<int64_t> sample_bytes_;  // of each column
  int64_t lead_ = 0;                   // rows before the samples of a batch; see Slot
  int64_t batch_ = 0;                  // number of samples in a full global batch
  int64_t last_batch_ = 0;             // size of the last batch of an epoch; 0: full
  int64_t seek_epoch_ = 0;             // epoch to which seek() moved
  int64_t seek_remainder_ = 0;         // size of the last batch of seek_epoch_; 0: full
  int64_t epoch_ = 0;
  int64_t position_in_epoch_ = 0;            // position in epoch_ of the next batch's first sample
  std::span<const int64_t> sample_indices_;  // of the batch that next() returned last
  bool single_batch_ = false;                // whether every batch is a view of the whole dataset

  Slot slots_[kSlots];
  SampleOrder orders_[kSlots];  // of the epochs of the open batches, by order_index()

  std::vector<std::thread> threads_;
  mutable std::mutex mutex_;
  std::condition_variable free_, ready_;
  int64_t next_epoch_ = 0, next_at_ = 0;  // of the batch that is opened next
  int64_t opened_ = 0;                    // number of batches opened since start()
  int64_t released_ = 0;  // number of batches that next() has released since start()
  bool in_use_ = false, stopping_ = false;
  std::set<int64_t> bad_samples_;
  std::string first_error_;
};

Reader::Reader(Dataset data, ReaderOptions options)
    : Reader(make_source(std::move(data)), options) {}
Reader::Reader(SampleSourcePtr source, ReaderOptions options)
    : impl_(std::make_unique<Impl>(std::move(source), options)) {}
Reader::~Reader() = default;
Reader::Reader(Reader&&) noexcept = default;

const SampleSource& Reader::source() const { return *impl_->source_; }
const ReaderOptions& Reader::options() const { return impl_->options_; }
int64_t Reader::samples() const { return impl_->samples_; }
int64_t Reader::buffer_bytes() const { return impl_->buffer_bytes(); }
int64_t Reader::batches() const { return impl_->batches(); }
const Batch* Reader::next() { return impl_->next(); }
int64_t Reader::position() const { return impl_->position(); }
void Reader::seek(int64_t position) { impl_->seek(position); }
std::span<const int64_t> Reader::sample_indices() const { return impl_->sample_indices(); }
SkippedRecords Reader::skipped() const { return impl_->skipped(); }

std::vector<int64_t> Reader::batch_sizes() const { return impl_->batch_sizes(); }

RankShard shard_of(int64_t samples, int rank, int world) {
  const int64_t each = samples / world, more = samples % world;
  return {each * rank + std::min<int64_t>(rank, more), each + (rank < more)};
}

}  // namespace fluid
