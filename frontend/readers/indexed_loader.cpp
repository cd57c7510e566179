// BatchLoader for a SampleSource: worker threads read the rows of each batch.

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstring>
#include <exception>
#include <limits>
#include <map>
#include <mutex>
#include <numeric>
#include <set>
#include <thread>

#include "frontend/readers/batch_loader.h"
#include "frontend/readers/batch_transform.h"
#include "frontend/readers/sample_order.h"
#include "ir/error.h"
#include "ir/threads.h"

namespace fluid {
namespace {

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

class IndexedLoader : public BatchLoader {
 public:
  IndexedLoader(SampleSourcePtr source, ReaderOptions options)
      : source_(std::move(source)), options_(options) {
    const int64_t all = source_->samples();
    if (all == 0) throw UserError("the data has no sample");
    check_reader_options(options_);
    if (options_.shuffle_buffer > 0) {
      throw UserError("shuffle_buffer is for streams: samples with an index need no buffer");
    }
    if (options_.workers == 0) options_.workers = default_workers(*source_);
    const bool fits = options_.batch <= all / options_.world;
    batch_ = options_.batch == 0 ? all : fits ? options_.batch * options_.world : all + 1;
    if (options_.drop_last && batch_ > all) fail_no_full_batch(options_, all);
    samples_ = options_.drop_last ? all / batch_ * batch_ : all;
    batch_ = std::min(batch_, samples_);
    last_batch_ = seek_remainder_ = samples_ % batch_;
    for (const Column& column : source_->columns()) sample_bytes_.push_back(column.bytes());
    lead_ = source_->batch_transform() != nullptr ? 1 : 0;
    const Dataset* data = source_->in_memory();
    single_batch_ = batch_ == all && !options_.shuffle_seed && data != nullptr;
    if (single_batch_) {
      for (const auto& [name, tensor] : data->columns) slots_[0].columns.push_back(tensor);
      add_view(slots_[0], batch_, shard_of(batch_).first);
      slots_[0].views[batch_].id = fresh_batch_id();
      slots_[0].samples.resize(static_cast<size_t>(all));
      std::iota(slots_[0].samples.begin(), slots_[0].samples.end(), 0);
    }
  }

  ~IndexedLoader() override { stop(); }

  const SampleData& data() const override { return *source_; }
  const SampleSource* as_sample_source() const override { return source_.get(); }
  const ReaderOptions& options() const override { return options_; }
  std::span<const int64_t> sample_indices() const override { return sample_indices_; }
  std::optional<int64_t> samples() const override { return samples_; }
  std::optional<int64_t> batches() const override { return samples_ / batch_ + (last_batch_ > 0); }

  const Batch* next() override {
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
      return &slots_[0].views.at(size);
    }
    if (threads_.empty()) start(begin);
    std::unique_lock lock(mutex_);
    if (in_use_) {
      ++released_;
      free_.notify_all();
    }
    Slot& slot = slots_[static_cast<size_t>(released_) % kBatchSlots];
    ready_.wait(lock, [&] { return opened_ > released_ && slot.is_filled(); });
    in_use_ = true;
    if (slot.error) std::rethrow_exception(slot.error);
    const Batch* batch = &slot.views.at(size);
    if (!slot.replaced.empty() && options_.bad_records == BadRecords::drop) {
      batch = drop_replaced(slot, *batch);
    }
    sample_indices_ = std::span(slot.samples)
                          .subspan(static_cast<size_t>(slot.rows - slot.shard.size),
                                   static_cast<size_t>(batch->size));
    return batch;
  }

  ReaderPosition position() const override {
    if (position_in_epoch_ == end_of(epoch_)) return {epoch_ + 1, 0};
    return {epoch_, position_in_epoch_};
  }

  void seek(const ReaderPosition& position) override {
    check_position(position);
    if (position == this->position()) {
      if (position_in_epoch_ == end_of(epoch_)) next();  // starts the next epoch
      return;
    }
    stop();
    const bool is_end = position.sample >= samples_;
    epoch_ = seek_epoch_ = position.epoch + (is_end ? 1 : 0);
    position_in_epoch_ = is_end ? 0 : position.sample;
    seek_remainder_ = (samples_ - position_in_epoch_) % batch_;
    // An epoch is a single batch. After a seek(), the batch holds the rest of the epoch.
    if (single_batch_ && position_in_epoch_ > 0) {
      add_view(slots_[0], seek_remainder_, position_in_epoch_ + shard_of(seek_remainder_).first);
    }
  }

