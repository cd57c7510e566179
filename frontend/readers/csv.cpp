#include "frontend/files/csv.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "frontend/files/gz.h"
#include "frontend/readers/kind.h"
#include "ir/error.h"
#include "ir/number.h"
#include "ir/text.h"

namespace fluid {
namespace {

/// Indices of the CSV columns that become the dataset columns x and y.
struct Columns {
  std::vector<size_t> x;
  std::optional<size_t> y;
};

/// Splits a comma-separated list of names, such as "a,b".
std::vector<std::string> split_at_commas(const std::string& text) {
  std::vector<std::string> names;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    names.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return names;
}

size_t column_named(const std::string& name, const std::vector<std::string>& names,
                    const DataArgs& args) {
  const auto found = std::ranges::find(names, name);
  if (found == names.end()) {
    const std::string near = did_you_mean(name, names);
    const bool label = near.empty() && name == args.get_string("label", "");
    args.fail("no column '" + name + "'" + near +
              (label ? ": leave label out where the data has none" : ""));
  }
  return static_cast<size_t>(found - names.begin());
}

/// Returns the indices of the columns listed in option `option` ("columns" or "drop"). Throws
/// UserError if the label is among them.
std::vector<size_t> columns_in(const std::string& option, const std::vector<std::string>& names,
                               std::optional<size_t> label, const DataArgs& args) {
  std::vector<size_t> columns;
  for (const std::string& name : split_at_commas(*args.find(option))) {
    const size_t column = column_named(name, names, args);
    if (column == label) args.fail("column '" + name + "' is the label: " + option + " names it");
    if (std::ranges::find(columns, column) != columns.end()) {
      args.fail("option " + option + " names column '" + name + "' twice");
    }
    columns.push_back(column);
  }
  return columns;
}

Columns chosen_columns(const std::vector<std::string>& names, const DataArgs& args) {
  Columns columns;
  if (const std::string* label = args.find("label")) columns.y = column_named(*label, names, args);
  const bool named = args.find("columns") != nullptr, drops = args.find("drop") != nullptr;
  if (named && drops) args.fail("options columns and drop exclude each other");
  if (named) {
    columns.x = columns_in("columns", names, columns.y, args);
    return columns;
  }
  const std::vector<size_t> dropped =
      drops ? columns_in("drop", names, columns.y, args) : std::vector<size_t>();
  for (size_t i = 0; i < names.size(); ++i) {
    if (i != columns.y && std::ranges::find(dropped, i) == dropped.end()) columns.x.push_back(i);
  }
  if (columns.x.empty()) args.fail("no column is left for x");
  return columns;
}

/// Whether `field` is empty or a common marker for a missing value, such as "NaN".
bool is_missing(std::string_view field) {
  static const std::set<std::string> kNames = {"", "na", "n/a", "#n/a", "nan", "null", "none"};
  return kNames.contains(ir::lowercase(field));
}

/// Formats `text` for an error message: on one line, truncated to 40 characters.
std::string excerpt(std::string_view text) {
  constexpr size_t kMaxLength = 40;
  return ir::escape_control_characters(text.substr(0, kMaxLength)) +
         (text.size() > kMaxLength ? "..." : "");
}

/// Reads the x and y columns of a CSV file into a dataset, row by row.
class TableReader {
 public:
  TableReader(const DataArgs& args, const std::string& text)
      : args_(args), csv_(text, args.path()) {
    if (!csv_.next()) throw UserError(args.path() + " is empty: no line names the columns");
    for (const std::string_view name : csv_.fields()) names_.emplace_back(name);
    check_distinct();
    columns_ = chosen_columns(names_, args);
  }

  Dataset read() {
    const bool classes = args_.get_flag("classes", false);
    while (csv_.next()) {
      if (csv_.fields().size() != names_.size()) {
        fail(std::to_string(csv_.fields().size()) + " fields, but the first line has " +
             std::to_string(names_.size()));
      }
      lines_.push_back(csv_.line());
      for (const size_t column : columns_.x) x_.push_back(f32_of(column));
      if (!columns_.y) continue;
      classes ? classes_.push_back(class_of(*columns_.y)) : y_.push_back(f32_of(*columns_.y));
    }
    return dataset(classes);
  }

 private:
  [[noreturn]] void fail(const std::string& message) const {
    throw UserError(csv_.location() + ": " + message);
  }

  void check_distinct() const {
    std::set<std::string> seen;
    for (const std::string& name : names_) {
      if (!seen.insert(name).second) fail("two columns are named '" + excerpt(name) + "'");
    }
  }

  double number(size_t column) const {
    const std::string_view field = csv_.fields()[column];
    const bool signed_plus = field.size() > 1 && field[0] == '+' && field[1] != '-';
    const std::optional<double> value = parse_number<double>(field.substr(signed_plus ? 1 : 0));
    if (!value || !std::isfinite(*value)) reject(field, "column '" + excerpt(names_[column]) + "'");
    return *value;
  }

  [[noreturn]] void reject(std::string_view field, const std::string& where) const {
    if (!is_missing(field)) fail(where + ": '" + excerpt(field) + "' is not a finite number");
    fail(where + " has no value" + (field.empty() ? "" : " ('" + excerpt(field) + "')") +
         ": fill it in, or leave the row or the column out");
  }

  float f32_of(size_t column) const {
    const auto value = static_cast<float>(number(column));
    if (!std::isfinite(value)) {
      fail("column '" + excerpt(names_[column]) + "': " + excerpt(csv_.fields()[column]) +
           " is beyond the range of f32");
    }
    return value;
  }

  int64_t class_of(size_t column) const {
    const double v = number(column);
    if (v != std::floor(v) || v < 0 || v > 0x1p53) {
      fail("column '" + excerpt(names_[column]) + "': " + excerpt(csv_.fields()[column]) +
           " is not a class number");
    }
    return static_cast<int64_t>(v);
  }

  /// Whether every row is a single line, without empty lines between rows.
  bool one_line_per_row() const {
    return lines_.empty() ||
           lines_.back() - lines_.front() + 1 == static_cast<int64_t>(lines_.size());
  }

  Dataset dataset(bool classes) {
    const auto n = static_cast<int64_t>(lines_.size());
    Dataset data;
    data.source = args_.path();
    if (one_line_per_row()) {
      data.first_line = lines_.empty() ? 0 : lines_.front();
    } else {
      data.lines = std::move(lines_);
    }
    data.columns.emplace_back("x",
                              Tensor::of<float>({n, static_cast<int64_t>(columns_.x.size())}, x_));
    if (!columns_.y) return data;
    data.columns.emplace_back(
        "y", classes ? Tensor::of<int64_t>({n}, classes_) : Tensor::of<float>({n, 1}, y_));
    return data;
  }

  const DataArgs& args_;
  CsvParser csv_;
  std::vector<std::string> names_;
  Columns columns_;
  std::vector<int64_t> lines_, classes_;
  std::vector<float> x_, y_;
};

Dataset read_csv(const DataArgs& args) {
  const std::string text = read_maybe_gz(args.path());
  return TableReader(args, text).read();
}

}  // namespace

DataKind csv_kind() {
  return {.name = "csv",
          .usage = "csv:FILE?label=COLUMN",
          .doc =
              "comma-separated numbers with a header line: x f32[columns] holds all columns but "
              "the label, or only columns=a,b, or all but drop=c; y f32[1] holds the label, or "
              "class indices i64 with classes=1",
          .splits_rows = true,
          .options = {"classes", "columns", "drop", "label"},
          .open = in_memory(read_csv)};
}

}  // namespace fluid
