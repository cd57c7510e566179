#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "frontend/readers/sample_source.h"

namespace fluid {

/// Forwards the members that describe the data to another source or stream, `inner_`. `Base` is
/// SampleSource or SampleStream; `Inner` is the class of `inner_`.
template <class Base, class Inner>
class ForwardedData : public Base {
 public:
  explicit ForwardedData(std::shared_ptr<Inner> inner) : inner_(std::move(inner)) {}
  const std::vector<Column>& columns() const override { return inner_->columns(); }
  std::string name() const override { return inner_->name(); }
  int64_t source_index(int64_t sample) const override { return inner_->source_index(sample); }
  std::string location(int64_t sample) const override { return inner_->location(sample); }
  std::vector<std::string> classes(const std::string& column) const override {
    return inner_->classes(column);
  }
  ColumnTablePtr table() const override { return inner_->table(); }
  SkippedRecords skipped() const override { return inner_->skipped(); }
  void check_files() const override { inner_->check_files(); }
  int64_t resident_bytes() const override { return inner_->resident_bytes(); }
  const BatchTransform* batch_transform() const override { return inner_->batch_transform(); }

 protected:
  std::shared_ptr<Inner> inner_;
};

/// Base class of sources that wrap another SampleSource. Forwards the members that describe the
/// data, and samples(). Derived classes implement read().
class ForwardedSource : public ForwardedData<SampleSource, const SampleSource> {
 public:
  using ForwardedData::ForwardedData;
  int64_t samples() const override { return inner_->samples(); }
};

}  // namespace fluid