  std::vector<int64_t> batch_sizes() const override {
    std::vector<int64_t> sizes;
    for (const int64_t global_batch_size :
         {batch_, last_batch_, options_.drop_last ? 0 : seek_remainder_}) {
      const int64_t size = shard_of(global_batch_size).size;
      if (global_batch_size > 0 && std::ranges::find(sizes, size) == sizes.end())
        sizes.push_back(size);
    }
    return sizes;
  }

  int64_t buffer_bytes() const override {
    if (single_batch_) return 0;
    int64_t sample = 0;
    for (const int64_t bytes : sample_bytes_) sample += bytes;
    return static_cast<int64_t>(kBatchSlots) *
           (sample * (shard_of(batch_).size + lead_) +
            SampleOrder::bytes(source_->samples(), options_.shuffle_seed.has_value()));
  }

  SkippedRecords skipped() const override {
    const std::scoped_lock lock(mutex_);
    SkippedRecords all = source_->skipped();
    all.count += static_cast<int64_t>(bad_samples_.size());
    if (all.errors.empty() && !first_error_.empty()) all.errors.push_back(first_error_);
    return all;
  }

  std::set<int64_t> bad_samples() const override {
    const std::scoped_lock lock(mutex_);
    return bad_samples_;
  }

  Dataset read_first(int64_t samples, uint64_t seed) override {
    samples = std::min(samples, source_->samples());
    std::vector<Tensor> buffers = sample_buffers(source_->columns(), samples);
    std::vector<int64_t> rows;
    SkippedRecords skipped;
    for (int64_t i = 0; i < source_->samples() && std::ssize(rows) < samples; ++i) {
      try {
        source_->read(i, {.seed = seed}, sample_addresses(buffers, std::ssize(rows)));
        rows.push_back(source_->source_index(i));
      } catch (const UserError& error) {
        if (options_.bad_records == BadRecords::stop) throw;
        skipped.add(error.what());
      }
    }
    Dataset first = dataset_of(*source_, std::move(buffers));
    if (std::ssize(rows) < samples) first = first.first(std::ssize(rows));
    first.rows = std::move(rows);
    first.skipped = std::move(skipped);
    first.table = source_->table();
    return first;
  }

 private:
  /// A batch buffer and its fill state. With mixup or cutmix, row 0 is an extra row. It holds the
  /// predecessor of the shard's first sample in the global batch, which is treated as cyclic.
  struct Slot {
    std::vector<Tensor> columns;
    std::vector<int64_t> samples;    // row -> index of its sample in source_
    std::set<int64_t> replaced;      // rows whose bad record was replaced by another sample
    std::map<int64_t, Batch> views;  // size of the global batch -> view of `columns`
    Batch rest;                      // view that drop_replaced() returns
    int64_t epoch = 0, at = 0;       // epoch of the batch, and its first position in the epoch
    int64_t global_batch_size = 0;   // size of the global batch
    RankShard shard;                 // shard of this rank
    int64_t rows = 0;                // number of rows to read
    int64_t claimed = 0, done = 0;   // numbers of rows that workers have claimed and finished
    std::exception_ptr error;        // error of the first row that could not be read
    int64_t error_row = 0;
    bool is_filled() const { return done == rows; }
  };

  RankShard shard_of(int64_t samples) const {
    return fluid::shard_of(samples, options_.rank, options_.world);
  }

  /// Returns the number of samples that are read in `epoch`. Excludes a dropped last batch.
  int64_t end_of(int64_t epoch) const {
    const bool drops_remainder = options_.drop_last && epoch == seek_epoch_;
    return samples_ - (drops_remainder ? seek_remainder_ : 0);
  }

  /// Returns the size of the global batch that starts at sample `at` of `epoch`.
  int64_t size_at(int64_t epoch, int64_t at) const { return std::min(batch_, end_of(epoch) - at); }

