#include "frontend/files/csv.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <set>

#include "frontend/files/gz.h"
#include "frontend/readers/csv_columns.h"
#include "frontend/readers/excerpt.h"
#include "frontend/readers/kind.h"
#include "frontend/readers/table_use.h"
#include "frontend/tokenizers/unicode.h"
#include "ir/error.h"
#include "ir/number.h"
#include "ir/text.h"

namespace fluid {
namespace {

constexpr const char* kCsvKind = "csv";

/// Whether `field` is empty or a common marker for a missing value, such as "NaN".
bool is_missing(std::string_view field) {
  static const std::set<std::string> kNames = {"", "na", "n/a", "#n/a", "nan", "null", "none"};
  return kNames.contains(ir::lowercase(field));
}

/// Treatment of a row in which a number is missing.
struct MissingRule {
  enum Kind {
    kReject,
    kDropRow,
    kDropTrainingRow,  ///< the training data left the row out: other data rejects it
    kMean,
    kConstant
  } kind = kReject;
  float constant = 0;
};

MissingRule missing_rule(const TableUse& use) {
  const DataArgs& args = use.args();
  const std::string text = args.get_string("missing", "error");
  if (text == "error") return {};
  if (text == "drop" && use.takes_from_table("missing")) return {MissingRule::kDropTrainingRow};
  if (text == "drop") return {MissingRule::kDropRow};
  if (text == "mean") return {MissingRule::kMean};
  const std::optional<float> number = parse_number<float>(text);
  if (!number || !std::isfinite(*number)) {
    args.fail("option missing=" + text + " must be error, drop, mean or a number");
  }
  return {MissingRule::kConstant, *number};
}

/// Returns the text of a file as UTF-8, so that a table can store its names and categories. Reads
/// text that is not UTF-8 as Latin-1.
std::string as_utf8(std::string text) {
  char32_t code_point = 0;
  size_t at = 0;
  while (at < text.size() && next_code_point(text, at, code_point)) continue;
  const bool is_utf16 = text.starts_with("\xff\xfe") || text.starts_with("\xfe\xff");
  if (at == text.size() || is_utf16) return text;
  std::string converted;
  for (const char c : text) converted += utf8_of(static_cast<unsigned char>(c));
  return converted;
}

/// Thrown for a row that missing=drop leaves out.
struct DroppedRow {};

/// Reads the columns of a CSV file into a dataset, row by row.
class TableReader {
 public:
  TableReader(const TableUse& use, const std::string& text)
      : use_(use),
        args_(use.args()),
        csv_(text, args_.path()),
        missing_(missing_rule(use_)),
        classes_(args_.get_flag("classes", false)) {
    if (!csv_.next()) throw UserError(args_.path() + " is empty: no line names the columns");
    for (const std::string_view name : csv_.fields()) names_.emplace_back(name);
    check_distinct();
    columns_ = choose_csv_columns(names_, args_, use.split(), use.given());
    if (columns_.has_categorical_label) classes_ = false;
    categories_.resize(columns_.categorical().size());
  }

  Dataset read() {
    bool has_rows = false;
    while (csv_.next()) {
      has_rows = true;
      Row row;
      try {
        row = read_row();
      } catch (const DroppedRow&) {
        continue;
      } catch (const UserError& error) {
        if (args_.bad_records() == BadRecords::stop) throw;
        skipped_.add(error.what());
        continue;
      }
      append(row);
    }
    if (!has_rows) {
      throw UserError(args_.path() + " has a header but no rows: its only line names the columns");
    }
    ColumnTable table = start_table();
    if (use_.given() == nullptr) learn(table);
    apply_table(table);
    Dataset data = dataset(table);
    data.table = use_.keep(std::move(table));
    return data;
  }

 private:
  struct Row {
    std::vector<float> x, y;
    std::vector<int64_t> classes;
    std::vector<std::string> categories;
    std::string split;
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

