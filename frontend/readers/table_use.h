#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "frontend/readers/column_table.h"
#include "frontend/readers/kind.h"
#include "frontend/readers/row_split.h"

namespace fluid {

/// The ColumnTable by which a reader reads its columns, or which it learns. The table is given by
/// the option table=FILE, else by DataArgs::training_table(). The columns are learned if there is
/// none, and with table=none.
class TableUse {
 public:
  /// Names of the options that a TableUse reads: table, unknown.
  static const std::vector<std::string>& options();

  /// `kind`: the kind of the data. Throws UserError for a table of another kind in FILE, and if
  /// FILE does not exist and the data has no training rows to learn from.
  TableUse(const DataArgs& args, const std::string& kind);
  TableUse(const TableUse&) = delete;

  const ColumnTable* given() const { return given_.get(); }  ///< null: the columns are learned
  /// The options of the SPEC, and those of the given table.
  const DataArgs& args() const { return args_; }
  const RowSplit& split() const { return split_; }

  /// Returns a copy of the given table, or an empty one. It has the kind, and those of the options
  /// `options` that are given, but no feeds.
  ColumnTable start(const std::vector<std::string>& options) const;
  /// Returns `table` as what SampleData::table() returns. If the columns were learned to train,
  /// writes it to the FILE of option table=FILE.
  ColumnTablePtr keep(ColumnTable table) const;

  /// Returns the ids of `values`, those of `column`, by their categories in `table`. A value that
  /// is not among them gets the next id with the option unknown=1; else throws UserError, which
  /// begins with `subject`(i), the place of values[i].
  std::vector<int64_t> ids_of(const std::vector<std::string>& values, const std::string& column,
                              const ColumnTable& table,
                              const std::function<std::string(size_t)>& subject) const;

  /// Throws UserError: the given table lacks `column`, or what the options need of it.
  [[noreturn]] void fail_without_column(const std::string& column) const;

 private:
  std::string kind_;
  ColumnTablePtr given_;
  DataArgs args_;
  RowSplit split_;
};

/// The categories of a column: its distinct values, in sorted order.
std::vector<std::string> categories_of(const std::vector<std::string>& values);

}  // namespace fluid
