#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace fluid {

struct ColumnTable;

using ColumnTablePtr = std::shared_ptr<const ColumnTable>;

/// Describes the columns of the training data: names, options, categories, means and standard
/// deviations. Readers apply the table to evaluation and prediction data. The table is stored in
/// parameter files (Executor::save()), in checkpoints, and in the file of the option table=FILE.
struct ColumnTable {
  struct Moments {
    double mean = 0;
    double std = 1;  ///< population standard deviation; 1 for a constant column
    bool operator==(const Moments&) const = default;
  };
  /// Kind of the data, such as "csv". Empty in tables of older versions, which apply to any kind.
  std::string kind;
  std::map<std::string, Moments> moments;  ///< numeric column -> moments
  /// Column -> categories in the order of their ids.
  std::map<std::string, std::vector<std::string>> classes;
  /// Option label, columns or categories -> names of the columns that it selects. The names in
  /// `columns` are in the order of x.
  std::map<std::string, std::vector<std::string>> columns;
  std::map<std::string, std::string> options;  ///< options of the SPEC, except those in `columns`
  /// Name of a feed that holds category ids -> name of its categories in `classes`, such as y ->
  /// species.
  std::map<std::string, std::string> feeds;

  /// Class names for the integer labels in feed `feed`; empty: unknown.
  std::vector<std::string> classes_of_feed(const std::string& feed) const;

  /// to_json() returns the table as one line of JSON, which from_json() reads. from_json() throws
  /// UserError, naming `source`, for other text.
  std::string to_json() const;
  static ColumnTable from_json(const std::string& text, const std::string& source);

  /// Reads a JSON file that write() wrote, or the table in a .safetensors file of parameters.
  /// Throws UserError if there is no table.
  static ColumnTable read(const std::string& path);
  void write(const std::string& path) const;

  bool operator==(const ColumnTable&) const = default;
};

/// A table that is used because the FILE of option table=FILE is absent.
struct LearnedTable {
  std::string file;  ///< FILE
  ColumnTablePtr table;
  bool of_training_rows = false;     ///< whether the data is of the training split
  bool of_earlier_training = false;  ///< OpenOptions::training_table; false: learned from the data
};

/// Name of the metadata entry of a .safetensors file that holds a ColumnTable's text.
inline constexpr const char* kColumnTableMetadata = "fluid.columns";

/// Returns the table in the header of a .safetensors file; null if there is none. Throws UserError
/// for a file of another format.
ColumnTablePtr read_column_table_metadata(const std::string& path);

}  // namespace fluid
