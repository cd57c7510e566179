#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/readers/column_table_context.h"
#include "frontend/readers/string_table.h"
#include "ir/function_ref.h"

namespace fluid {

/// The columns of categories of a text file, while examine_records() reads it. Without a given
/// table, learns their categories. With one, detects values without a category, if bad records are
/// skipped.
class CategoryColumns {
 public:
  /// `names`: names of the columns. `context` must outlive this object. Throws UserError if the
  /// given table lacks a column.
  CategoryColumns(const ColumnTableContext& context, std::vector<std::string> names);

  /// Returns the initial value of RecordFindings::categories.
  std::vector<StringTable> no_findings() const;
  /// Adds the value of column `i` in record `sample` to `found`, unless that is empty. Throws
  /// UserError for a value without a category; the message begins with `subject`().
  void examine(size_t i, std::string_view value, int64_t sample, std::vector<StringTable>& found,
               FunctionRef<std::string()> subject) const;
  /// Sets the categories of the columns in `table`. Does nothing if `found` is empty.
  void set_classes(const std::vector<StringTable>& found, ColumnTable& table) const;

 private:
  std::vector<std::string> names_;
  bool learns_;
  std::vector<CategoryIds> given_ids_;  ///< empty: values are not checked
};

}  // namespace fluid