  Row read_row() const {
    if (csv_.fields().size() != names_.size()) {
      fail(std::to_string(csv_.fields().size()) + " fields, but the first line has " +
           std::to_string(names_.size()));
    }
    Row row;
    for (const size_t column : columns_.x) row.x.push_back(feature(column));
    for (const size_t column : columns_.categorical()) {
      const std::string_view field = csv_.fields()[column];
      if (field.empty()) reject(field, column);
      row.categories.emplace_back(field);
    }
    for (const size_t column : columns_.labels) {
      if (columns_.has_categorical_label) break;
      classes_ ? row.classes.push_back(class_of(column)) : row.y.push_back(f32_of(column));
    }
    if (columns_.split) row.split = csv_.fields()[*columns_.split];
    return row;
  }

  void append(const Row& row) {
    lines_.push_back(csv_.line());
    x_.insert(x_.end(), row.x.begin(), row.x.end());
    y_.insert(y_.end(), row.y.begin(), row.y.end());
    class_indices_.insert(class_indices_.end(), row.classes.begin(), row.classes.end());
    for (size_t i = 0; i < categories_.size(); ++i) categories_[i].push_back(row.categories[i]);
    if (columns_.split) split_values_.push_back(row.split);
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
    const std::string lack =
        where + " has no value" + (field.empty() ? "" : " ('" + excerpt(field) + "')") + ": ";
    if (missing_.kind == MissingRule::kDropTrainingRow) {
      fail(lack +
           "training left such rows out; fill it in, or add missing=drop to leave this row "
           "out, or missing=NUMBER");
    }
    fail(lack + "fill it in, or leave the row or the column out, or add missing=drop|mean|NUMBER");
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

  /// Returns the given table or an empty one, and records how the columns are read.
  ColumnTable start_table() const {
    ColumnTable table = use_.start({"classes", "missing", "normalize", "unknown"});
    table.columns = names_of(columns_, names_);
    for (const size_t category : columns_.categories) {
      table.feeds[names_[category]] = names_[category];
    }
    if (columns_.has_categorical_label) table.feeds["y"] = names_[columns_.labels.front()];
    return table;
  }

  /// Learns the categories of all rows, and the moments of the training rows.
  void learn(ColumnTable& table) const {
    const std::vector<size_t> categorical = columns_.categorical();
    for (size_t i = 0; i < categorical.size(); ++i) {
      table.classes[names_[categorical[i]]] = categories_of(categories_[i]);
    }
    if (!needs_moments() || lines_.empty()) return;
    const std::vector<RowUse> uses = row_uses();
    for (size_t i = 0; i < columns_.x.size(); ++i) {
      table.moments[names_[columns_.x[i]]] = moments_of(i, uses);
    }
  }

  /// Returns the use of each row; empty if no option splits the rows.
  std::vector<RowUse> row_uses() const {
    if (!columns_.split) return use_.split().uses(static_cast<int64_t>(lines_.size()));
    return use_.split().uses(names_[*columns_.split], split_values_,
                             [&](int64_t row) { return location(static_cast<size_t>(row)); });
  }

  ColumnTable::Moments moments_of(size_t feature, const std::vector<RowUse>& uses) const {
    double sum = 0, squares = 0;
    int64_t count = 0;
    const auto for_each = [&](const std::function<void(double)>& use) {
      for (size_t row = 0; row < lines_.size(); ++row) {
        const float value = x_[row * columns_.x.size() + feature];
        const bool trains = uses.empty() || uses[row] == RowUse::train;
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

  /// Fills in missing numbers and normalises x.
  void apply_table(const ColumnTable& table) {
    const bool normalizes = args_.get_flag("normalize", false);
    for (size_t i = 0;
         i < columns_.x.size() && (needs_moments() || missing_.kind == MissingRule::kConstant);
         ++i) {
      const std::string& name = names_[columns_.x[i]];
      const auto found = table.moments.find(name);
      if (needs_moments() && found == table.moments.end()) use_.fail_without_column(name);
      const ColumnTable::Moments moments = needs_moments() ? found->second : ColumnTable::Moments();
      const double fill =
          missing_.kind == MissingRule::kMean ? moments.mean : double{missing_.constant};
      for (size_t row = 0; row < lines_.size(); ++row) {
        float& value = x_[row * columns_.x.size() + i];
        const double filled = std::isnan(value) ? fill : double{value};
        value = static_cast<float>(normalizes ? (filled - moments.mean) / moments.std : filled);
      }
    }
  }

  std::string location(size_t row) const { return ir::file_and_line(args_.path(), lines_[row]); }

  /// Whether every row is a single line, without empty or dropped lines between rows.
  bool one_line_per_row() const {
    return lines_.empty() ||
           lines_.back() - lines_.front() + 1 == static_cast<int64_t>(lines_.size());
  }

  Dataset dataset(const ColumnTable& table) {
    const auto n = static_cast<int64_t>(lines_.size());
    const auto width = [](const std::vector<size_t>& columns) {
      return static_cast<int64_t>(columns.size());
    };
    Dataset data;
    data.source = args_.path();
    data.skipped = skipped_;
    const auto add_categories = [&](const std::string& column, size_t i) {
      const std::string& name = names_[columns_.categorical()[i]];
      const std::vector<int64_t> ids = use_.ids_of(categories_[i], name, table, [&](size_t row) {
        return location(row) + ": column '" + excerpt(name) + "'";
      });
      data.columns.emplace_back(column, Tensor::of<int64_t>({n}, ids));
      data.classes[column] = table.classes.at(name);
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
    if (columns_.split) add_split_column(data);
    if (one_line_per_row()) {
      data.first_line = lines_.empty() ? 0 : lines_.front();
    } else {
      data.lines = std::move(lines_);
    }
    return data;
  }

  /// Adds the column of split=COLUMN, by which split_rows() selects rows.
  void add_split_column(Dataset& data) const {
    const std::string& name = names_[*columns_.split];
    ColumnTable values;  // a separate table: other data need not have these values
    values.classes[name] = categories_of(split_values_);
    const std::vector<int64_t> ids =
        use_.ids_of(split_values_, name, values, [](size_t) { return ""; });
    data.columns.emplace_back(name, Tensor::of<int64_t>({static_cast<int64_t>(ids.size())}, ids));
    data.classes[name] = values.classes[name];
  }

  const TableUse& use_;
  const DataArgs& args_;
  CsvParser csv_;
  MissingRule missing_;
  bool classes_;  // whether labels are class indices
  std::vector<std::string> names_;
  CsvColumns columns_;
  std::vector<int64_t> lines_, class_indices_;
  std::vector<float> x_, y_;
  std::vector<std::vector<std::string>> categories_;  // text by [categorical column][row]
  std::vector<std::string> split_values_;  // values of the column of split=COLUMN, by row
  SkippedRecords skipped_;
};

Dataset read_csv(const DataArgs& args) {
  const TableUse use(args, kCsvKind);
  const std::string text = as_utf8(read_maybe_gz(args.path()));
  return TableReader(use, text).read();
}

}  // namespace

DataKind csv_kind() {
  return {.name = kCsvKind,
          .usage = "csv:FILE?label=COLUMN",
          .doc =
              "comma-separated numbers with a header line: x f32[columns] holds all columns but "
              "the label, or only columns=a,b, or all but drop=c; y f32[labels] holds label=a,b, "
              "or class indices i64 with classes=1; categories=c,d: text columns, each a column "
              "i64 of ids; missing=error|drop|mean|NUMBER; normalize=1 by the mean and the std of "
              "the training rows; unknown=1 allows other categories. Saved parameters keep all of "
              "this, and eval and predict read their data by it; table=FILE, a .safetensors or "
              "JSON, names another file that keeps it, table=none learns it again",
          .splits_rows = true,
          .keeps_table = true,
          .options = {"categories", "classes", "columns", "drop", "label", "missing", "normalize"},
          .open = in_memory(read_csv)};
}

}  // namespace fluid