  void start(int64_t at) {
    if (slots_[0].columns.empty()) allocate();
    for (Slot& slot : slots_) {
      for (const int64_t global_batch_size : {batch_, last_batch_, seek_remainder_}) {
        if (global_batch_size > 0) add_view(slot, global_batch_size, lead_);
      }
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
    for (Slot& slot : slots_) {
      slot.columns = sample_buffers(source_->columns(), shard_of(batch_).size + lead_);
      slot.samples.resize(static_cast<size_t>(shard_of(batch_).size + lead_));
    }
  }

  /// Creates the slot's view for global batches of `global_batch_size` samples, so that next() does
  /// not allocate. `from`: first row of the view.
  void add_view(Slot& slot, int64_t global_batch_size, int64_t from) const {
    slot.views[global_batch_size] =
        batch_view(*source_, slot.columns, global_batch_size, from, options_);
  }

  static size_t order_index(int64_t epoch) { return static_cast<size_t>(epoch) % kBatchSlots; }

  /// Opens the next batch for the workers. Requires a free slot. The caller holds mutex_.
  void open_batch() {
    if (next_at_ == end_of(next_epoch_)) {
      next_at_ = 0;
      ++next_epoch_;
      orders_[order_index(next_epoch_)].set(source_->samples(), options_.shuffle_seed, next_epoch_);
    }
    Slot& slot = slots_[static_cast<size_t>(opened_) % kBatchSlots];
    slot.epoch = next_epoch_;
    slot.at = next_at_;
    slot.global_batch_size = size_at(next_epoch_, next_at_);
    slot.shard = shard_of(slot.global_batch_size);
    slot.rows = slot.shard.size > 0 ? slot.shard.size + lead_ : 0;
    slot.claimed = slot.done = 0;
    slot.replaced.clear();
    slot.error = nullptr;
    slot.error_row = std::numeric_limits<int64_t>::max();
    next_at_ += slot.global_batch_size;
    ++opened_;
    if (slot.is_filled()) ready_.notify_all();
  }

  /// Returns the slot of the newest batch if the batch has unclaimed rows. Otherwise waits for a
  /// free slot and opens the next batch. Returns null when stop() was called.
  Slot* wait_for_rows(std::unique_lock<std::mutex>& lock) {
    for (;;) {
      if (stopping_) return nullptr;
      if (opened_ > 0) {
        Slot& newest = slots_[static_cast<size_t>(opened_ - 1) % kBatchSlots];
        if (newest.claimed < newest.rows) return &newest;
      }
      if (opened_ - released_ < static_cast<int64_t>(kBatchSlots)) {
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

  /// Applies mixup or cutmix to a slot whose rows have been read.
  void mix(Slot& slot, std::vector<std::byte*>& to) {
    for (size_t c = 0; c < to.size(); ++c) {
      to[c] = static_cast<std::byte*>(slot.columns[c].data());
    }
    source_->batch_transform()->apply(to, slot.shard.size, augmentation_seed(slot), slot.at);
  }

  AugmentationSeed augmentation_seed(const Slot& slot) const {
    return {options_.shuffle_seed.value_or(0), slot.epoch};
  }

  /// Returns the position of a row of `slot` within its epoch.
  int64_t position_of(const Slot& slot, int64_t row) const {
    const int64_t in_batch = slot.shard.first + row - lead_;
    return slot.at + (in_batch < 0 ? slot.global_batch_size - 1 : in_batch);
  }

  /// Reads row `row` of `slot`. Stores an error in the slot instead of throwing it.
  void read_row(Slot& slot, int64_t row, std::vector<std::byte*>& to) {
    try {
      for (size_t c = 0; c < to.size(); ++c) {
        to[c] = static_cast<std::byte*>(slot.columns[c].data()) + row * sample_bytes_[c];
      }
      const int64_t wanted = orders_[order_index(slot.epoch)][position_of(slot, row)];
      const int64_t sample = read_sample(wanted, augmentation_seed(slot), to);
      slot.samples[static_cast<size_t>(row)] = sample;
      if (sample == wanted) return;
      const std::scoped_lock lock(mutex_);
      slot.replaced.insert(row);
    } catch (...) {
      const std::scoped_lock lock(mutex_);
      if (row >= slot.error_row) return;
      slot.error = std::current_exception();
      slot.error_row = row;
    }
  }

  /// Moves the rows of `slot` that are not in Slot::replaced to the front. Returns a view of these
  /// rows. `batch`: the view of all rows.
  const Batch* drop_replaced(Slot& slot, const Batch& batch) {
    int64_t kept = lead_;
    for (int64_t row = lead_; row < slot.rows; ++row) {
      if (slot.replaced.contains(row)) continue;
      const std::vector<std::byte*> from = sample_addresses(slot.columns, row),
                                    to = sample_addresses(slot.columns, kept);
      for (size_t c = 0; c < to.size() && kept < row; ++c) {
        std::memcpy(to[c], from[c], static_cast<size_t>(sample_bytes_[c]));
      }
      slot.samples[static_cast<size_t>(kept++)] = slot.samples[static_cast<size_t>(row)];
    }
    slot.rest = batch;
    slot.rest.size = kept - lead_;
    for (auto& [name, column] : slot.rest.columns) {
      std::vector<int64_t> shape = column.shape();
      shape[0] = slot.rest.size;
      column = Tensor::view(column.dtype(), shape, column.data());
    }
    return &slot.rest;
  }

  /// Reads sample `first`. If its record is bad, throws with BadRecords::stop, and otherwise reads
  /// the next good sample. Returns the index of the sample read.
  int64_t read_sample(int64_t first, const AugmentationSeed& seed, std::span<std::byte* const> to) {
    const int64_t all = source_->samples();
    for (int64_t tried = 0; tried < all; ++tried) {
      const int64_t sample = (first + tried) % all;
      try {
        source_->read(sample, seed, to);
        return sample;
      } catch (const UserError& error) {
        if (options_.bad_records == BadRecords::stop) throw;
        record_bad_sample(sample, error.what());
      }
    }
    throw UserError("no sample of the data can be read: " + first_error_);
  }

  void record_bad_sample(int64_t sample, const std::string& error) {
    const std::scoped_lock lock(mutex_);
    if (!bad_samples_.insert(sample).second || sample != *bad_samples_.begin()) return;
    first_error_ = error;
  }

  SampleSourcePtr source_;
  ReaderOptions options_;
  int64_t samples_ = 0;
  std::vector<int64_t> sample_bytes_;  // bytes per sample of each column
  int64_t lead_ = 0;                   // number of extra rows before the shard; see Slot
  int64_t batch_ = 0;                  // number of samples in a full global batch
  int64_t last_batch_ = 0;             // size of the last batch of an epoch; 0: full
  int64_t seek_epoch_ = 0;             // epoch to which seek() moved
  int64_t seek_remainder_ = 0;         // size of the last batch of seek_epoch_; 0: full
  int64_t epoch_ = 0;
  int64_t position_in_epoch_ = 0;            // position in epoch_ of the next batch's first sample
  std::span<const int64_t> sample_indices_;  // see Reader::sample_indices()
  bool single_batch_ = false;                // whether every batch is a view of the whole dataset

  Slot slots_[kBatchSlots];
  SampleOrder orders_[kBatchSlots];  // order_index(epoch) -> sample order of the epoch

  std::vector<std::thread> threads_;
  mutable std::mutex mutex_;
  std::condition_variable free_, ready_;
  int64_t next_epoch_ = 0, next_at_ = 0;  // epoch and position of the next batch to open
  int64_t opened_ = 0;                    // number of batches opened since start()
  int64_t released_ = 0;  // number of batches whose slots next() has freed since start()
  bool in_use_ = false, stopping_ = false;
  std::set<int64_t> bad_samples_;
  std::string first_error_;
};

}  // namespace

std::unique_ptr<BatchLoader> make_batch_loader(SampleSourcePtr source, ReaderOptions options) {
  if (source == nullptr) throw UserError("a Reader needs data: this SPEC names a stream");
  return std::make_unique<IndexedLoader>(std::move(source), options);
}

}  // namespace fluid
