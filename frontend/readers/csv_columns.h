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
  std::vector<size_t> x, labels, categories;
  std::optional<size_t> split;         ///< the column of split=COLUMN
  bool has_categorical_label = false;  ///< the only label is categorical, and not in `categories`

  /// Indices of the columns that hold text: `categories`, then the label if it is categorical.
  std::vector<size_t> categorical() const;
};

/// Chooses among the columns `names` by the options label, columns, drop and categories. For an
/// option that is not given, uses the columns of the training data in `table` (null: none). x then
/// has the order of the training data, without dropped columns, and a label that the file lacks is
/// left out. Throws UserError for a column that does not exist or has two uses.
CsvColumns choose_csv_columns(const std::vector<std::string>& names, const DataArgs& args,
                              const RowSplit& split, const ColumnTable* table);

/// Returns the names of the chosen columns, as in ColumnTable::columns.
std::map<std::string, std::vector<std::string>> names_of(const CsvColumns& columns,
                                                         const std::vector<std::string>& names);

}  // namespace fluid
