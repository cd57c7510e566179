#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "frontend/readers/dataset.h"
#include "frontend/readers/row_split.h"
#include "frontend/readers/running_moments.h"
#include "frontend/readers/string_table.h"
#include "frontend/readers/text_scan.h"

namespace fluid {

/// What is found in consecutive samples of a text file. The kind of data chooses the number of
/// elements of `categories`, `is_integer` and `moments`.
struct RecordFindings {
  std::vector<int64_t> left_out = {};  ///< samples, in ascending order
  SkippedRecords skipped = {};         ///< those of `left_out` that are bad records
  std::vector<StringTable> categories = {};
  std::vector<char> is_integer = {};  ///< whether all values of a column are integers
  std::vector<RunningMoments> moments = {};
  StringTable splits = {};  ///< values of the column of option split=COLUMN

  /// Adds the findings in the samples that follow, except `splits`.
  void add(const RecordFindings& next);
};

/// Adds the findings in a sample, and sets `split` to its value in the column of option
/// split=COLUMN. Returns false, and adds nothing, to leave the sample out.
using ExamineRecord =
    std::function<bool(int64_t sample, RecordFindings& findings, std::string& split)>;

struct ExamineOptions {
  int64_t chunk = 1;               ///< number of samples that a thread reads at a time
  bool skips_bad_records = false;  ///< leave out a sample for which ExamineRecord throws UserError
  bool has_split = false;          ///< whether to set TextScan::split_of_sample
};

/// Calls `examine` for `samples` samples on all cores, and returns all findings. `none`: findings
/// in no sample. Sets the members of `scan` except `index` and `learned`.
RecordFindings examine_records(int64_t samples, const ExamineOptions& options,
                               const RecordFindings& none, const ExamineRecord& examine,
                               TextScan& scan);

/// Tells the training rows of a text file from the others.
class TrainingRows {
 public:
  /// `samples`: number of samples of the file, those that are left out included. `scan` and
  /// `findings` come from examine_records() if options of `split` divide the rows; `scan` must
  /// outlive this object. `split_column`: column of split=COLUMN. `location`(sample): for messages.
  TrainingRows(const RowSplit& split, const TextScan& scan, const RecordFindings& findings,
               int64_t samples, const std::string& split_column,
               const std::function<std::string(int64_t)>& location);
  /// Whether `sample`, which is not left out, is a training row.
  bool contains(int64_t sample) const;

 private:
  const TextScan& scan_;
  std::vector<int64_t> held_out_;      ///< rows that option val holds out, in ascending order
  std::vector<Split> split_of_value_;  ///< of TextScan::splits; empty without split=COLUMN
};

}  // namespace fluid
