#include "frontend/readers/reader.h"

#include <algorithm>

#include "frontend/readers/batch_loader.h"
#include "ir/error.h"

namespace fluid {

RankShard shard_of(int64_t samples, int rank, int world) {
  const int64_t each = samples / world, more = samples % world;
  return {each * rank + std::min<int64_t>(rank, more), each + (rank < more)};
}

void check_reader_options(const ReaderOptions& options) {
  if (options.rank < 0 || options.rank >= options.world) {
    throw UserError("no rank " + std::to_string(options.rank) + " reads in a world of " +
                    std::to_string(options.world));
  }
  if (options.batch < 0) throw UserError("the batch size must be positive");
  if (options.workers < 0 || options.workers > kMaxWorkers) {
    throw UserError("the number of workers must be 1 to " + std::to_string(kMaxWorkers) + ", not " +
                    std::to_string(options.workers));
  }
}

void check_position(const ReaderPosition& position) {
  if (position.epoch >= 0 && position.sample >= 0) return;
  throw UserError("the data cannot resume at sample " + std::to_string(position.sample) +
                  " of epoch " + std::to_string(position.epoch));
}

void fail_no_full_batch(const ReaderOptions& options, int64_t samples) {
  const std::string each_rank =
      options.world == 1 ? "" : " on each of " + std::to_string(options.world) + " ranks";
  throw UserError("a batch of " + std::to_string(options.batch) + each_rank +
                  " cannot be filled by " + std::to_string(samples) +
                  " samples, and the smaller last batch is dropped");
}

Batch batch_view(const SampleData& data, std::vector<Tensor>& buffers, int64_t global_batch_size,
                 int64_t from, const ReaderOptions& options) {
  const RankShard shard = shard_of(global_batch_size, options.rank, options.world);
  Batch batch;
  batch.size = shard.size;
  if (options.world > 1) {
    batch.first = shard.first;
    batch.global_batch_size = global_batch_size;
  }
  const std::vector<std::byte*> rows = sample_addresses(buffers, from);
  for (size_t c = 0; c < buffers.size(); ++c) {
    std::vector<int64_t> shape = buffers[c].shape();
    shape[0] = shard.size;
    batch.columns.emplace_back(data.columns()[c].name,
                               Tensor::view(buffers[c].dtype(), shape, rows[c]));
  }
  return batch;
}

Dataset dataset_of(const SampleData& data, std::vector<Tensor> buffers) {
  Dataset samples{.source = data.name()};
  for (size_t c = 0; c < buffers.size(); ++c) {
    const std::string& column = data.columns()[c].name;
    samples.columns.emplace_back(column, std::move(buffers[c]));
    const std::vector<std::string> classes = data.classes(column);
    if (!classes.empty()) samples.classes[column] = classes;
  }
  return samples;
}

Reader::Reader(Dataset data, ReaderOptions options)
    : Reader(make_source(std::move(data)), options) {}
Reader::Reader(SampleSourcePtr source, ReaderOptions options)
    : loader_(make_batch_loader(std::move(source), options)) {}
Reader::Reader(SampleStreamPtr stream, ReaderOptions options)
    : loader_(make_batch_loader(std::move(stream), options)) {}
Reader::~Reader() = default;
Reader::Reader(Reader&&) noexcept = default;

const SampleData& Reader::source() const { return loader_->data(); }
const SampleSource* Reader::as_sample_source() const { return loader_->as_sample_source(); }
std::optional<int64_t> Reader::samples() const { return loader_->samples(); }
std::optional<int64_t> Reader::batches() const { return loader_->batches(); }
std::vector<int64_t> Reader::batch_sizes() const { return loader_->batch_sizes(); }
const ReaderOptions& Reader::options() const { return loader_->options(); }
std::span<const int64_t> Reader::sample_indices() const { return loader_->sample_indices(); }
int64_t Reader::buffer_bytes() const { return loader_->buffer_bytes(); }
const Batch* Reader::next() { return loader_->next(); }
ReaderPosition Reader::position() const { return loader_->position(); }
void Reader::seek(const ReaderPosition& position) { loader_->seek(position); }
SkippedRecords Reader::skipped() const { return loader_->skipped(); }
std::set<int64_t> Reader::bad_samples() const { return loader_->bad_samples(); }
Dataset Reader::read_first(int64_t samples, uint64_t seed) {
  return loader_->read_first(samples, seed);
}

}  // namespace fluid
