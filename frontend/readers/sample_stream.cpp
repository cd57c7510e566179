#include "frontend/readers/sample_stream.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "frontend/readers/forwarded_data.h"
#include "frontend/readers/split_mix64.h"
#include "ir/error.h"

namespace fluid {
namespace {

/// The shuffle of epoch e uses SplitMix64 stream kShuffleStream + e.
constexpr uint64_t kShuffleStream = 0x627566666572;

class ForwardedStream : public ForwardedData<SampleStream, SampleStream> {
 public:
  using ForwardedData::ForwardedData;
  void open(const StreamPass& pass) override { inner_->open(pass); }
  void close() override { inner_->close(); }
  void interrupt() override { inner_->interrupt(); }
};

class FirstOfStream : public ForwardedStream {
 public:
  FirstOfStream(SampleStreamPtr inner, int64_t n) : ForwardedStream(std::move(inner)), n_(n) {}
  void open(const StreamPass& pass) override {
    ForwardedStream::open(pass);
    left_ = n_;
  }
  bool next(std::span<std::byte* const> to) override {
    if (left_ == 0) return false;
    const bool has_sample = inner_->next(to);
    if (--left_ == 0) inner_->close();
    return has_sample;
  }

 private:
  int64_t n_, left_ = 0;
};

class ShuffledStream : public ForwardedStream {
 public:
  ShuffledStream(SampleStreamPtr inner, int64_t capacity)
      : ForwardedStream(std::move(inner)), capacity_(capacity) {
    if (capacity < 1) throw UserError("shuffle_buffer must be positive");
  }

  int64_t resident_bytes() const override {
    int64_t sample = 0;
    for (const Column& column : columns()) sample += column.bytes();
    return inner_->resident_bytes() + capacity_ * sample;
  }
  /// Returns a text without the position of the sample, which the shuffle does not record.
  std::string location(int64_t) const override { return "a sample of '" + name() + "'"; }

  void open(const StreamPass& pass) override {
    ForwardedStream::open(pass);
    random_ = SplitMix64(pass.seed, kShuffleStream + static_cast<uint64_t>(pass.epoch));
    if (buffers_.empty()) buffers_ = sample_buffers(columns(), capacity_);
    filled_ = 0;
    ended_ = false;
  }

  bool next(std::span<std::byte* const> to) override {
    while (!ended_ && filled_ < capacity_) {
      ended_ = !inner_->next(sample_addresses(buffers_, filled_));
      if (!ended_) ++filled_;
    }
    if (filled_ == 0) return false;
    const auto drawn = static_cast<int64_t>(random_.below(static_cast<uint64_t>(filled_)));
    const std::vector<std::byte*> row = sample_addresses(buffers_, drawn);
    copy(row, to);
    if (ended_ || !inner_->next(row)) {
      ended_ = true;
      copy(sample_addresses(buffers_, --filled_), row);
    }
    return true;
  }

 private:
  void copy(std::span<std::byte* const> from, std::span<std::byte* const> to) const {
    for (size_t c = 0; c < to.size(); ++c) {
      if (to[c] == nullptr || to[c] == from[c]) continue;
      std::memcpy(to[c], from[c], static_cast<size_t>(columns()[c].bytes()));
    }
  }

  int64_t capacity_;
  std::vector<Tensor> buffers_;
  int64_t filled_ = 0;
  bool ended_ = false;
  SplitMix64 random_{0};
};

/// A SampleSource of one sample: the last sample read from a stream.
class NewestSample : public ForwardedData<SampleSource, SampleStream> {
 public:
  NewestSample(SampleStreamPtr stream, const StreamPass& first)
      : ForwardedData(std::move(stream)), first_(first), buffers_(sample_buffers(columns(), 1)) {}

  int64_t samples() const override { return 1; }
  void read(int64_t, const AugmentationSeed&, std::span<std::byte* const> to) const override {
    if (!has_sample_) read_first();
    for (size_t c = 0; c < to.size(); ++c) {
      if (to[c] == nullptr) continue;
      std::memcpy(to[c], buffers_[c].data(), static_cast<size_t>(buffers_[c].bytes()));
    }
  }
  bool advance() const { return has_sample_ = inner_->next(sample_addresses(buffers_, 0)); }

 private:
  void read_first() const {
    inner_->open(first_);
    if (!advance()) throw UserError("data '" + name() + "' holds no sample");
  }

  StreamPass first_;
  mutable std::vector<Tensor> buffers_;
  mutable bool has_sample_ = false;
};

class TransformedStream : public ForwardedStream {
 public:
  TransformedStream(SampleStreamPtr inner, const SourceTransform& transform,
                    const StreamPass& first)
      : ForwardedStream(inner),
        newest_(std::make_shared<NewestSample>(std::move(inner), first)),
        transformed_(transform(newest_)) {}

  const std::vector<Column>& columns() const override { return transformed_->columns(); }
  std::vector<std::string> classes(const std::string& column) const override {
    return transformed_->classes(column);
  }
  ColumnTablePtr table() const override { return transformed_->table(); }
  const BatchTransform* batch_transform() const override { return transformed_->batch_transform(); }

  void open(const StreamPass& pass) override {
    ForwardedStream::open(pass);
    seed_ = {pass.seed, pass.epoch};
    read_ = 0;
  }
  bool next(std::span<std::byte* const> to) override {
    const auto is_null = [](const std::byte* buffer) { return buffer == nullptr; };
    const std::vector<std::byte*> none(inner_->columns().size(), nullptr);
    const bool skips = std::ranges::all_of(to, is_null);
    if (skips ? !inner_->next(none) : !newest_->advance()) return false;
    const int64_t sample = read_++;
    if (!skips) transformed_->read(sample, seed_, to);
    return true;
  }

 private:
  std::shared_ptr<NewestSample> newest_;
  SampleSourcePtr transformed_;
  AugmentationSeed seed_;
  int64_t read_ = 0;  // number of samples read in this pass
};

}  // namespace

SampleStreamPtr first_samples(SampleStreamPtr stream, int64_t n) {
  return std::make_shared<FirstOfStream>(std::move(stream), n);
}

SampleStreamPtr shuffle_samples(SampleStreamPtr stream, int64_t buffer) {
  return std::make_shared<ShuffledStream>(std::move(stream), buffer);
}

SampleStreamPtr transform_samples(SampleStreamPtr stream, const SourceTransform& transform,
                                  const StreamPass& first) {
  return std::make_shared<TransformedStream>(std::move(stream), transform, first);
}

}  // namespace fluid
