#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "frontend/readers/dataset.h"
#include "frontend/readers/reader_position.h"
#include "frontend/readers/sample_source.h"
#include "frontend/readers/sample_stream.h"
#include "ir/tensor.h"

namespace fluid {

/// Largest value of ReaderOptions::workers.
inline constexpr int kMaxWorkers = 1024;

/// Options of a Reader.
struct ReaderOptions {
  int64_t batch = 1;  ///< batch size per rank; 0: the whole dataset, not for streams
  std::optional<uint64_t> shuffle_seed = {};  ///< seed of the shuffle; nullopt: no shuffle
  bool drop_last = false;                     ///< whether to drop a smaller last batch of an epoch
  int rank = 0;                               ///< rank of this process in the world
  int world = 1;                              ///< number of ranks
  /// Number of threads that read, decode and augment samples; 0: one for data in memory, else the
  /// number of cores, at most 4. At most kMaxWorkers. The number does not affect the batches.
  int workers = 0;
  /// With BadRecords::drop, batches may be smaller than the sizes in Reader::batch_sizes(), or
  /// empty.
  BadRecords bad_records = BadRecords::stop;
  /// Capacity of the buffer of shuffle_samples(), in samples. Only for a shuffled stream.
  int64_t shuffle_buffer = 0;
};

/// A rank's shard of a global batch: `size` samples from sample `first` on.
struct RankShard {
  int64_t first = 0;
  int64_t size = 0;
};

/// Returns the shard of rank `rank` when `samples` samples are divided among `world` ranks. Shards
/// are contiguous, in rank order. If `samples` is not a multiple of `world`, the first ranks get
/// one more sample.
RankShard shard_of(int64_t samples, int rank, int world);

class BatchLoader;

/// A data loader: iterates over the batches of a SampleSource or a SampleStream, epoch after epoch.
/// Threads prefetch batches into reused buffers, so next() does not allocate. The order of the
/// samples depends only on the seed and the epoch. If a batch is the whole dataset in memory,
/// unshuffled, next() always returns the same memory with the same Batch::id.
///
/// An epoch of a stream is one pass, read by one thread. The buffers hold three batches and
/// ReaderOptions::shuffle_buffer samples. With several ranks, they also hold one global batch.
/// next() returns a batch only when it is known whether the batch ends the epoch. So next() waits
/// for the first sample of the following batch (with `drop_last`, for all of its samples), or for
/// the end of the stream. An error ends the epoch: next() throws it until seek() is called.
///
/// The readers of several ranks return shards of the same global batches. Every sample appears once
/// per epoch. All ranks get the same number of batches, but a rank's shard of the last batch may be
/// empty.
///
///     for (const Batch& batch : reader) exe.run(batch);   // one epoch
class Reader {
 public:
  /// Throws UserError for an empty dataset, columns of different lengths or invalid options. Also
  /// throws UserError if `drop_last` would leave no batch. A stream throws in next() if it is
  /// empty, or if `drop_last` leaves no batch.
  Reader(Dataset data, ReaderOptions options);
  Reader(SampleSourcePtr source, ReaderOptions options);
  Reader(SampleStreamPtr stream, ReaderOptions options);
  ~Reader();
  Reader(Reader&&) noexcept;

  const SampleData& source() const;  ///< the source or the stream
  /// Returns the data if it is read by index. Returns null for a stream.
  const SampleSource* as_sample_source() const;
  const ReaderOptions& options() const;  ///< options, with the actual number of workers
  /// Number of samples per epoch, over all ranks; nullopt for a stream, whose length is unknown.
  std::optional<int64_t> samples() const;
  std::optional<int64_t> batches() const;  ///< number of batches per epoch; nullopt for a stream
  /// Returns the distinct batch sizes of this rank, in this order: of a full batch, of the last
  /// batch of an epoch, and of the last batch of the epoch to which seek() moved. For a stream,
  /// returns only the size of a full batch, because the size of the last batch is unknown before it
  /// is read.
  std::vector<int64_t> batch_sizes() const;
  /// Returns the size in bytes of the prefetch buffers. The first call of next() allocates them.
  int64_t buffer_bytes() const;

  /// Returns the next batch of the epoch, valid until the next call. Returns null at the end of the
  /// epoch; the following call starts the next epoch. Throws the first error of the batch's
  /// samples; the following call returns the next batch.
  const Batch* next();
  /// Returns the index in source() of each sample in the last batch that next() returned. For a
  /// stream, returns the positions in the pass. Valid until the next call of next(). A sample that
  /// replaces a bad record has its own index.
  std::span<const int64_t> sample_indices() const;
  ReaderPosition position() const;
  /// Moves to `position`, a position() of this reader or of a reader with another batch or world
  /// size. For a stream, the next call of next() opens the pass again and skips to `position`.
  /// Throws UserError for a negative position.
  void seek(const ReaderPosition& position);
  /// Reads the first `samples` samples of the data, or all if there are fewer, into memory. `seed`
  /// selects the random choices of augmentations. Mixup and cutmix do not apply. Moves a stream to
  /// the start of its first epoch.
  Dataset read_first(int64_t samples, uint64_t seed);
  /// Returns the bad records that were skipped when the data was opened and in the batches read so
  /// far.
  SkippedRecords skipped() const;
  /// Returns the indices in source() of the records that skipped() counts in the batches. Other
  /// ranks of the world find other ones.
  std::set<int64_t> bad_samples() const;

  /// An input iterator over the remaining batches of an epoch.
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
  Iterator begin() { return Iterator(this); }  ///< reads the next batch of the epoch
  Iterator end() { return {}; }

 private:
  std::unique_ptr<BatchLoader> loader_;
};

}  // namespace fluid
