#pragma once

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "frontend/readers/sample_source.h"
#include "frontend/readers/sample_stream.h"
#include "ir/error.h"

namespace fluid {

/// The samples of a source as a stream.
class SourceStream : public SampleStream {
 public:
  explicit SourceStream(SampleSourcePtr source) : source_(std::move(source)) {}
  const std::vector<Column>& columns() const override { return source_->columns(); }
  std::string name() const override { return "stream of " + source_->name(); }
  void open(const StreamPass& pass) override {
    seed_ = {pass.seed, pass.epoch};
    next_ = 0;
    epochs.push_back(pass.epoch);
  }
  bool next(std::span<std::byte* const> to) override {
    if (next_ == fails_at) throw UserError("sample " + std::to_string(next_) + " is broken");
    if (next_ == source_->samples()) return false;
    source_->read(next_++, seed_, to);
    return true;
  }

  int64_t fails_at = std::numeric_limits<int64_t>::max();
  std::vector<int64_t> epochs;  ///< of the passes so far

 private:
  SampleSourcePtr source_;
  AugmentationSeed seed_;
  int64_t next_ = 0;
};

}  // namespace fluid
