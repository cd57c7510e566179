#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/files/csv.h"
#include "frontend/readers/column_table_context.h"
#include "frontend/readers/csv_columns.h"
#include "frontend/readers/missing_rule.h"

namespace fluid {

/// The values of a record of a CSV file, in the order of CsvColumns.
struct CsvRow {
  std::vector<double> x;  ///< NaN for a number that is missing and filled in later
  std::vector<double> y;
  std::vector<int64_t> integers;
  std::vector<int64_t> classes;              ///< labels that are class numbers, instead of `y`
  std::vector<std::string_view> categories;  ///< of CsvColumns::categorical()
  std::string_view split;                    ///< field of CsvColumns::split

  /// Removes the values. Keeps the memory for the next row.
  void clear();
};

/// Converts the records of a CSV file to numbers.
class CsvRows {
 public:
  /// Chooses the columns from `names`, those of the header.
  CsvRows(const ColumnTableContext& context, std::vector<std::string> names);

  const std::vector<std::string>& names() const { return names_; }
  const CsvColumns& columns() const { return columns_; }
  /// Names of the columns in x, in its order.
  std::vector<std::string> x_names() const;
  const MissingRules& missing() const { return missing_; }
  bool labels_are_classes() const { return labels_are_classes_; }
  DType float_dtype() const { return float_dtype_; }  ///< dtype of x and of y

  /// Parses `record` into `row`, whose texts are valid until the thread parses another record.
  /// Returns false if a rule of option missing drops the row. Throws UserError, which names line
  /// and column, for a bad record.
  bool parse(const TextRecord& record, CsvRow& row) const;

 private:
  class Record;

  std::string source_name_;
  std::vector<std::string> names_;
  CsvColumns columns_;
  DType float_dtype_;
  MissingRules missing_;
  std::vector<MissingRule> missing_in_;  ///< column of the file -> its rule
  bool is_read_by_table_;                ///< whether a table names the columns
  bool labels_are_classes_;
};

}  // namespace fluid
