#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "frontend/readers/column_table.h"
#include "frontend/readers/kind.h"
#include "frontend/readers/row_split.h"

namespace fluid {

/// The ColumnTable that a reader applies to its columns, or learns from them. Applies the table of
/// the option table=FILE, else DataArgs::training_table(). Learns a table if there is none, and
/// with table=none.
class TableUse {
 public:
  /// Names of the options that a TableUse reads: table, unknown.
  static const std::vector<std::string>& options();

  /// `kind`: the kind of the data. `has_splits`: whether the kind has splits of its own. Throws
  /// UserError for a table of another kind in FILE, and if FILE does not exist and the data has no
  /// training rows to learn from.
  TableUse(const DataArgs& args, const std::string& kind, bool has_splits = false);
  TableUse(const TableUse&) = delete;

  const ColumnTable* given() const { return given_.get(); }  ///< null: the columns are learned
  /// The options of the SPEC; for those that are not given, the options of the given table.
  const DataArgs& args() const { return args_; }
  const RowSplit& split() const { return split_; }
  /// Whether the SPEC does not give the option `name`, and the given table does.
  bool takes_from_table(const std::string& name) const;

  /// Returns a copy of the given table, or an empty one, without feeds. Sets its kind. Its options
  /// are those of `options` that are given.
  ColumnTable start(const std::vector<std::string>& options) const;
  /// Returns `table` for SampleData::table(). If it was learned from data opened to train, writes
  /// it to the FILE of option table=FILE.
  ColumnTablePtr keep(ColumnTable table) const;

  /// Returns the ids of `values`, the values of `column`, by the categories in `table`. With the
  /// option unknown=1, a value without a category gets the next id. Otherwise throws UserError,
  /// whose message begins with `subject`(i), the place of values[i].
  std::vector<int64_t> ids_of(const std::vector<std::string>& values, const std::string& column,
                              const ColumnTable& table,
                              const std::function<std::string(size_t)>& subject) const;

  /// Throws UserError: the given table lacks `column`, or data about it that the options need.
  [[noreturn]] void fail_without_column(const std::string& column) const;

 private:
  std::string kind_;
  ColumnTablePtr given_;
  DataArgs spec_, args_;  ///< without and with the options of the table
  RowSplit split_;
};

/// The categories of a column: its distinct values, in sorted order.
std::vector<std::string> categories_of(const std::vector<std::string>& values);

}  // namespace fluid
