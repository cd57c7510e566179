#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "frontend/readers/kind.h"
#include "frontend/readers/row_split.h"

namespace fluid {

/// Indices of the columns of a CSV file by their use in the dataset.
struct CsvColumns {
  std::vector<size_t> x, labels, categories, integers;
  std::optional<size_t> split;  ///< column that assigns rows to splits (option split=COLUMN)
  /// Whether there is exactly one label and it is categorical. It is not in `categories`.
  bool has_categorical_label = false;

  /// Indices of the columns that hold text: `categories`, then the label if it is categorical.
  std::vector<size_t> categorical() const;
};

/// Chooses the columns from `names` by the options label, columns, drop, categories and integers.
/// If an option is absent, uses the columns of the training data in `table` (null: none). x then
/// has the column order of the training data, without dropped columns. Labels of the training data
/// that the file lacks are omitted. Throws UserError for a missing column or a column with two
/// uses.
CsvColumns choose_csv_columns(const std::vector<std::string>& names, const DataArgs& args,
                              const RowSplit& split, const ColumnTable* table);

/// Returns option -> names of the chosen columns, as in ColumnTable::columns.
std::map<std::string, std::vector<std::string>> names_of(const CsvColumns& columns,
                                                         const std::vector<std::string>& names);

}  // namespace fluid
