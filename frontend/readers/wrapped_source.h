#pragma once

#include "frontend/readers/sample_source.h"

namespace fluid {

/// Base class of sources that wrap another source. Forwards all members except those that read
/// values of samples.
class WrappedSource : public SampleSource {
 public:
  explicit WrappedSource(SampleSourcePtr inner) : inner_(std::move(inner)) {}
  int64_t samples() const override { return inner_->samples(); }
  const std::vector<Column>& columns() const override { return inner_->columns(); }
  std::string name() const override { return inner_->name(); }
  int64_t row(int64_t sample) const override { return inner_->row(sample); }
  std::string location(int64_t sample) const override { return inner_->location(sample); }
  std::vector<std::string> classes(const std::string& column) const override {
    return inner_->classes(column);
  }
  ColumnTablePtr table() const override { return inner_->table(); }
  SkippedRecords skipped() const override { return inner_->skipped(); }
  int64_t resident_bytes() const override { return inner_->resident_bytes(); }
  const BatchMix* batch_mix() const override { return inner_->batch_mix(); }

 protected:
  SampleSourcePtr inner_;
};

}  // namespace fluid
