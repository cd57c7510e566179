#include "frontend/readers/csv_columns.h"

#include <algorithm>

#include "ir/error.h"
#include "ir/text.h"

namespace fluid {
namespace {

bool is_in(const std::vector<size_t>& columns, size_t column) {
  return std::ranges::find(columns, column) != columns.end();
}

class CsvColumnChoice {
 public:
  CsvColumnChoice(const std::vector<std::string>& names, const DataArgs& args,
                  const RowSplit& split, const ColumnTable* table)
      : names_(names), args_(args), table_(table) {
    if (split.uses_column()) columns_.split = column_named(split.split_column(names_));
  }

  CsvColumns choose() {
    columns_.labels = listed("label");
    columns_.categories = listed("categories");
    for (const size_t label : columns_.labels) {
      if (!is_in(columns_.categories, label)) continue;
      if (columns_.labels.size() > 1) {
        args_.fail("column '" + names_[label] + "' is a category, and not the only label");
      }
      columns_.has_categorical_label = true;
      std::erase(columns_.categories, label);
    }
    columns_.integers = listed("integers");
    choose_x();
    check_names();
    return std::move(columns_);
  }

 private:
  size_t column_named(const std::string& name) const {
    const auto found = std::ranges::find(names_, name);
    if (found != names_.end()) return static_cast<size_t>(found - names_.begin());
    const std::string near = did_you_mean(name, names_);
    const bool label = near.empty() && name == args_.get_string("label", "");
    args_.fail("no column '" + name + "'" + near +
               (label ? ": leave label out where the data has none" : ""));
  }

  /// Returns the column names in option `option`. If the option is not given, returns the names in
  /// the table.
  std::vector<std::string> names_in(const std::string& option) const {
    if (const std::string* given = args_.find(option)) {
      return given->empty() ? std::vector<std::string>() : ir::split_at_commas(*given);
    }
    return names_in_table(option);
  }

  std::vector<std::string> names_in_table(const std::string& option) const {
    if (table_ == nullptr) return {};
    const auto found = table_->columns.find(option);
    if (found == table_->columns.end()) return {};
    std::vector<std::string> known;
    for (const std::string& name : found->second) {
      const auto at = std::ranges::find(names_, name);
      const bool is_read =
          at != names_.end() && (option != "categories" || !was_label(name) ||
                                 is_in(columns_.labels, static_cast<size_t>(at - names_.begin())));
      if (is_read) known.push_back(name);
      if (at != names_.end() || was_label(name)) continue;
      args_.fail("no column '" + name + "', which the training data had" +
                 did_you_mean(name, names_));
    }
    return known;
  }

  /// Returns whether the column `name` was a label in the training data.
  bool was_label(const std::string& name) const {
    const auto labels = table_->columns.find("label");
    return labels != table_->columns.end() &&
           std::ranges::find(labels->second, name) != labels->second.end();
  }

  /// Returns the indices of the columns that names_in(option) names.
  std::vector<size_t> listed(const std::string& option) const {
    std::vector<size_t> columns;
    for (const std::string& name : names_in(option)) {
      const size_t column = column_named(name);
      if (option != "categories" && is_in(columns_.labels, column)) {
        args_.fail("column '" + name + "' is the label: " + option + " names it");
      }
      if (columns_.split == column && option != "drop") {
        args_.fail("column '" + name + "' splits the rows: " + option + " names it");
      }
      if (is_in(columns, column)) {
        args_.fail("option " + option + " names column '" + name + "' twice");
      }
      columns.push_back(column);
    }
    return columns;
  }

  bool has_table_x() const {
    return table_ != nullptr && table_->columns.contains("columns") &&
           args_.find("columns") == nullptr;
  }

  void choose_x() {
    const bool named = args_.find("columns") != nullptr, drops = args_.find("drop") != nullptr;
    if (named && drops) args_.fail("options columns and drop exclude each other");
    const std::vector<size_t> dropped = listed("drop");
    if (has_table_x()) {
      for (const std::string& name : names_in_table("columns")) {
        const size_t column = column_named(name);
        if (!is_used(column) && !is_in(dropped, column)) columns_.x.push_back(column);
      }
    } else if (named) {
      columns_.x = listed("columns");
    } else {
      for (size_t i = 0; i < names_.size(); ++i) {
        if (!is_used(i) && !is_in(dropped, i)) columns_.x.push_back(i);
      }
    }
    for (const size_t column : separate_columns()) {
      if (!is_in(columns_.x, column) && !is_in(dropped, column)) continue;
      const bool is_category = is_in(columns_.categories, column);
      args_.fail("column '" + names_[column] + "' is " +
                 (is_category ? "a category" : "an integer column") +
                 ": columns and drop select x");
    }
    if (columns_.x.empty() && separate_columns().empty()) args_.fail("no column is left for x");
  }

  /// Returns the columns of the file that become a column of the dataset each.
  std::vector<size_t> separate_columns() const {
    std::vector<size_t> columns = columns_.categories;
    columns.insert(columns.end(), columns_.integers.begin(), columns_.integers.end());
    return columns;
  }

  /// Returns whether `column` is used for something other than x.
  bool is_used(size_t column) const {
    return is_in(columns_.labels, column) || is_in(separate_columns(), column) ||
           columns_.split == column;
  }

  /// Throws UserError if an integer column and a category column are the same, or if one of them or
  /// the split column is named x or y. The dataset uses these names for the features and the
  /// labels.
  void check_names() const {
    for (const size_t column : columns_.integers) {
      if (!is_in(columns_.categories, column)) continue;
      args_.fail("options categories and integers name column '" + names_[column] + "'");
    }
    std::vector<size_t> named = separate_columns();
    if (columns_.split) named.push_back(*columns_.split);
    for (const size_t column : named) {
      if (names_[column] != "x" && names_[column] != "y") continue;
      args_.fail("column '" + names_[column] +
                 "' can hold neither categories, integers nor the split: x holds the numbers and "
                 "y the labels; rename it");
    }
  }

  const std::vector<std::string>& names_;
  const DataArgs& args_;
  const ColumnTable* table_;
  CsvColumns columns_;
};

}  // namespace

std::vector<size_t> CsvColumns::categorical() const {
  std::vector<size_t> columns = categories;
  if (has_categorical_label) columns.push_back(labels.front());
  return columns;
}

CsvColumns choose_csv_columns(const std::vector<std::string>& names, const DataArgs& args,
                              const RowSplit& split, const ColumnTable* table) {
  return CsvColumnChoice(names, args, split, table).choose();
}

std::map<std::string, std::vector<std::string>> names_of(const CsvColumns& columns,
                                                         const std::vector<std::string>& names) {
  const auto all = [&](const std::vector<size_t>& indices) {
    std::vector<std::string> of;
    for (const size_t i : indices) of.push_back(names[i]);
    return of;
  };
  return {{"label", all(columns.labels)},
          {"columns", all(columns.x)},
          {"categories", all(columns.categorical())},
          {"integers", all(columns.integers)}};
}

}  // namespace fluid
