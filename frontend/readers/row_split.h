#pragma once

#include <array>
#include <functional>
#include <string>
#include <vector>

#include "frontend/readers/kind.h"
#include "frontend/readers/row_set.h"
#include "frontend/readers/spec.h"

namespace fluid {

/// The split that a row belongs to.
enum class Split : uint8_t { train, validation, test };

/// The rows of each Split.
using RowsOfSplits = std::array<RowSet, 3>;

/// Splits the rows of data by the options of its SPEC:
/// - val=FRACTION holds out random rows for validation. The choice depends only on the option
///   seed=N and the number of rows.
/// - split=COLUMN reads the split of each row from a column: train, val or test, or a synonym.
/// - split=COLUMN:VALUE uses the rows with this value for validation, all others for training.
///   Compares texts literally and numbers by value; true is 1 and false is 0.
class RowSplit {
 public:
  /// `has_splits`: whether the format has its own splits, which split= selects. `args` must outlive
  /// the RowSplit. Throws UserError for:
  /// - a fraction outside (0, 1);
  /// - seed= without val=;
  /// - val= with split=COLUMN;
  /// - split=train|val|test without val=, unless `has_splits`.
  RowSplit(const DataArgs& args, bool has_splits);

  /// Returns the names of the options that a RowSplit reads.
  static const std::vector<std::string>& options();

  bool has_fraction() const { return val_ != nullptr; }
  bool uses_column() const { return uses_column_; }
  /// Returns the column of split=COLUMN. Throws UserError unless it is one of `names`.
  std::string split_column(const std::vector<std::string>& names) const;

  /// Returns the rows among `rows` that option val holds out for validation. Throws UserError if
  /// there is only one row.
  RowSet held_out_rows(int64_t rows) const;
  /// Returns the split for `value`, a value of column `column`. `location` returns the location of
  /// a row with this value, for messages. Throws UserError for a value that is not a split name.
  Split split_of(const std::string& column, const std::string& value,
                 FunctionRef<std::string()> location) const;
  /// With split=COLUMN:VALUE, throws UserError unless VALUE is one of `values`, the distinct values
  /// of column `column`.
  void check_value_occurs(const std::string& column, const std::vector<std::string>& values) const;
  /// Returns the split for each of `values`, the distinct values of column `column` in order of
  /// first occurrence. `location`(i) returns the location of the first row with values[i]. Throws
  /// UserError as split_of() and check_value_occurs() do.
  std::vector<Split> splits(const std::string& column, const std::vector<std::string>& values,
                            const std::function<std::string(size_t)>& location) const;

  /// Whether the data is opened for training.
  bool is_training() const { return is_training_; }
  /// Returns the rows to read of those that option val splits. `held_out`: held_out_rows().
  RowSet rows_to_read(RowSet held_out) const;
  /// Returns the rows to read of those that split=COLUMN splits. Without validation rows, split val
  /// reads the test rows. Without test rows, split test reads the validation rows. Throws UserError
  /// if no row is left.
  RowSet rows_to_read(RowsOfSplits rows) const;

 private:
  std::string column_text() const;  ///< split=COLUMN[:VALUE], for messages

  const DataArgs& args_;
  const std::string* val_;
  bool uses_column_ = false;
  bool is_training_;
  Split selected_ = Split::train;  ///< the split to read, if an option splits the rows
};

/// The rows of the selected split, and the number of rows in each split.
struct SplitSource {
  SampleSourcePtr source;
  std::optional<SplitCounts> counts;  ///< nullopt: no option splits the rows
};

/// Reads the rows of `data` that a RowSplit selects, and removes the column of split=COLUMN. Throws
/// UserError as RowSplit does, and for a column that does not have one value per row.
SplitSource split_rows(SampleSourcePtr data, const DataArgs& args, bool has_splits);

}  // namespace fluid
