#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "frontend/readers/sample_data.h"
#include "frontend/readers/sample_source.h"

namespace fluid {

/// One pass over a SampleStream: an epoch, read by rank `rank` of `world` ranks.
struct StreamPass {
  int64_t epoch = 0;
  int rank = 0, world = 1;
  uint64_t seed = 0;  ///< seed of shuffle_samples() and of augmentations
};

/// Samples that are read in order. Their number is unknown until the end of a pass. A C++ program
/// implements at least columns(), name(), open() and next():
///
///   class Numbers : public fluid::SampleStream {
///    public:
///     const std::vector<fluid::Column>& columns() const override { return columns_; }
///     std::string name() const override { return "numbers"; }
///     void open(const fluid::StreamPass&) override { next_ = 0; }
///     bool next(std::span<std::byte* const> to) override {
///       if (next_ == 1000) return false;
///       if (to[0] != nullptr) std::memcpy(to[0], &next_, sizeof next_);
///       ++next_;
///       return true;
///     }
///    ...
///   };
///
/// Every rank opens the same pass, reads all of its samples, and keeps its shard of each global
/// batch. So the samples of an epoch must not depend on the rank. To resume within an epoch, a
/// Reader opens the pass again and skips the samples that were already read. So a pass must have
/// the same samples each time it is opened.
///
/// Threads: one thread at a time calls open(), next() and close(); any thread may call interrupt().
class SampleStream : public SampleData {
 public:
  /// Begins a pass: next() returns its first sample. Ends the previous pass, if any. Throws
  /// UserError if the samples cannot be read.
  virtual void open(const StreamPass& pass) = 0;
  /// Writes the columns of the next sample to the buffers `to`, one per column, each of
  /// Column::bytes(). Skips a column whose buffer is null. Returns false, and writes nothing, at
  /// the end of the pass. If the sample cannot be read, throws UserError that names the record, and
  /// ends the pass.
  virtual bool next(std::span<std::byte* const> to) = 0;
  /// Ends the pass early and releases its resources, such as a process that writes the samples.
  /// After close(), only open() or the destructor may be called.
  virtual void close() {}
  /// Interrupts a blocked open() or next(), which then throws UserError. Another thread calls
  /// interrupt() repeatedly until the blocked call has ended.
  virtual void interrupt() {}
};

using SampleStreamPtr = std::shared_ptr<SampleStream>;

/// Returns a stream whose passes end after `n` samples of `stream`, or earlier if a pass of
/// `stream` is shorter.
SampleStreamPtr first_samples(SampleStreamPtr stream, int64_t n);
/// Returns `stream` shuffled through a buffer of `buffer` samples, like tf.data's shuffle(). Each
/// sample is drawn from the buffer; the next sample of `stream` replaces it. The order is a
/// function of StreamPass::seed and StreamPass::epoch.
SampleStreamPtr shuffle_samples(SampleStreamPtr stream, int64_t buffer);
/// A transform of a source, such as augment_images() or select_columns().
using SourceTransform = std::function<SampleSourcePtr(SampleSourcePtr)>;
/// Applies `transform` to each sample of `stream`. The index of a sample is its position in the
/// pass. If `transform` reads a sample to infer the type of a column, it reads the first sample of
/// pass `first`.
SampleStreamPtr transform_samples(SampleStreamPtr stream, const SourceTransform& transform,
                                  const StreamPass& first = {});

}  // namespace fluid
