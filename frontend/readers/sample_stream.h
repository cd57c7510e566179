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

/// A pass over a SampleStream: an epoch, as rank `rank` of `world` reads it.
struct StreamPass {
  int64_t epoch = 0;
  int rank = 0, world = 1;
  uint64_t seed = 0;  ///< seed of shuffle_samples() and of augmentations
};

/// Samples that are read in order, and whose number is unknown before the end of a pass. A C++
/// program implements open() and next():
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
/// batch. So the samples of an epoch must not depend on the rank. A run that resumes in the middle
/// of an epoch opens the pass, and reads up to the position: a pass must have the same samples each
/// time it is opened.
///
/// Threads: one thread at a time calls open(), next() and close(); any thread may call interrupt().
class SampleStream : public SampleData {
 public:
  /// Begins a pass: next() returns its first sample. Ends the previous pass, if any. Throws
  /// UserError if the samples cannot be read.
  virtual void open(const StreamPass& pass) = 0;
  /// Writes the columns of the next sample to the buffers `to`, one per column, each of
  /// Column::bytes(). Skips a column whose buffer is null. Returns false, and writes nothing, at
  /// the end of the pass. Throws UserError, which names the record, if it cannot be read; the pass
  /// is then over.
  virtual bool next(std::span<std::byte* const> to) = 0;
  /// Ends the pass before its last sample: releases what it holds, such as a process that writes
  /// the samples. open() is called next, or the destructor.
  virtual void close() {}
  /// Asks a call of open() or next() that waits for data to throw UserError soon. Another thread
  /// calls this, repeatedly until the call has returned.
  virtual void interrupt() {}
};

using SampleStreamPtr = std::shared_ptr<SampleStream>;

/// Returns the first `n` samples of each pass, or all if there are fewer. Closes the pass of
/// `stream` with sample `n`.
SampleStreamPtr first_samples(SampleStreamPtr stream, int64_t n);
/// Returns `stream` in another order, through a buffer of `buffer` samples, as tf.data's shuffle()
/// does: each sample is drawn from the buffer, and the next one of `stream` takes its place. The
/// order is a function of StreamPass::seed and StreamPass::epoch.
SampleStreamPtr shuffle_samples(SampleStreamPtr stream, int64_t buffer);
/// Changes a source, as augment_images() and select_columns() do.
using SourceChange = std::function<SampleSourcePtr(SampleSourcePtr)>;
/// Applies `change` to each sample of `stream`. The index of a sample is its position in the pass.
/// If `change` reads a sample to learn the type of a column, it reads the first sample of pass
/// `first`.
SampleStreamPtr change_samples(SampleStreamPtr stream, const SourceChange& change,
                               const StreamPass& first = {});

}  // namespace fluid
