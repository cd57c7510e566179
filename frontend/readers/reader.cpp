#include "frontend/readers/reader.h"

#include <atomic>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <numeric>
#include <thread>

#include "frontend/readers/random.h"
#include "ir/error.h"

namespace fluid {
namespace {

/// Batches in flight: one in use, the others ready or being gathered.
constexpr size_t kSlots = 3;

/// The dataset's columns with `size` samples each, in the memory of `store`.
Batch view_of(const Dataset& data, std::vector<Tensor>& store, int64_t size) {
  Batch batch;
  batch.size = size;
  for (size_t i = 0; i < store.size(); ++i) {
    std::vector<int64_t> shape = store[i].shape();
    shape[0] = size;
    batch.columns.emplace_back(data.columns[i].first,
                               Tensor::view(store[i].dtype(), shape, store[i].data()));
  }
  return batch;
}

uint64_t fresh_batch_id() {
  static std::atomic<uint64_t> last{0};
  return ++last;
}

}  // namespace

class Reader::Impl {
 public:
  Impl(Dataset data, ReaderOptions options) : data_(std::move(data)), options_(options) {
    const int64_t all = data_.samples();
    if (all == 0) throw UserError("the data has no sample");
    for (const auto& [name, tensor] : data_.columns) {
      if (tensor.shape().at(0) != all) {
        throw UserError("column '" + name + "' has " + std::to_string(tensor.shape()[0]) +
                        " samples, but the first column has " + std::to_string(all));
      }
    }
    if (options_.batch < 0) throw UserError("the batch size must be positive");
    if (options_.batch == 0) options_.batch = all;
    remainder_ = options_.drop_last ? 0 : all % options_.batch;
    batches_ = all / options_.batch + (remainder_ > 0);
    if (batches_ == 0) {
      throw UserError("a batch of " + std::to_string(options_.batch) + " cannot be filled by " +
                      std::to_string(all) + " samples, and the smaller last batch is dropped");
    }
    samples_ = all / options_.batch * options_.batch + remainder_;
    whole_ = batches_ == 1 && samples_ == all && !options_.shuffle_seed;
    if (whole_) {
      for (auto& [name, tensor] : data_.columns) store_[0].push_back(tensor);
      full_[0] = view_of(data_, store_[0], all);
      full_[0].id = fresh_batch_id();
    }
  }

  ~Impl() { stop(); }

  const Batch* next() {
    if (delivered_ == batches_) {
      delivered_ = 0;
      ++epoch_;
      return nullptr;
    }
    ++delivered_;
    if (whole_) return &full_[0];
    if (!thread_.joinable()) start();
    std::unique_lock lock(mutex_);
    if (in_use_) {
      ++released_;
      free_.notify_one();
    }
    ready_.wait(lock, [&] { return filled_ > released_; });
    in_use_ = true;
    const size_t slot = static_cast<size_t>(released_) % kSlots;
    return delivered_ == batches_ && remainder_ > 0 ? &last_[slot] : &full_[slot];
  }

  int64_t position() const {
    const bool ended = delivered_ == batches_;
    return epoch_ * samples_ + (ended ? samples_ : delivered_ * options_.batch);
  }

  void seek(int64_t position) {
    const int64_t in_epoch = position % samples_;
    if (position < 0 || in_epoch % options_.batch != 0) {
      throw UserError("the data cannot go on at sample " + std::to_string(position) +
                      ": no batch of " + std::to_string(options_.batch) + " starts there");
    }
    stop();
    epoch_ = position / samples_;
    delivered_ = in_epoch / options_.batch;
  }

  int64_t buffer_bytes() const {
    if (whole_) return 0;
    const int64_t all = data_.samples(), batch = std::min(options_.batch, samples_);
    const auto slots = static_cast<int64_t>(kSlots);
    return slots * data_.bytes() / all * batch + all * static_cast<int64_t>(sizeof order_[0]);
  }

  Dataset data_;
  ReaderOptions options_;
  int64_t samples_ = 0, batches_ = 0, remainder_ = 0;

