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
  std::optional<size_t> split;         ///< of split=COLUMN
  bool has_categorical_label = false;  ///< the only label, which is not in `categories`

  /// Indices of the columns that hold text: `categories`, then the label if it is categorical.
  std::vector<size_t> categorical() const;
};

/// Chooses among the columns `names` by the options label, columns, drop and categories. `table`
/// (null: none) holds the columns of the training data, for options that are not given: x has their
/// order, without those that drop names; a label that the file lacks is left out. Throws UserError
/// for a column that does not exist or has two uses.
CsvColumns choose_csv_columns(const std::vector<std::string>& names, const DataArgs& args,
                              const RowSplit& split, const ColumnTable* table);

/// Names the chosen columns as in ColumnTable::columns.
std::map<std::string, std::vector<std::string>> names_of(const CsvColumns& columns,
                                                         const std::vector<std::string>& names);

}  // namespace fluid
