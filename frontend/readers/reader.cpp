#include "frontend/readers/reader.h"

#include <atomic>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <numeric>
#include <thread>

#include "frontend/readers/split_mix64.h"
#include "ir/error.h"
#include "ir/threads.h"

namespace fluid {
namespace {

/// Number of batch buffers: the caller uses one, the prefetch thread fills the others.
constexpr size_t kSlots = 3;

uint64_t fresh_batch_id() {
  static std::atomic<uint64_t> last{0};
  return ++last;
}

}  // namespace

class Reader::Impl {
 public:
  Impl(Dataset data, ReaderOptions options) : data_(std::move(data)), options_(options) {
    for (const auto& [name, tensor] : data_.columns) {
      if (tensor.shape().empty()) {
        throw UserError("column '" + name + "' is " + tensor.str() +
                        ": a column needs a first dimension that counts samples");
      }
    }
    const int64_t all = data_.samples();
    if (all == 0) throw UserError("the data has no sample");
    for (const auto& [name, tensor] : data_.columns) {
      if (tensor.shape().at(0) != all) {
        throw UserError("column '" + name + "' has " + std::to_string(tensor.shape()[0]) +
                        " samples, but the first column has " + std::to_string(all));
      }
    }
    if (options_.rank < 0 || options_.rank >= options_.world) {
      throw UserError("no rank " + std::to_string(options_.rank) + " reads in a world of " +
                      std::to_string(options_.world));
    }
    if (options_.batch < 0) throw UserError("the batch size must be positive");
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
    single_batch_ = batch_ == all && !options_.shuffle_seed;
    if (single_batch_) {
      for (auto& [name, tensor] : data_.columns) slots_[0].push_back(tensor);
      full_[0] = batch_view(0, batch_, shard_of(batch_).first);
      full_[0].id = fresh_batch_id();
    }
  }

  ~Impl() { stop(); }

  const Batch* next() {
    if (position_in_epoch_ == end_of(epoch_)) {
      position_in_epoch_ = 0;
      ++epoch_;
      return nullptr;
    }
    const int64_t begin = position_in_epoch_, size = size_at(epoch_, position_in_epoch_);
    position_in_epoch_ += size;
    if (single_batch_) return size == batch_ ? &full_[0] : &seek_last_[0];
    if (!thread_.joinable()) start(begin);
    std::unique_lock lock(mutex_);
    if (in_use_) {
      ++released_;
      free_.notify_one();
    }
    ready_.wait(lock, [&] { return filled_ > released_; });
    in_use_ = true;
    const size_t slot = static_cast<size_t>(released_) % kSlots;
    if (size == batch_) return &full_[slot];
    return epoch_ == seek_epoch_ ? &seek_last_[slot] : &last_[slot];
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
      seek_last_[0] =
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
    const int64_t all = data_.samples();
    const auto slots = static_cast<int64_t>(kSlots);
    int64_t sample = 0;
    for (size_t c = 0; c < data_.columns.size(); ++c) sample += sample_bytes(c);
    return slots * sample * shard_of(batch_).size + all * static_cast<int64_t>(sizeof order_[0]);
  }

  Dataset data_;
  int64_t samples_ = 0;

 private:
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
    if (slots_[0].empty()) allocate();
    for (size_t slot = 0; slot < kSlots && seek_remainder_ > 0; ++slot) {
      seek_last_[slot] = batch_view(slot, seek_remainder_, 0);
    }
    filled_ = released_ = 0;
    in_use_ = stopping_ = false;
    thread_ = start_thread([this, epoch = epoch_, at] { prefetch_batches(epoch, at); });
  }

  void stop() {
    if (!thread_.joinable()) return;
    {
      const std::scoped_lock lock(mutex_);
      stopping_ = true;
      free_.notify_one();
    }
    thread_.join();
  }

  void allocate() {
    for (size_t slot = 0; slot < kSlots; ++slot) {
      for (const auto& [name, tensor] : data_.columns) {
        std::vector<int64_t> shape = tensor.shape();
        shape[0] = shard_of(batch_).size;
        slots_[slot].emplace_back(tensor.dtype(), shape);
      }
      full_[slot] = batch_view(slot, batch_, 0);
      if (last_batch_ > 0) last_[slot] = batch_view(slot, last_batch_, 0);
    }
    order_.resize(static_cast<size_t>(data_.samples()));
  }

