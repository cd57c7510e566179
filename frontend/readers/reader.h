#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "frontend/readers/dataset.h"
#include "ir/tensor.h"

namespace fluid {

struct ReaderOptions {
  int64_t batch = 1;                          ///< samples per batch and rank; 0: the whole dataset
  std::optional<uint64_t> shuffle_seed = {};  ///< absent: samples keep their order
  bool drop_last = false;                     ///< skip the smaller batch at the end of an epoch
  int rank = 0;  ///< this process, of `world`; it reads its shard of every batch
  int world = 1;
};

/// A rank's shard of a global batch: index of its first sample, and number of samples.
struct RankShard {
  int64_t first = 0;
  int64_t size = 0;
};

/// Returns rank `rank`'s shard of `samples` samples among `world` ranks. Shards are contiguous in
/// rank order; the first ranks take one sample more if they cannot be equal.
RankShard shard_of(int64_t samples, int rank, int world);

/// Hands out the batches of a dataset, epoch after epoch. A thread prefetches batches into reused
/// memory, so a step allocates nothing. The order depends only on the seed and the epoch. A reader
/// of one unshuffled batch returns the same memory, with the same Batch::id, every time.
///
/// The readers of several ranks hand out shards of the same global batches of `batch` samples per
/// rank. Every sample appears once per epoch. All ranks get the same number of batches, although a
/// rank's shard of the last one may be empty.
///
///     for (const Batch& batch : reader) exe.run(batch);   // one epoch
class Reader {
 public:
  /// Throws UserError when there is no sample, or no full batch although `drop_last` is set.
  Reader(Dataset data, ReaderOptions options);
  ~Reader();
  Reader(Reader&&) noexcept;

  const Dataset& dataset() const;
  int64_t samples() const;  ///< samples that an epoch hands out to all ranks together
  int64_t batches() const;  ///< batches per epoch
  /// Returns the sizes of this rank's batches: of a full batch and of the last batch of an epoch.
  /// After seek() the last batch of the current epoch may have yet another size.
  std::vector<int64_t> batch_sizes() const;
  /// Size of the batch memory, which next() allocates at its first call and keeps.
  int64_t buffer_bytes() const;

  /// Returns the next batch of the epoch, or null at its end; the next call then starts a new
  /// epoch. The batch is valid until the next call.
  const Batch* next();
  /// Samples handed out to all ranks since construction, over all epochs.
  int64_t position() const;
  /// Continues as if `position` samples had been handed out, possibly with another batch size or
  /// world size. Throws UserError for a negative position.
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
  Iterator begin() { return Iterator(this); }  ///< the rest of the epoch
  Iterator end() { return {}; }

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace fluid
