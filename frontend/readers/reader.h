#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "frontend/readers/dataset.h"
#include "ir/tensor.h"

namespace fluid {

struct ReaderOptions {
  int64_t batch = 1;                          ///< samples a batch; 0: all of them
  std::optional<uint64_t> shuffle_seed = {};  ///< absent: in the order of the data
  bool drop_last = false;  ///< leave out the smaller batch at the end of an epoch
};

/// Batches of a dataset, epoch after epoch. A thread gathers the next ones while one is used, into
/// memory that is reused: a step allocates nothing. The order depends on the seed and the epoch
/// alone. A reader that hands out all samples unshuffled gives the same memory, with the same
/// Batch::id, every time.
///
///   for (const Batch& batch : reader) exe.run(batch);   // one epoch
class Reader {
 public:
  /// Throws UserError when there is no sample, or no whole batch to be had with `drop_last`.
  Reader(Dataset data, ReaderOptions options);
  ~Reader();
  Reader(Reader&&) noexcept;

  const Dataset& dataset() const;
  int64_t samples() const;                   ///< that an epoch hands out
  int64_t batches() const;                   ///< in an epoch
  std::vector<int64_t> batch_sizes() const;  ///< the sizes that will come: the full, the last one
  /// Of the memory for batches that next() takes at its first call, and then keeps.
  int64_t buffer_bytes() const;

  /// The next batch of the epoch, or null at its end; the call after that starts the next epoch.
  /// Valid until the next call.
  const Batch* next();
  /// Samples handed out since the reader was made, over all epochs.
  int64_t position() const;
  /// Goes on as if `position` samples had been handed out; it must be where a batch starts.
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
