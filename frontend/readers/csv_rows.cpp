#include "frontend/readers/csv_rows.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "frontend/readers/excerpt.h"
#include "ir/error.h"
#include "ir/number.h"

namespace fluid {
namespace {

/// Returns `field` without a plus sign at its start.
std::string_view without_plus(std::string_view field) {
  const bool has_plus = field.size() > 1 && field[0] == '+' && field[1] != '-';
  return field.substr(has_plus ? 1 : 0);
}

/// Parses a number, which may have a plus sign. Returns nullopt if `field` is not a finite number.
std::optional<double> finite_number(std::string_view field) {
  field = without_plus(field);
  double value = 0;
  const bool is_finite = read_number(field, value) == std::errc() && std::isfinite(value);
  return is_finite ? std::optional(value) : std::nullopt;
}

/// Thrown to drop a row.
struct DroppedRow {};

}  // namespace

void CsvRow::clear() {
  x.clear();
  y.clear();
  integers.clear();
  classes.clear();
  categories.clear();
  split = {};
}

/// The fields of a record.
class CsvRows::Record {
 public:
  Record(const CsvRows& rows, const CsvParser& csv) : rows_(rows), csv_(csv) {}

  void read(CsvRow& row) const {
    if (csv_.fields().size() != rows_.names_.size()) {
      fail(std::to_string(csv_.fields().size()) + " fields, but the first line has " +
           std::to_string(rows_.names_.size()));
    }
    const CsvColumns& columns = rows_.columns_;
    for (const size_t column : columns.x) row.x.push_back(feature(column));
    for (const size_t column : columns.categories) row.categories.push_back(category(column));
    if (columns.has_categorical_label) row.categories.push_back(category(columns.labels.front()));
    for (const size_t column : columns.integers) row.integers.push_back(integer(column));
    for (const size_t column : columns.labels) {
      if (columns.has_categorical_label) break;
      rows_.labels_are_classes_ ? row.classes.push_back(class_of(column))
                                : row.y.push_back(rounded(number(column), column));
    }
    if (columns.split) row.split = field(*columns.split);
  }

 private:
  std::string_view field(size_t column) const { return csv_.fields()[column]; }

  [[noreturn]] void fail(const std::string& message) const {
    throw UserError(csv_.location() + ": " + message);
  }

  /// Returns the number in `column`; NaN for a missing number that is filled in later.
  double feature(size_t column) const {
    const std::optional<double> value = finite_number(field(column));
    if (value) return rounded(*value, column);
    if (rows_.missing_in_[column].fills_in() && is_missing(field(column))) {
      return std::numeric_limits<double>::quiet_NaN();
    }
    reject(column, "drop|mean|NUMBER");
  }

  double number(size_t column) const {
    const std::optional<double> value = finite_number(field(column));
    if (!value) reject(column);
    return *value;
  }

  /// Throws for a field that is not a number. `rules`: the values of option missing that would fill
  /// in a missing number, or leave out its row.
  [[noreturn]] void reject(size_t column, const std::string& rules = "drop") const {
    const std::string where = "column '" + excerpt(rows_.names_[column]) + "'";
    if (!is_missing(field(column))) {
      fail(where + ": '" + excerpt(field(column)) + "' is not a finite number" +
           text_column_hint(column));
    }
    const MissingRule& rule = rows_.missing_in_[column];
    if (rule.kind == MissingRule::kDropRow) throw DroppedRow();
    const std::string lack = where + " has no value" +
                             (field(column).empty() ? "" : " ('" + excerpt(field(column)) + "')") +
                             ": ";
    if (rule.kind == MissingRule::kDroppedInTraining) {
      fail(lack +
           "training left such rows out; fill it in, or add missing=drop to leave this row "
           "out, or missing=NUMBER");
    }
    fail(lack + "fill it in, or leave the row or the column out, or " +
         missing_rule_hint(rows_.missing_.option(), rows_.names_[column], rules));
  }

  /// Returns the options with which a column of text is read, to append to a message; "" if the
  /// field of `column` is a number, or if a table says how the column is read.
  std::string text_column_hint(size_t column) const {
    double value = 0;
    const bool is_text =
        read_number(without_plus(field(column)), value) == std::errc::invalid_argument;
    if (!is_text || rows_.is_read_by_table_) return "";
    const std::string name = excerpt(rows_.names_[column]);
    const bool is_label =
        std::ranges::find(rows_.columns_.labels, column) != rows_.columns_.labels.end();
    return "; for a column of text, add categories=" + name + (is_label ? "" : " or drop=" + name);
  }

  /// Rounds `value`, a value of `column`, to the dtype of x and y.
  double rounded(double value, size_t column) const {
    if (rows_.float_dtype_ == DType::f64) return value;
    const auto nearest = static_cast<float>(value);
    if (!std::isfinite(nearest))
      fail_type(column, "is beyond the range of f32; dtype=f64 reads it");
    return nearest;
  }

  std::string_view category(size_t column) const {
    if (field(column).empty()) reject(column);
    return field(column);
  }

  int64_t class_of(size_t column) const {
    const double v = number(column);
    if (v != std::floor(v) || v < 0 || v > 0x1p53) fail_type(column, "is not a class number");
    return static_cast<int64_t>(v);
  }

  int64_t integer(size_t column) const {
    const std::optional<int64_t> value = parse_number<int64_t>(without_plus(field(column)));
    if (value) return *value;
    if (is_missing(field(column))) reject(column);
    const std::optional<double> number = finite_number(field(column));  // such as 5.0
    if (number && *number == std::floor(*number) && std::abs(*number) <= 0x1p53) {
      return static_cast<int64_t>(*number);
    }
    fail_type(column, "is not an integer of 64 bits");
  }

  [[noreturn]] void fail_type(size_t column, const std::string& what) const {
    fail("column '" + excerpt(rows_.names_[column]) + "': " + excerpt(field(column)) + " " + what);
  }

  const CsvRows& rows_;
  const CsvParser& csv_;
};

CsvRows::CsvRows(const ColumnTableContext& context, std::vector<std::string> names)
    : source_name_(context.args().path()),
      names_(std::move(names)),
      columns_(choose_csv_columns(names_, context.args(), context.split(), context.given())),
      float_dtype_(context.args().get_choice("dtype", "f32", {"f32", "f64"}) == "f64" ? DType::f64
                                                                                      : DType::f32),
      missing_(context, names_, float_dtype_),
      is_read_by_table_(context.given() != nullptr) {
  const DataArgs& args = context.args();
  labels_are_classes_ = args.get_flag("classes", false) && !columns_.has_categorical_label;
  for (size_t i = 0; i < names_.size(); ++i) {
    missing_in_.push_back(missing_.of(names_[i]));
    const bool is_feature = std::ranges::find(columns_.x, i) != columns_.x.end();
    if (is_feature || !missing_.names(names_[i]) || !missing_in_[i].fills_in()) continue;
    args.fail("option missing fills in column '" + names_[i] +
              "', which is not a feature: its rule is error or drop");
  }
}

std::vector<std::string> CsvRows::x_names() const {
  std::vector<std::string> names;
  for (const size_t column : columns_.x) names.push_back(names_[column]);
  return names;
}

bool CsvRows::parse(const TextRecord& record, CsvRow& row) const {
  thread_local CsvParser csv;
  csv.restart(record, source_name_);
  csv.next();
  row.clear();
  try {
    Record(*this, csv).read(row);
  } catch (const DroppedRow&) {
    return false;
  }
  return true;
}

}  // namespace fluid
