#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace fluid {

struct ColumnTable;

/// A ColumnTable; null: none.
using ColumnTablePtr = std::shared_ptr<const ColumnTable>;

/// Facts that a reader learned from its training data: which columns it read and how,
/// their categories, means and standard deviations. Other data is read in the same way by the
/// table. It is kept in files of parameters (Executor::save()) and in checkpoints, and by the
/// option table=FILE.
struct ColumnTable {
  struct Moments {
    double mean = 0;
    double std = 1;  ///< of the population; 1 for a constant column
    bool operator==(const Moments&) const = default;
  };
  std::string kind;  ///< of the data: "csv"; empty: a table of an older Fluid, for any kind
  std::map<std::string, Moments> moments;                   ///< of the numbers, by column
  std::map<std::string, std::vector<std::string>> classes;  ///< categories in the order of the ids
  /// Names of columns in the data, by the option that lists them: label, columns, categories. The
  /// order of `columns` is that of x.
  std::map<std::string, std::vector<std::string>> columns;
  std::map<std::string, std::string> options;  ///< of the SPEC, besides those of `columns`
  /// The column of `classes` whose ids a feed holds, by the name of the feed: y -> species.
  std::map<std::string, std::string> feeds;

  /// Names of the classes that the integers of a feed stand for; empty: unknown.
  std::vector<std::string> classes_of_feed(const std::string& feed) const;

  /// The table as JSON, on one line, and a table of such a text. parse() throws UserError, which
  /// names `source`.
  std::string text() const;
  static ColumnTable parse(const std::string& text, const std::string& source);

  /// Reads a file of JSON that write() wrote, or the table in a .safetensors file of parameters.
  /// Throws UserError, also if the parameters have no table.
  static ColumnTable read(const std::string& path);
  void write(const std::string& path) const;

  bool operator==(const ColumnTable&) const = default;
};

/// Name of the metadata entry of a .safetensors file that holds a ColumnTable's text.
inline constexpr const char* kColumnTableMetadata = "fluid.columns";

/// Returns the table in the header of a .safetensors file; null if there is none. Throws UserError
/// for another file.
ColumnTablePtr table_of_parameters(const std::string& path);

}  // namespace fluid
