#pragma once

#include <functional>
#include <string>
#include <vector>

#include "frontend/readers/kind.h"
#include "frontend/readers/spec.h"

namespace fluid {

/// Use of a row of data.
enum class RowUse : uint8_t { train, validation, test };

/// Divides the rows of data by the options of its SPEC:
/// - val=FRACTION holds out random rows for validation. The choice depends only on the option
///   seed=N and the number of rows.
/// - split=COLUMN reads the use of each row from a column: train, val or test, or a synonym.
/// - split=COLUMN:VALUE uses the rows with this value for validation, all others for training.
///   Compares texts literally and numbers by value; true is 1 and false is 0.
class RowSplit {
 public:
  /// `has_splits`: whether the format has splits, which split= selects. Throws UserError for a
  /// fraction outside (0, 1), for seed= without val=, for val= with split=COLUMN, and, unless
  /// `has_splits`, for split=train|val|test without val=. `args` must outlive the RowSplit.
  RowSplit(const DataArgs& args, bool has_splits);

  /// Returns the names of the options that a RowSplit reads.
  static const std::vector<std::string>& options();

  bool has_fraction() const { return val_ != nullptr; }
  bool uses_column() const { return uses_column_; }
  /// Returns the column of split=COLUMN. Throws UserError unless it is one of `names`.
  std::string column(const std::vector<std::string>& names) const;

  /// Returns the use of each of `rows` rows by val=; empty without val=. Throws UserError for a
  /// single row.
  std::vector<RowUse> uses(int64_t rows) const;
  /// Returns the use of the rows with each of `values`, the distinct values of column `column` in
  /// the order of their first rows. `location` locates the first row with values[i] in messages.
  /// Throws UserError for a value that names no use, and if no row has the VALUE of
  /// split=COLUMN:VALUE.
  std::vector<RowUse> uses(const std::string& column, const std::vector<std::string>& values,
                           const std::function<std::string(size_t)>& location) const;

  /// Whether the data is opened to train.
  bool trains() const { return trains_; }
  /// Returns the rows to read, in order. If validation rows are to be read and there are none,
  /// returns the test rows, and vice versa. Throws UserError if no row is left.
  std::vector<int64_t> rows_to_read(const std::vector<RowUse>& uses) const;

 private:
  std::string column_text() const;  ///< split=COLUMN[:VALUE], for messages

  const DataArgs& args_;
  const std::string* val_;
  bool uses_column_ = false;
  bool trains_;
  RowUse part_ = RowUse::train;  ///< the rows to read, if an option splits them
};

/// The selected rows, and the number of rows for each use.
struct SplitSource {
  SampleSourcePtr source;
  std::optional<SplitCounts> counts;  ///< nullopt: no option splits the rows
};

/// Reads the rows of `data` that a RowSplit selects, and removes the column of split=COLUMN. Throws
/// UserError as RowSplit does, and for a column that does not have one value per row.
SplitSource split_rows(SampleSourcePtr data, const DataArgs& args, bool has_splits);

}  // namespace fluid
