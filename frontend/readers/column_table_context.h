#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/readers/column_table.h"
#include "frontend/readers/kind.h"
#include "frontend/readers/row_split.h"
#include "frontend/readers/string_table.h"
#include "ir/function_ref.h"

namespace fluid {

/// The ids of the categories of a column.
class CategoryIds {
 public:
  /// `categories`: in the order of their ids. `has_other`: whether all other values have the next
  /// id.
  CategoryIds(std::vector<std::string> categories, bool has_other);

  const std::vector<std::string>& categories() const { return categories_; }
  /// Returns the id of `value`. Throws UserError for a value without one. The message begins with
  /// `subject`(), which names the location of the value.
  int64_t id_of(std::string_view value, FunctionRef<std::string()> subject) const;

 private:
  std::vector<std::string> categories_;
  StringMap<int64_t> ids_;
  bool has_other_;
};

/// Gives a reader its ColumnTable: that of the option table=FILE, else that of
/// DataArgs::training_table(), which the reader applies to its columns; so, too, if FILE is absent
/// and the data has training rows. If there is neither, or with table=none, the reader builds the
/// table from its own data.
class ColumnTableContext {
 public:
  /// Returns the names of the options that a ColumnTableContext reads.
  static const std::vector<std::string>& options();

  /// `kind`: name of the DataKind. `has_splits`: whether the kind has its own splits. Throws
  /// UserError if FILE holds the table of another kind of data. Also throws UserError if FILE does
  /// not exist, and it is a .safetensors file or the data has no training rows from which to learn
  /// a table.
  ColumnTableContext(const DataArgs& args, const std::string& kind, bool has_splits = false);
  ColumnTableContext(const ColumnTableContext&) = delete;

  const ColumnTable* given() const { return given_.get(); }  ///< null: the table must be learned
  /// The options of the SPEC, and those options of the given table that the SPEC does not set.
  const DataArgs& args() const { return args_; }
  const RowSplit& split() const { return split_; }
  /// Whether the value of option `name` comes from the given table.
  bool option_is_from_table(const std::string& name) const;

  /// Returns the initial table: a copy of the given table, or an empty one. Sets its kind, clears
  /// its feeds, and copies the options named in `options` from args().
  ColumnTable initial_table(const std::vector<std::string>& options) const;
  /// Passes `table` to open_data() if the FILE of option table=FILE is absent, unless the caller of
  /// open_data() will write it.
  void report_table(const ColumnTablePtr& table) const;

  /// Returns the ids of the categories of `column` in `table`. With the option unknown=1, a value
  /// without a category gets the next id. Throws UserError if `table` lacks the column.
  CategoryIds category_ids(const std::string& column, const ColumnTable& table) const;

  /// Throws UserError. The message says that the given table does not describe `column` as the
  /// options require.
  [[noreturn]] void fail_without_column(const std::string& column) const;

 private:
  std::string kind_;
  ColumnTablePtr given_;
  DataArgs spec_, args_;  ///< spec_: options of the SPEC. args_: see args().
  RowSplit split_;
};

/// The categories of a column: its distinct values, in sorted order.
std::vector<std::string> categories_of(const std::vector<std::string>& values);

}  // namespace fluid