  /// Returns a batch with this rank's shard of a global batch of `whole` samples. Its columns are
  /// views of buffer `slot` that start at sample `from`.
  Batch batch_view(size_t slot, int64_t whole, int64_t from) {
    const RankShard shard = shard_of(whole);
    Batch batch;
    batch.size = shard.size;
    if (options_.world > 1) {
      batch.first = shard.first;
      batch.whole = whole;
    }
    for (size_t c = 0; c < slots_[slot].size(); ++c) {
      Tensor& column = slots_[slot][c];
      std::vector<int64_t> shape = column.shape();
      shape[0] = shard.size;
      auto* data = static_cast<std::byte*>(column.data()) + from * sample_bytes(c);
      batch.columns.emplace_back(data_.columns[c].first, Tensor::view(column.dtype(), shape, data));
    }
    return batch;
  }

  int64_t sample_bytes(size_t column) const {
    return data_.columns[column].second.bytes() / data_.samples();
  }

  /// Main function of the prefetch thread: fills the buffers with successive batches from sample
  /// `at` of `epoch` on, until stop() is called.
  void prefetch_batches(int64_t epoch, int64_t at) {
    set_order(epoch);
    for (int64_t n = 0;; ++n) {
      if (at == end_of(epoch)) {
        at = 0;
        set_order(++epoch);
      }
      {
        std::unique_lock lock(mutex_);
        free_.wait(lock, [&] { return stopping_ || n - released_ < static_cast<int64_t>(kSlots); });
        if (stopping_) return;
      }
      const int64_t size = size_at(epoch, at);
      gather(static_cast<size_t>(n) % kSlots, at, shard_of(size));
      at += size;
      const std::scoped_lock lock(mutex_);
      ++filled_;
      ready_.notify_one();
    }
  }

  /// Sets order_ for `epoch`: a Fisher-Yates shuffle, or the order of the dataset.
  void set_order(int64_t epoch) {
    std::iota(order_.begin(), order_.end(), int64_t{0});
    if (!options_.shuffle_seed) return;
    SplitMix64 random(*options_.shuffle_seed, static_cast<uint64_t>(epoch));
    for (size_t i = order_.size(); i > 1; --i) std::swap(order_[i - 1], order_[random.below(i)]);
  }

  /// Copies the samples of a shard into buffer `slot`. The global batch starts at sample `at`.
  void gather(size_t slot, int64_t at, const RankShard& shard) {
    for (size_t c = 0; c < data_.columns.size(); ++c) {
      const auto size = static_cast<size_t>(sample_bytes(c));
      const auto* from = static_cast<const std::byte*>(data_.columns[c].second.data());
      auto* to = static_cast<std::byte*>(slots_[slot][c].data());
      for (int64_t i = at + shard.first; i < at + shard.first + shard.size; ++i, to += size) {
        std::memcpy(to, from + static_cast<size_t>(order_[static_cast<size_t>(i)]) * size, size);
      }
    }
  }

  ReaderOptions options_;
  int64_t batch_ = 0;           // number of samples in a full global batch
  int64_t last_batch_ = 0;      // size of the last batch of an epoch; 0: full
  int64_t seek_epoch_ = 0;      // epoch to which seek() moved
  int64_t seek_remainder_ = 0;  // size of the last batch of seek_epoch_; 0: full
  int64_t epoch_ = 0;
  int64_t position_in_epoch_ = 0;  // position in epoch_ of the next batch's first sample
  bool single_batch_ = false;      // whether every batch is a view of the whole dataset

  std::vector<Tensor> slots_[kSlots];
  Batch full_[kSlots], last_[kSlots], seek_last_[kSlots];
  // sample indices in the order of the epoch; owned by the prefetch thread while this thread runs
  std::vector<int64_t> order_;

  std::thread thread_;
  std::mutex mutex_;
  std::condition_variable free_, ready_;
  int64_t filled_ = 0;    // number of buffers filled since start()
  int64_t released_ = 0;  // number of buffers that next() has released since start()
  bool in_use_ = false, stopping_ = false;
};

Reader::Reader(Dataset data, ReaderOptions options)
    : impl_(std::make_unique<Impl>(std::move(data), options)) {}
Reader::~Reader() = default;
Reader::Reader(Reader&&) noexcept = default;

const Dataset& Reader::dataset() const { return impl_->data_; }
int64_t Reader::samples() const { return impl_->samples_; }
int64_t Reader::buffer_bytes() const { return impl_->buffer_bytes(); }
int64_t Reader::batches() const { return impl_->batches(); }
const Batch* Reader::next() { return impl_->next(); }
int64_t Reader::position() const { return impl_->position(); }
void Reader::seek(int64_t position) { impl_->seek(position); }

std::vector<int64_t> Reader::batch_sizes() const { return impl_->batch_sizes(); }

RankShard shard_of(int64_t samples, int rank, int world) {
  const int64_t each = samples / world, more = samples % world;
  return {each * rank + std::min<int64_t>(rank, more), each + (rank < more)};
}

}  // namespace fluid
