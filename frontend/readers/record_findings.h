#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "frontend/readers/dataset.h"
#include "frontend/readers/row_split.h"
#include "frontend/readers/running_moments.h"
#include "frontend/readers/string_table.h"
#include "frontend/readers/text_scan.h"
#include "ir/function_ref.h"

namespace fluid {

/// The findings in consecutive samples of a text file. The kind of data chooses the number of
/// elements of `categories`, `is_integer` and `moments`.
struct RecordFindings {
  std::vector<int64_t> left_out = {};  ///< samples, in ascending order
  SkippedRecords skipped = {};         ///< the bad records of `left_out`
  std::vector<StringTable> categories = {};
  std::vector<char> is_integer = {};  ///< whether all values of a column are integers
  std::vector<RunningMoments> moments = {};
  StringTable splits = {};  ///< values of the column of option split=COLUMN

  /// Adds the findings in the samples that follow, except `splits`.
  void add(const RecordFindings& next);
};

/// Tells the training rows of a text file from the others.
class TrainingRows {
 public:
  /// `held_out`: rows that option val holds out. `split_of_value`: split of each of
  /// TextScan::splits; empty without split=COLUMN. `scan` must outlive this object.
  TrainingRows(const TextScan& scan, RowSet held_out, std::vector<Split> split_of_value)
      : scan_(scan), held_out_(std::move(held_out)), split_of_value_(std::move(split_of_value)) {}
  /// Whether `sample`, which is not left out, is a training row.
  bool contains(int64_t sample) const;

 private:
  const TextScan& scan_;
  RowSet held_out_;
  std::vector<Split> split_of_value_;
};

/// Takes the value of a sample in the column of option split=COLUMN. Throws UserError for a value
/// that is not a split name, if bad records are skipped.
using SetSplit = FunctionRef<void(std::string_view)>;

/// Calls `set_split`, then adds the findings in a sample. Adds to RecordFindings::moments only if
/// the sample is in `training`. Returns false, and adds nothing, to leave the sample out.
using ExamineRecord = std::function<bool(int64_t sample, const TrainingRows& training,
                                         RecordFindings& findings, SetSplit set_split)>;

/// The samples that examine_records() reads.
struct RecordsToExamine {
  int64_t samples = 0;             ///< number of samples of the file
  int64_t chunk = 1;               ///< number of samples that a thread reads at a time
  bool skips_bad_records = false;  ///< leave out a sample for which ExamineRecord throws UserError
  bool drops_rows = false;         ///< whether ExamineRecord leaves out samples
  std::string split_column = {};   ///< column of option split=COLUMN; empty: none
  std::function<std::string(int64_t)> location = nullptr;  ///< location of a sample, for messages
};

/// Calls `examine` for all samples on all cores, and returns all findings. `initial`: findings in
/// no sample. `split` divides the rows. Reads the samples a second time for the moments if the
/// first time shows which rows are training rows. Sets the members of `scan` except `index`,
/// `table` and `learned`.
RecordFindings examine_records(const RecordsToExamine& records, const RowSplit& split,
                               const RecordFindings& initial, const ExamineRecord& examine,
                               TextScan& scan);

}  // namespace fluid
