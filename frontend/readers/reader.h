#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "frontend/readers/dataset.h"
#include "ir/tensor.h"

namespace fluid {

struct ReaderOptions {
  int64_t batch = 1;                          ///< samples a batch and rank; 0: all of the data
  std::optional<uint64_t> shuffle_seed = {};  ///< absent: in the order of the data
  bool drop_last = false;  ///< leave out the smaller batch at the end of an epoch
  int rank = 0;            ///< which of `world` processes reads, each its share of every batch
  int world = 1;
};

/// A part of a batch that several ranks share: the place of its first sample, and its samples.
struct Share {
  int64_t first = 0;
  int64_t size = 0;
};

/// Rank `rank`'s share of `samples` among `world` ranks: in the order of the ranks, as even as can
/// be, the first ones taking one more.
Share share_of(int64_t samples, int rank, int world);

/// Batches of a dataset, epoch after epoch. A thread gathers the next ones while one is used, into
/// memory that is reused: a step allocates nothing. The order depends on the seed and the epoch
/// alone. A reader that hands out all samples unshuffled gives the same memory, with the same
/// Batch::id, every time.
///
/// The readers of several ranks hand out the same whole batches, of `batch` samples a rank, each
/// its share: every sample comes once an epoch, and every rank gets as many batches, even where its
/// share of the last one is empty.
///
///   for (const Batch& batch : reader) exe.run(batch);   // one epoch
class Reader {
 public:
  /// Throws UserError when there is no sample, or no full batch to be had with `drop_last`.
  Reader(Dataset data, ReaderOptions options);
  ~Reader();
  Reader(Reader&&) noexcept;

  const Dataset& dataset() const;
  int64_t samples() const;  ///< that an epoch hands out to all ranks together
  int64_t batches() const;  ///< in an epoch
  /// The sizes that will come to this rank: of a full batch, and of what is left at the end of an
  /// epoch; also of this one, when seek() has made it another.
  std::vector<int64_t> batch_sizes() const;
  /// Of the memory for batches that next() takes at its first call, and then keeps.
  int64_t buffer_bytes() const;

  /// The next batch of the epoch, or null at its end; the call after that starts the next epoch.
  /// Valid until the next call.
  const Batch* next();
  /// Samples handed out to all ranks since the reader was made, over all epochs.
  int64_t position() const;
  /// Goes on as if `position` samples had been handed out, by readers of this or another batch size
  /// and world. Throws UserError for a negative one.
  void seek(int64_t position);

  class Iterator {
   public:
    explicit Iterator(Reader* reader) : reader_(reader) { ++*this; }
    Iterator() = default;
    const Batch& operator*() const { return *batch_; }
    Iterator& operator++() {
      batch_ = reader_->next();
      return *this;
    }
    bool operator!=(const Iterator& other) const { return batch_ != other.batch_; }

   private:
    Reader* reader_ = nullptr;
    const Batch* batch_ = nullptr;
  };
  Iterator begin() { return Iterator(this); }  ///< what is left of the epoch
  Iterator end() { return {}; }

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace fluid