 private:
  void start() {
    if (store_[0].empty()) allocate();
    filled_ = released_ = 0;
    in_use_ = stopping_ = false;
    thread_ = std::thread([this, epoch = epoch_, batch = delivered_ - 1] { fill(epoch, batch); });
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
        shape[0] = std::min(options_.batch, samples_);
        store_[slot].emplace_back(tensor.dtype(), shape);
      }
      full_[slot] = view_of(data_, store_[slot], std::min(options_.batch, samples_));
      if (remainder_ > 0) last_[slot] = view_of(data_, store_[slot], remainder_);
    }
    order_.resize(static_cast<size_t>(data_.samples()));
  }

  /// The thread: gathers batches from `batch` of `epoch` on until told to stop.
  void fill(int64_t epoch, int64_t batch) {
    arrange(epoch);
    for (int64_t n = 0;; ++n, ++batch) {
      if (batch == batches_) {
        batch = 0;
        arrange(++epoch);
      }
      {
        std::unique_lock lock(mutex_);
        free_.wait(lock, [&] { return stopping_ || n - released_ < static_cast<int64_t>(kSlots); });
        if (stopping_) return;
      }
      gather(static_cast<size_t>(n) % kSlots, batch);
      const std::scoped_lock lock(mutex_);
      ++filled_;
      ready_.notify_one();
    }
  }

  /// The order of the samples in `epoch`: Fisher and Yates' shuffle.
  void arrange(int64_t epoch) {
    std::iota(order_.begin(), order_.end(), int64_t{0});
    if (!options_.shuffle_seed) return;
    Random random(*options_.shuffle_seed, static_cast<uint64_t>(epoch));
    for (size_t i = order_.size(); i > 1; --i) std::swap(order_[i - 1], order_[random.below(i)]);
  }

  void gather(size_t slot, int64_t batch) {
    const int64_t first = batch * options_.batch;
    const int64_t last = std::min(first + options_.batch, samples_);
    for (size_t c = 0; c < data_.columns.size(); ++c) {
      const Tensor& column = data_.columns[c].second;
      const auto size = static_cast<size_t>(column.bytes() / data_.samples());
      const auto* from = static_cast<const std::byte*>(column.data());
      auto* to = static_cast<std::byte*>(store_[slot][c].data());
      for (int64_t i = first; i < last; ++i, to += size) {
        std::memcpy(to, from + static_cast<size_t>(order_[static_cast<size_t>(i)]) * size, size);
      }
    }
  }

  bool whole_ = false;
  int64_t epoch_ = 0, delivered_ = 0;  // delivered_ counts batches of the epoch

  std::vector<Tensor> store_[kSlots];
  Batch full_[kSlots], last_[kSlots];
  std::vector<int64_t> order_;  // the thread's own while it runs

  std::thread thread_;
  std::mutex mutex_;
  std::condition_variable free_, ready_;
  int64_t filled_ = 0, released_ = 0;  // batches since start(); slots are taken in turn
  bool in_use_ = false, stopping_ = false;
};

Reader::Reader(Dataset data, ReaderOptions options)
    : impl_(std::make_unique<Impl>(std::move(data), options)) {}
Reader::~Reader() = default;
Reader::Reader(Reader&&) noexcept = default;

const Dataset& Reader::dataset() const { return impl_->data_; }
int64_t Reader::samples() const { return impl_->samples_; }
int64_t Reader::buffer_bytes() const { return impl_->buffer_bytes(); }
int64_t Reader::batches() const { return impl_->batches_; }
const Batch* Reader::next() { return impl_->next(); }
int64_t Reader::position() const { return impl_->position(); }
void Reader::seek(int64_t position) { impl_->seek(position); }

std::vector<int64_t> Reader::batch_sizes() const {
  std::vector<int64_t> sizes;
  if (impl_->samples_ >= impl_->options_.batch) sizes.push_back(impl_->options_.batch);
  if (impl_->remainder_ > 0) sizes.push_back(impl_->remainder_);
  return sizes;
}

}  // namespace fluid
