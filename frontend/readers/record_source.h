#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "frontend/files/record_file.h"
#include "frontend/readers/sample_source.h"
#include "frontend/readers/text_scan.h"

namespace fluid {

/// Samples that are the records of a text file, parsed when they are read. With option split=COLUMN
/// the last column is that of the split: its values are in TextScan, so that no record is parsed
/// for it alone.
class RecordSource : public SampleSource {
 public:
  int64_t samples() const override { return file_->records() - first_record_; }
  const std::vector<Column>& columns() const override { return columns_; }
  void read(int64_t sample, const AugmentationSeed&, std::span<std::byte* const> to) const final;
  void read_column(int64_t first, int64_t count, size_t column, std::byte* to) const final;
  std::string name() const override { return file_->source_name(); }
  std::string location(int64_t sample) const override {
    return file_->location(first_record_ + sample);
  }
  std::vector<std::string> classes(const std::string& column) const override;
  ColumnTablePtr table() const override { return table_; }
  SkippedRecords skipped() const override { return scan_.skipped; }
  int64_t resident_bytes() const override;

  int64_t line(int64_t sample) const { return file_->read(first_record_ + sample).line(); }
  const TextScan& scan() const { return scan_; }
  const RecordFile& file() const { return *file_; }

 protected:
  /// Sample 0 is record `first_record` of `file`.
  RecordSource(std::shared_ptr<const RecordFile> file, int64_t first_record, TextScan scan,
               ColumnTablePtr table);

  /// Adds a column. `classes`: SampleData::classes().
  void add_column(Column type, std::vector<std::string> classes = {});
  /// Adds the column of option split=COLUMN, the last one.
  void add_split_column(const std::string& name);

  /// Parses `record` and writes its columns, except that of the split. Otherwise like read().
  virtual void parse(const TextRecord& record, std::span<std::byte* const> to) const = 0;

 private:
  std::shared_ptr<const RecordFile> file_;
  int64_t first_record_;
  TextScan scan_;
  ColumnTablePtr table_;
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> classes_;  ///< of each column
  std::vector<int64_t> split_ids_;  ///< TextScan::splits -> value of the column of the split
  bool has_split_column_ = false;
};

/// Returns the samples of `source` without TextScan::left_out. If `is_in_memory`, parses all of
/// them.
SampleSourcePtr open_records(std::shared_ptr<const RecordSource> source, bool is_in_memory);

}  // namespace fluid
