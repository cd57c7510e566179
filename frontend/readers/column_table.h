#pragma once

#include <map>
#include <string>
#include <vector>

namespace fluid {

/// Statistics of the columns of a training set, which are applied to other data of the same
/// columns: categories, means and standard deviations.
struct ColumnTable {
  struct Moments {
    double mean = 0;
    double std = 1;  ///< of the population; 1 for a constant column
  };
  std::map<std::string, Moments> moments;                   ///< of the numbers, by column
  std::map<std::string, std::vector<std::string>> classes;  ///< categories in the order of the ids

  /// Reads and writes JSON: {"moments": {"a": {"mean": 1, "std": 2}}, "classes": {"b": ["x",
  /// "y"]}}. Throw UserError, which names `path`.
  static ColumnTable read(const std::string& path);
  void write(const std::string& path) const;
};

}  // namespace fluid
