#include "frontend/files/csv.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <set>

#include "frontend/files/gz.h"
#include "frontend/readers/column_table.h"
#include "frontend/readers/kind.h"
#include "frontend/readers/row_split.h"
#include "ir/error.h"
#include "ir/number.h"
#include "ir/text.h"

namespace fluid {
namespace {

/// Indices of the CSV columns by their use in the dataset.
struct Columns {
  std::vector<size_t> x, labels, categories;
  bool has_categorical_label = false;
};

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

bool is_in(const std::vector<size_t>& columns, size_t column) {
  return std::ranges::find(columns, column) != columns.end();
}

/// Returns the indices of the columns listed in option `option`; none if it is not given. Throws
/// UserError for a column that is listed twice, and for a label, except in option categories.
std::vector<size_t> columns_in(const std::string& option, const std::vector<std::string>& names,
                               const std::vector<size_t>& labels, const DataArgs& args) {
  std::vector<size_t> columns;
  if (args.find(option) == nullptr) return columns;
  for (const std::string& name : ir::split_at_commas(*args.find(option))) {
    const size_t column = column_named(name, names, args);
    if (option != "categories" && is_in(labels, column)) {
      args.fail("column '" + name + "' is the label: " + option + " names it");
    }
    if (is_in(columns, column))
      args.fail("option " + option + " names column '" + name + "' twice");
    columns.push_back(column);
  }
  return columns;
}

Columns chosen_columns(const std::vector<std::string>& names, const DataArgs& args) {
  Columns columns;
  columns.labels = columns_in("label", names, {}, args);
  columns.categories = columns_in("categories", names, columns.labels, args);
  for (const size_t label : columns.labels) {
    if (!is_in(columns.categories, label)) continue;
    if (columns.labels.size() > 1) {
      args.fail("column '" + names[label] + "' is a category, and not the only label");
    }
    columns.has_categorical_label = true;
    std::erase(columns.categories, label);
  }
  const bool named = args.find("columns") != nullptr, drops = args.find("drop") != nullptr;
  if (named && drops) args.fail("options columns and drop exclude each other");
  const std::vector<size_t> wanted = columns_in("columns", names, columns.labels, args);
  const std::vector<size_t> dropped = columns_in("drop", names, columns.labels, args);
  for (const size_t category : columns.categories) {
    if (!is_in(wanted, category) && !is_in(dropped, category)) continue;
    args.fail("column '" + names[category] + "' is a category: columns and drop are about numbers");
  }
  for (size_t i = 0; i < names.size() && !named; ++i) {
    if (is_in(columns.labels, i) || is_in(columns.categories, i) || is_in(dropped, i)) continue;
    columns.x.push_back(i);
  }
  if (named) columns.x = wanted;
  if (columns.x.empty() && columns.categories.empty()) args.fail("no column is left for x");
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

/// Treatment of a row in which a number is missing.
struct MissingRule {
  enum Kind { kReject, kDropRow, kMean, kConstant } kind = kReject;
  float constant = 0;
};

MissingRule missing_rule(const DataArgs& args) {
  const std::string text = args.get_string("missing", "error");
  if (text == "error") return {};
  if (text == "drop") return {MissingRule::kDropRow};
  if (text == "mean") return {MissingRule::kMean};
  const std::optional<float> number = parse_number<float>(text);
  if (!number || !std::isfinite(*number)) {
    args.fail("option missing=" + text + " must be error, drop, mean or a number");
  }
  return {MissingRule::kConstant, *number};
}

/// Thrown for a row that the rule for missing values leaves out.
struct DroppedRow {};

/// Reads the columns of a CSV file into a dataset, row by row.
class TableReader {
 public:
  TableReader(const DataArgs& args, const std::string& text)
      : args_(args),
        csv_(text, args.path()),
        missing_(missing_rule(args)),
        classes_(args.get_flag("classes", false)) {
    if (!csv_.next()) throw UserError(args.path() + " is empty: no line names the columns");
    for (const std::string_view name : csv_.fields()) names_.emplace_back(name);
    check_distinct();
    columns_ = chosen_columns(names_, args);
    if (columns_.has_categorical_label) classes_ = false;
    categories_.resize(categorical_columns().size());
  }

  Dataset read() {
    while (csv_.next()) {
      Row row;
      try {
        row = read_row();
      } catch (const DroppedRow&) {
        continue;
      } catch (const UserError& error) {
        if (args_.bad_records() == BadRecords::stop) throw;
        if (skipped_.count++ == 0) skipped_.first_error = error.what();
        continue;
      }
      append(row);
    }
    apply_table(table());
    return dataset();
  }

 private:
  struct Row {
    std::vector<float> x, y;
    std::vector<int64_t> classes;
    std::vector<std::string> categories;
  };

  [[noreturn]] void fail(const std::string& message) const {
    throw UserError(csv_.location() + ": " + message);
  }

  void check_distinct() const {
    std::set<std::string> seen;
    for (const std::string& name : names_) {
      if (!seen.insert(name).second) fail("two columns are named '" + excerpt(name) + "'");
    }
  }

  /// Indices of the columns of categories_: the categories, then a categorical label.
  std::vector<size_t> categorical_columns() const {
    std::vector<size_t> columns = columns_.categories;
    if (columns_.has_categorical_label) columns.push_back(columns_.labels.front());
    return columns;
  }

  Row read_row() const {
    if (csv_.fields().size() != names_.size()) {
      fail(std::to_string(csv_.fields().size()) + " fields, but the first line has " +
           std::to_string(names_.size()));
    }
    Row row;
    for (const size_t column : columns_.x) row.x.push_back(feature(column));
    for (const size_t column : categorical_columns()) {
      const std::string_view field = csv_.fields()[column];
      if (field.empty()) reject(field, column);
      row.categories.emplace_back(field);
    }
    for (const size_t column : columns_.labels) {
      if (columns_.has_categorical_label) break;
      classes_ ? row.classes.push_back(class_of(column)) : row.y.push_back(f32_of(column));
    }
    return row;
  }

  void append(const Row& row) {
    lines_.push_back(csv_.line());
    x_.insert(x_.end(), row.x.begin(), row.x.end());
    y_.insert(y_.end(), row.y.begin(), row.y.end());
    class_indices_.insert(class_indices_.end(), row.classes.begin(), row.classes.end());
    for (size_t i = 0; i < categories_.size(); ++i) categories_[i].push_back(row.categories[i]);
  }

  /// Returns the number in `column`; NaN for a missing number, which apply_table() replaces.
  float feature(size_t column) const {
    const bool fills =
        missing_.kind == MissingRule::kMean || missing_.kind == MissingRule::kConstant;
    if (fills && is_missing(csv_.fields()[column])) return std::numeric_limits<float>::quiet_NaN();
    return f32_of(column);
  }

  double number(size_t column) const {
    const std::string_view field = csv_.fields()[column];
    const bool signed_plus = field.size() > 1 && field[0] == '+' && field[1] != '-';
    const std::optional<double> value = parse_number<double>(field.substr(signed_plus ? 1 : 0));
    if (!value || !std::isfinite(*value)) reject(field, column);
    return *value;
  }

  [[noreturn]] void reject(std::string_view field, size_t column) const {
    const std::string where = "column '" + excerpt(names_[column]) + "'";
    if (!is_missing(field)) fail(where + ": '" + excerpt(field) + "' is not a finite number");
    if (missing_.kind == MissingRule::kDropRow) throw DroppedRow();
    fail(where + " has no value" + (field.empty() ? "" : " ('" + excerpt(field) + "')") +
         ": fill it in, or leave the row or the column out, or add missing=drop|mean|NUMBER");
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

  bool needs_moments() const {
    return missing_.kind == MissingRule::kMean || args_.get_flag("normalize", false);
  }

  /// Returns the table of option table=FILE if the file exists. Otherwise learns the table, and
  /// writes the file if the training split is opened.
  ColumnTable table() const {
    const std::string* path = args_.find("table");
    if (path != nullptr && std::filesystem::exists(*path)) return ColumnTable::read(*path);
    const bool trains = args_.split() == "train";
    if (path != nullptr && !trains && args_.find("val") == nullptr) {
      args_.fail("there is no table '" + *path + "': it is written when data is opened to train");
    }
    const ColumnTable learned = learned_table();
    if (path != nullptr && trains) learned.write(*path);
    return learned;
  }

  /// Learns the categories of all rows, and the moments of the rows that are not held out.
  ColumnTable learned_table() const {
    ColumnTable table;
    const std::vector<size_t> categorical = categorical_columns();
    for (size_t i = 0; i < categorical.size(); ++i) {
      const std::set<std::string> distinct(categories_[i].begin(), categories_[i].end());
      table.classes[names_[categorical[i]]] = {distinct.begin(), distinct.end()};
    }
    if (!needs_moments() || lines_.empty()) return table;
    const std::vector<bool> held_out = held_out_rows(static_cast<int64_t>(lines_.size()), args_);
    for (size_t i = 0; i < columns_.x.size(); ++i) {
      table.moments[names_[columns_.x[i]]] = moments_of(i, held_out);
    }
    return table;
  }

  ColumnTable::Moments moments_of(size_t feature, const std::vector<bool>& held_out) const {
    double sum = 0, squares = 0;
    int64_t count = 0;
    const auto for_each = [&](const std::function<void(double)>& use) {
      for (size_t row = 0; row < lines_.size(); ++row) {
        const float value = x_[row * columns_.x.size() + feature];
        const bool trains = held_out.empty() || !held_out[row];
        if (trains && !std::isnan(value)) use(value);
      }
    };
    for_each([&](double value) {
      sum += value;
      ++count;
    });
    if (count == 0) {
      args_.fail("column '" + names_[columns_.x[feature]] + "' has no value in the training rows");
    }
    const double mean = sum / static_cast<double>(count);
    for_each([&](double value) { squares += (value - mean) * (value - mean); });
    const double std = std::sqrt(squares / static_cast<double>(count));
    return {mean, std > 0 ? std : 1};
  }

  /// Fills in missing numbers, normalises x, and replaces categories by their ids.
  void apply_table(const ColumnTable& table) {
    const bool normalizes = args_.get_flag("normalize", false);
    for (size_t i = 0;
         i < columns_.x.size() && (needs_moments() || missing_.kind == MissingRule::kConstant);
         ++i) {
      const std::string& name = names_[columns_.x[i]];
      const auto found = table.moments.find(name);
      if (needs_moments() && found == table.moments.end()) missing_in_table(name);
      const ColumnTable::Moments moments = needs_moments() ? found->second : ColumnTable::Moments();
      const double fill =
          missing_.kind == MissingRule::kMean ? moments.mean : double{missing_.constant};
      for (size_t row = 0; row < lines_.size(); ++row) {
        float& value = x_[row * columns_.x.size() + i];
        const double filled = std::isnan(value) ? fill : double{value};
        value = static_cast<float>(normalizes ? (filled - moments.mean) / moments.std : filled);
      }
    }
    const std::vector<size_t> categorical = categorical_columns();
    for (size_t i = 0; i < categorical.size(); ++i) {
      const std::string& name = names_[categorical[i]];
      const auto found = table.classes.find(name);
      if (found == table.classes.end()) missing_in_table(name);
      category_names_.push_back(found->second);
      category_ids_.push_back(ids_of(categories_[i], name, found->second));
    }
  }

  [[noreturn]] void missing_in_table(const std::string& column) const {
    throw UserError("'" + args_.get_string("table", "") + "' has no column '" + column +
                    "': remove the file to learn it again");
  }

  std::vector<int64_t> ids_of(const std::vector<std::string>& values, const std::string& column,
                              const std::vector<std::string>& names) const {
    std::map<std::string, int64_t> id_of;
    for (size_t i = 0; i < names.size(); ++i) id_of[names[i]] = static_cast<int64_t>(i);
    const bool knows_all = !args_.get_flag("unknown", false);
    std::vector<int64_t> ids;
    for (size_t row = 0; row < values.size(); ++row) {
      const auto found = id_of.find(values[row]);
      if (found == id_of.end() && knows_all) {
        throw UserError(args_.path() + ":" + std::to_string(lines_[row]) + ": column '" +
                        excerpt(column) + "': no category '" + excerpt(values[row]) + "'" +
                        did_you_mean(values[row], names) + "; unknown=1 gives it the id " +
                        std::to_string(names.size()));
      }
      ids.push_back(found == id_of.end() ? static_cast<int64_t>(names.size()) : found->second);
    }
    return ids;
  }

  /// Whether every row is a single line, without empty or dropped lines between rows.
  bool one_line_per_row() const {
    return lines_.empty() ||
           lines_.back() - lines_.front() + 1 == static_cast<int64_t>(lines_.size());
  }

  Dataset dataset() {
    const auto n = static_cast<int64_t>(lines_.size());
    const auto width = [](const std::vector<size_t>& columns) {
      return static_cast<int64_t>(columns.size());
    };
    Dataset data;
    data.source = args_.path();
    data.skipped = skipped_;
    if (one_line_per_row()) {
      data.first_line = lines_.empty() ? 0 : lines_.front();
    } else {
      data.lines = std::move(lines_);
    }
    const auto add_categories = [&](const std::string& column, size_t i) {
      data.columns.emplace_back(column, Tensor::of<int64_t>({n}, category_ids_[i]));
      data.classes[column] = category_names_[i];
    };
    if (!columns_.x.empty()) {
      data.columns.emplace_back("x", Tensor::of<float>({n, width(columns_.x)}, x_));
    }
    for (size_t i = 0; i < columns_.categories.size(); ++i) {
      add_categories(names_[columns_.categories[i]], i);
    }
    if (columns_.has_categorical_label) {
      add_categories("y", columns_.categories.size());
    } else if (classes_ && columns_.labels.size() == 1) {
      data.columns.emplace_back("y", Tensor::of<int64_t>({n}, class_indices_));
    } else if (classes_ && !columns_.labels.empty()) {
      data.columns.emplace_back("y",
                                Tensor::of<int64_t>({n, width(columns_.labels)}, class_indices_));
    } else if (!columns_.labels.empty()) {
      data.columns.emplace_back("y", Tensor::of<float>({n, width(columns_.labels)}, y_));
    }
    return data;
  }

  const DataArgs& args_;
  CsvParser csv_;
  MissingRule missing_;
  bool classes_;  // whether labels are class indices
  std::vector<std::string> names_;
  Columns columns_;
  std::vector<int64_t> lines_, class_indices_;
  std::vector<float> x_, y_;
  std::vector<std::vector<std::string>> categories_;  // text by categorical column and row
  std::vector<std::vector<std::string>> category_names_;
  std::vector<std::vector<int64_t>> category_ids_;
  SkippedRecords skipped_;
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
              "the label, or only columns=a,b, or all but drop=c; y f32[labels] holds label=a,b, "
              "or class indices i64 with classes=1; categories=c,d: text columns, each a column "
              "i64 of ids; missing=error|drop|mean|NUMBER; normalize=1 by the mean and the std of "
              "the training rows; table=FILE keeps these and the categories (JSON), unknown=1 "
              "allows other categories",
          .splits_rows = true,
          .options = {"categories", "classes", "columns", "drop", "label", "missing", "normalize",
                      "table", "unknown"},
          .open = in_memory(read_csv)};
}

}  // namespace fluid
