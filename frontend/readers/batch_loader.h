#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "frontend/readers/reader.h"

namespace fluid {

/// Number of batch buffers: the caller uses one, the threads fill the others.
inline constexpr size_t kBatchSlots = 3;

/// The implementation of Reader. Each member of Reader calls the BatchLoader member with the same
/// name.
class BatchLoader {
 public:
  virtual ~BatchLoader() = default;
  virtual const SampleData& data() const = 0;
  virtual const SampleSource* as_sample_source() const { return nullptr; }
  virtual const ReaderOptions& options() const = 0;
  virtual std::optional<int64_t> samples() const { return std::nullopt; }
  virtual std::optional<int64_t> batches() const { return std::nullopt; }
  virtual std::vector<int64_t> batch_sizes() const = 0;
  virtual int64_t buffer_bytes() const = 0;
  virtual const Batch* next() = 0;
  virtual std::span<const int64_t> sample_indices() const = 0;
  virtual ReaderPosition position() const = 0;
  virtual void seek(const ReaderPosition& position) = 0;
  virtual SkippedRecords skipped() const = 0;
  virtual std::set<int64_t> bad_samples() const { return {}; }
  virtual Dataset read_first(int64_t samples, uint64_t seed) = 0;
};

std::unique_ptr<BatchLoader> make_batch_loader(SampleSourcePtr source, ReaderOptions options);
std::unique_ptr<BatchLoader> make_batch_loader(SampleStreamPtr stream, ReaderOptions options);

/// Throws UserError for a rank outside the world, and for a negative batch size or number of
/// workers.
void check_reader_options(const ReaderOptions& options);
/// Throws UserError for a negative position.
void check_position(const ReaderPosition& position);
/// Throws UserError because `samples` samples are too few for one full batch on each rank.
[[noreturn]] void fail_no_full_batch(const ReaderOptions& options, int64_t samples);
/// Returns this rank's shard of a global batch of `global_batch_size` samples. Each column is a
/// view of a buffer, starting at row `from`.
Batch batch_view(const SampleData& data, std::vector<Tensor>& buffers, int64_t global_batch_size,
                 int64_t from, const ReaderOptions& options);
/// Returns `buffers` as the columns of a dataset, with the column names of `data`.
Dataset dataset_of(const SampleData& data, std::vector<Tensor> buffers);

}  // namespace fluid
