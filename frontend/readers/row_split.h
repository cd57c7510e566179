#pragma once

#include <functional>
#include <string>
#include <vector>

#include "frontend/readers/kind.h"
#include "frontend/readers/spec.h"

namespace fluid {

/// Use of a row of data.
enum class RowUse : uint8_t { train, validation, test };

/// How the options of a SPEC divide the rows of its data:
/// - val=FRACTION holds out rows for validation, which depend only on the option seed=N and the
///   number of rows;
/// - split=COLUMN: a column holds train, val or test, or another name of these;
/// - split=COLUMN:VALUE: the rows with this value are for validation, all others for training.
///   Texts are compared as they are, numbers by value, and true and false are 1 and 0.
class RowSplit {
 public:
  /// `has_splits`: the format has splits, which split= selects. Throws UserError for a fraction
  /// outside (0, 1), for seed= without val=, for val= with split=COLUMN, and without `has_splits`
  /// for split=train|val|test without val=. `args` must outlive the RowSplit.
  RowSplit(const DataArgs& args, bool has_splits);

  /// Returns the names of the options that a RowSplit reads.
  static const std::vector<std::string>& options();

  bool has_fraction() const { return val_ != nullptr; }
  bool uses_column() const { return uses_column_; }
  /// Returns the column of split=COLUMN, which must be one of `names`. Throws UserError.
  std::string column(const std::vector<std::string>& names) const;

  /// Returns the uses of `rows` rows by val=; empty without it. Throws UserError for a single row.
  std::vector<RowUse> uses(int64_t rows) const;
  /// Returns the uses of the rows by `values`, those of the column `column`. `location` locates a
  /// row in messages. Throws UserError for a value that is no name of a use, and if no row has the
  /// VALUE of split=COLUMN:VALUE.
  std::vector<RowUse> uses(const std::string& column, const std::vector<std::string>& values,
                           const std::function<std::string(int64_t)>& location) const;

  /// Whether the data is opened to train.
  bool trains() const { return trains_; }
  /// Returns the rows to read, in order. If validation or test rows are to be read and there are
  /// none, returns the others of the two. Throws UserError if no row is left.
  std::vector<int64_t> rows_to_read(const std::vector<RowUse>& uses) const;

 private:
  std::string column_text() const;  ///< split=COLUMN[:VALUE], for messages

  const DataArgs& args_;
  const std::string* val_;
  bool uses_column_ = false;
  bool trains_;
  RowUse part_ = RowUse::train;  ///< the rows to read, if an option splits them
};

/// The rows that were selected, and how many rows there are for what.
struct SplitSource {
  SampleSourcePtr source;
  std::optional<SplitCounts> counts;  ///< nullopt: no option splits the rows
};

/// Reads the rows of `data` that a RowSplit selects, and removes the column of split=COLUMN. Throws
/// UserError as RowSplit does, and for a column that has not one value for each row.
SplitSource split_rows(SampleSourcePtr data, const DataArgs& args, bool has_splits);

}  // namespace fluid
