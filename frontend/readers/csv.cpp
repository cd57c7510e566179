#include "frontend/files/csv.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <set>
#include <utility>

#include "frontend/files/gz.h"
#include "frontend/files/line_reader.h"
#include "frontend/files/temporary_file.h"
#include "frontend/readers/column_table_context.h"
#include "frontend/readers/csv_columns.h"
#include "frontend/readers/excerpt.h"
#include "frontend/readers/kind.h"
#include "frontend/readers/row_table.h"
#include "frontend/tokenizers/unicode.h"
#include "ir/error.h"
#include "ir/number.h"
#include "ir/text.h"

namespace fluid {
namespace {

constexpr const char* kCsvKind = "csv";
constexpr size_t kMaxUtf8Bytes = 4;  ///< maximum length of a code point in UTF-8

/// Whether `field` is empty or a common marker for a missing value, such as "NaN".
bool is_missing(std::string_view field) {
  static const std::set<std::string> kNames = {"", "na", "n/a", "#n/a", "nan", "null", "none"};
  return kNames.contains(ir::lowercase(field));
}

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

/// Treatment of a row in which a number is missing.
struct MissingRule {
  enum Kind {
    kReject,
    kDropRow,
    kDroppedInTraining,  ///< training dropped such rows, so eval and predict reject them
    kMean,
    kConstant
  } kind = kReject;
  float constant = 0;
};

MissingRule missing_rule(const ColumnTableContext& context) {
  const DataArgs& args = context.args();
  const std::string text = args.get_string("missing", "error");
  if (text == "error") return {};
  if (text == "drop" && context.option_is_from_table("missing"))
    return {MissingRule::kDroppedInTraining};
  if (text == "drop") return {MissingRule::kDropRow};
  if (text == "mean") return {MissingRule::kMean};
  const std::optional<float> number = parse_number<float>(text);
  if (!number || !std::isfinite(*number)) {
    args.fail("option missing=" + text + " must be error, drop, mean or a number");
  }
  return {MissingRule::kConstant, *number};
}

/// Returns whether the whole file is valid UTF-8.
bool is_utf8(std::shared_ptr<const ByteSource> file) {
  SequentialBytes parts(std::move(file));
  std::string text;
  while (parts.read_more(text)) {
    char bits = 0;
    for (const char c : text) bits |= c;
    size_t at = bits >= 0 ? text.size() : 0;  // ASCII needs no decoding
    char32_t code_point = 0;
    while (at < text.size() && next_code_point(text, at, code_point)) continue;
    if (text.size() - at >= kMaxUtf8Bytes) return false;
    text.erase(0, at);  // an incomplete code point may continue in the next part
  }
  return text.empty();
}

/// Returns a ReadMore for `file` that converts Latin-1 to UTF-8 if the file is not UTF-8. Column
/// tables store names and categories as UTF-8.
CsvParser::ReadMore read_as_utf8(const std::shared_ptr<const ByteSource>& file) {
  const auto parts = std::make_shared<SequentialBytes>(file);
  if (is_utf8(file)) return [parts](std::string& text) { return parts->read_more(text); };
  return [parts, is_first = true](std::string& text) mutable {
    std::string part;
    if (!parts->read_more(part)) return false;
    // Does not convert UTF-16: CsvParser detects its byte order mark and throws UserError.
    const bool is_utf16 = part.starts_with("\xff\xfe") || part.starts_with("\xfe\xff");
    if (std::exchange(is_first, false) && is_utf16) {
      text += part;
      return true;
    }
    for (const char c : part) text += utf8_of(static_cast<unsigned char>(c));
    return true;
  };
}

/// Thrown to drop a row because of missing=drop.
struct DroppedRow {};

/// Parses the rows of a CSV file. Stores features of x as f32, NaN if missing, and each text as its
/// index in a StringTable.
class TableReader {
 public:
  TableReader(const ColumnTableContext& context, CsvParser& csv)
      : context_(context),
        args_(context.args()),
        csv_(csv),
        missing_(missing_rule(context_)),
        classes_(args_.get_flag("classes", false)),
        rows_(args_.memory_limit()) {
    if (!csv_.next()) throw UserError(args_.path() + " is empty: no line names the columns");
    for (const std::string_view name : csv_.fields()) names_.emplace_back(name);
    check_distinct();
    columns_ = choose_csv_columns(names_, args_, context.split(), context.given());
    if (columns_.has_categorical_label) classes_ = false;
    categories_.resize(columns_.categorical().size());
  }

  SampleSourcePtr read() {
    bool has_rows = false;
    Row row;
    while (csv_.next()) {
      has_rows = true;
      try {
        read_row(row);
      } catch (const DroppedRow&) {
        continue;
      } catch (const UserError& error) {
        if (args_.bad_records() == BadRecords::stop) throw;
        data_.skipped.add(error.what());
        continue;
      }
      append(row);
    }
    if (!has_rows) {
      throw UserError(args_.path() + " has a header but no rows: its only line names the columns");
    }
    data_.source = args_.path();
    data_.row_bytes = row_bytes();
    data_.samples = rows_.rows();
    data_.rows = rows_.release();
    ColumnTable table = start_table();
    if (context_.given() == nullptr) learn(table);
    add_columns(table);
    data_.table = context_.save_learned_table(std::move(table));
    return make_source(std::move(data_));
  }

 private:
  struct Row {
    std::vector<float> x, y;
    std::vector<int64_t> integers, classes;
    std::vector<std::string_view> categories;
    std::string_view split;

    /// Removes the values. Keeps the memory for the next row.
    void clear() {
      x.clear();
      y.clear();
      integers.clear();
      classes.clear();
      categories.clear();
    }
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

  void read_row(Row& row) const {
    if (csv_.fields().size() != names_.size()) {
      fail(std::to_string(csv_.fields().size()) + " fields, but the first line has " +
           std::to_string(names_.size()));
    }
    row.clear();
    for (const size_t column : columns_.x) row.x.push_back(feature(column));
    for (const size_t column : columns_.categorical()) {
      const std::string_view field = csv_.fields()[column];
      if (field.empty()) reject(column);
      row.categories.push_back(field);
    }
    for (const size_t column : columns_.integers) row.integers.push_back(integer(column));
    for (const size_t column : columns_.labels) {
      if (columns_.has_categorical_label) break;
      classes_ ? row.classes.push_back(class_of(column))
               : row.y.push_back(f32_of(number(column), column));
    }
    if (columns_.split) row.split = csv_.fields()[*columns_.split];
  }

  /// Appends the values of `row` to rows_, in the order that add_columns() expects.
  void append(const Row& row) {
    const int64_t line = csv_.line();
    rows_.start_row(line);
    for (const float value : row.x) rows_.append(value);
    for (size_t i = 0; i < categories_.size(); ++i) {
      rows_.append(categories_[i].index_of(row.categories[i], line));
    }
    for (const int64_t value : row.integers) rows_.append(value);
    for (const float value : row.y) rows_.append(value);
    for (const int64_t value : row.classes) rows_.append(value);
    if (columns_.split) rows_.append(split_values_.index_of(row.split, line));
    rows_.finish_row();
  }

  /// Returns the number in `column`. Returns NaN for a missing number that x_conversion() fills in.
  float feature(size_t column) const {
    const std::optional<double> value = finite_number(csv_.fields()[column]);
    if (value) return f32_of(*value, column);
    const bool fills =
        missing_.kind == MissingRule::kMean || missing_.kind == MissingRule::kConstant;
    if (fills && is_missing(csv_.fields()[column])) return std::numeric_limits<float>::quiet_NaN();
    reject(column, "drop|mean|NUMBER");
  }

  double number(size_t column) const {
    const std::optional<double> value = finite_number(csv_.fields()[column]);
    if (!value) reject(column);
    return *value;
  }

  /// Throws for a field that is not a number. `rules`: the values of option missing that would fill
  /// in a missing number, or leave out its row.
  [[noreturn]] void reject(size_t column, const std::string& rules = "drop") const {
    const std::string_view field = csv_.fields()[column];
    const std::string where = "column '" + excerpt(names_[column]) + "'";
    if (!is_missing(field)) fail(where + ": '" + excerpt(field) + "' is not a finite number");
    if (missing_.kind == MissingRule::kDropRow) throw DroppedRow();
    const std::string lack =
        where + " has no value" + (field.empty() ? "" : " ('" + excerpt(field) + "')") + ": ";
    if (missing_.kind == MissingRule::kDroppedInTraining) {
      fail(lack +
           "training left such rows out; fill it in, or add missing=drop to leave this row "
           "out, or missing=NUMBER");
    }
    fail(lack + "fill it in, or leave the row or the column out, or add missing=" + rules);
  }

  /// Rounds `value`, a value of `column`, to f32.
  float f32_of(double value, size_t column) const {
    const auto rounded = static_cast<float>(value);
    if (!std::isfinite(rounded)) fail_type(column, "is beyond the range of f32");
    return rounded;
  }

  int64_t class_of(size_t column) const {
    const double v = number(column);
    if (v != std::floor(v) || v < 0 || v > 0x1p53) fail_type(column, "is not a class number");
    return static_cast<int64_t>(v);
  }

  int64_t integer(size_t column) const {
    const std::string_view field = csv_.fields()[column];
    const std::optional<int64_t> value = parse_number<int64_t>(without_plus(field));
    if (value) return *value;
    if (is_missing(field)) reject(column);
    const std::optional<double> number = finite_number(field);  // such as 5.0
    if (number && *number == std::floor(*number) && std::abs(*number) <= 0x1p53) {
      return static_cast<int64_t>(*number);
    }
    fail_type(column, "is not an integer of 64 bits");
  }

  [[noreturn]] void fail_type(size_t column, const std::string& what) const {
    fail("column '" + excerpt(names_[column]) + "': " + excerpt(csv_.fields()[column]) + " " +
         what);
  }

  bool needs_moments() const {
    return missing_.kind == MissingRule::kMean || args_.get_flag("normalize", false);
  }

  /// Returns a copy of the given table, or an empty table, with the columns, feeds and options of
  /// this file.
  ColumnTable start_table() const {
    ColumnTable table = context_.initial_table({"classes", "missing", "normalize", "unknown"});
    table.columns = names_of(columns_, names_);
    for (const size_t category : columns_.categories) {
      table.feeds[names_[category]] = names_[category];
    }
    if (columns_.has_categorical_label) table.feeds["y"] = names_[columns_.labels.front()];
    return table;
  }

  /// Stores the categories of all rows and the moments of the training rows in `table`.
  void learn(ColumnTable& table) {
    const std::vector<size_t> categorical = columns_.categorical();
    for (size_t i = 0; i < categorical.size(); ++i) {
      table.classes[names_[categorical[i]]] = categories_of(categories_[i].texts());
    }
    if (!needs_moments() || data_.samples == 0) return;
    const std::vector<ColumnTable::Moments> moments = learned_moments();
    for (size_t i = 0; i < columns_.x.size(); ++i) {
      table.moments[names_[columns_.x[i]]] = moments[i];
    }
  }

  /// Returns a predicate for training rows. The predicate must be called for each row, in order.
  std::function<bool(const std::byte*)> training_rows() const {
    if (!columns_.split) {
      return [splits = context_.split().splits(data_.samples),
              row = size_t{0}](const std::byte*) mutable {
        return splits.empty() || splits[row++] == Split::train;
      };
    }
    const std::string& name = names_[*columns_.split];
    const auto first_row = [&](size_t i) { return location(split_values_.first_line(i)); };
    return [splits = context_.split().splits(name, split_values_.texts(), first_row),
            offset = split_offset()](const std::byte* row) {
      return splits[static_cast<size_t>(value_at<int32_t>(row + offset))] == Split::train;
    };
  }

  /// Calls `callback`(i, value) for each feature i of x in each training row. Skips missing values.
  void for_each_training_feature(const std::function<void(size_t, double)>& callback) const {
    const std::function<bool(const std::byte*)> trains = training_rows();
    data_.for_each_row([&](const std::byte* row) {
      if (!trains(row)) return;
      for (size_t i = 0; i < columns_.x.size(); ++i) {
        const float value = value_at<float>(row + kXOffset + i * sizeof value);
        if (!std::isnan(value)) callback(i, value);
      }
    });
  }

  std::vector<ColumnTable::Moments> learned_moments() const {
    struct Sums {
      double sum = 0, mean = 0, squares = 0;
      int64_t count = 0;
    };
    std::vector<Sums> sums(columns_.x.size());
    for_each_training_feature([&](size_t i, double value) {
      sums[i].sum += value;
      ++sums[i].count;
    });
    for (size_t i = 0; i < sums.size(); ++i) {
      if (sums[i].count == 0) {
        args_.fail("column '" + names_[columns_.x[i]] + "' has no value in the training rows");
      }
      sums[i].mean = sums[i].sum / static_cast<double>(sums[i].count);
    }
    for_each_training_feature([&](size_t i, double value) {
      sums[i].squares += (value - sums[i].mean) * (value - sums[i].mean);
    });
    std::vector<ColumnTable::Moments> moments;
    for (const Sums& s : sums) {
      const double std = std::sqrt(s.squares / static_cast<double>(s.count));
      moments.push_back({s.mean, std > 0 ? std : 1});
    }
    return moments;
  }

  std::string location(int64_t line) const { return ir::file_and_line(args_.path(), line); }

  /// Byte offset of the split column, the last column of a row.
  int64_t split_offset() const { return row_bytes() - static_cast<int64_t>(sizeof(int32_t)); }

  int64_t row_bytes() const {
    const size_t label_bytes = classes_ ? sizeof(int64_t) : sizeof(float);
    const size_t labels = columns_.has_categorical_label ? 0 : columns_.labels.size();
    return static_cast<int64_t>(kXOffset + columns_.x.size() * sizeof(float) +
                                categories_.size() * sizeof(int32_t) +
                                columns_.integers.size() * sizeof(int64_t) + labels * label_bytes +
                                (columns_.split ? sizeof(int32_t) : 0));
  }

  void add_columns(const ColumnTable& table) {
    offset_ = static_cast<int64_t>(kXOffset);
    const auto width = [](const std::vector<size_t>& columns) {
      return static_cast<int64_t>(columns.size());
    };
    if (!columns_.x.empty()) {
      add_column({"x", DType::f32, {width(columns_.x)}}, sizeof(float), x_conversion(table));
    }
    for (size_t i = 0; i < categories_.size(); ++i) {
      const bool is_label = i == columns_.categories.size();
      const std::string& name = names_[columns_.categorical()[i]];
      add_texts(is_label ? "y" : name, name, categories_[i], table);
    }
    for (const size_t column : columns_.integers) {
      add_column({names_[column], DType::i64}, sizeof(int64_t), nullptr);
    }
    if (!columns_.has_categorical_label && !columns_.labels.empty()) {
      const bool is_scalar = classes_ && columns_.labels.size() == 1;
      std::vector<int64_t> shape;
      if (!is_scalar) shape = {width(columns_.labels)};
      const DType dtype = classes_ ? DType::i64 : DType::f32;
      add_column({"y", dtype, std::move(shape)}, size_of(dtype), nullptr);
    }
    if (!columns_.split) return;
    const std::string& name = names_[*columns_.split];
    // The names of the splits in this file. `table` does not hold them, because it also applies to
    // other files, which may name other splits.
    ColumnTable split_names;
    split_names.classes[name] = categories_of(split_values_.texts());
    add_texts(name, name, split_values_, split_names);
  }

  /// Adds a column. Its values start at byte offset_ of a row and have `value_bytes` bytes each.
  void add_column(Column type, int64_t value_bytes, Conversion convert) {
    const int64_t bytes = type.numel() * value_bytes;
    data_.columns.push_back(
        {.type = std::move(type), .offset = offset_, .convert = std::move(convert)});
    offset_ += bytes;
  }

  /// Adds an i64 column `column` with the ids of the texts in file column `name`.
  void add_texts(const std::string& column, const std::string& name, const StringTable& texts,
                 const ColumnTable& table) {
    std::vector<int64_t> ids = context_.ids_of(texts.texts(), name, table, [&](size_t i) {
      return location(texts.first_line(i)) + ": column '" + excerpt(name) + "'";
    });
    add_column({column, DType::i64}, sizeof(int32_t), id_conversion(std::move(ids)));
    data_.columns.back().classes = table.classes.at(name);
  }

  /// Returns the conversion that fills in missing numbers and normalises x; null: none.
  Conversion x_conversion(const ColumnTable& table) const {
    if (!needs_moments() && missing_.kind != MissingRule::kConstant) return nullptr;
    std::vector<ColumnTable::Moments> moments;
    for (const size_t column : columns_.x) {
      const auto found = table.moments.find(names_[column]);
      if (needs_moments() && found == table.moments.end()) {
        context_.fail_without_column(names_[column]);
      }
      moments.push_back(needs_moments() ? found->second : ColumnTable::Moments());
    }
    const bool fills_mean = missing_.kind == MissingRule::kMean;
    const bool normalizes = args_.get_flag("normalize", false);
    return [moments = std::move(moments), fills_mean, normalizes, constant = missing_.constant](
               const std::byte* from, std::byte* to) {
      for (size_t i = 0; i < moments.size(); ++i) {
        const auto value = value_at<float>(from + i * sizeof(float));
        const auto& [mean, std] = moments[i];
        const double fill = fills_mean ? mean : double{constant};
        const double filled = std::isnan(value) ? fill : double{value};
        const auto result = static_cast<float>(normalizes ? (filled - mean) / std : filled);
        std::memcpy(to + i * sizeof result, &result, sizeof result);
      }
    };
  }

  static constexpr size_t kXOffset = sizeof(int64_t);  // x follows the line number in a row

  const ColumnTableContext& context_;
  const DataArgs& args_;
  CsvParser& csv_;
  MissingRule missing_;
  bool classes_;  // whether labels are class indices
  std::vector<std::string> names_;
  CsvColumns columns_;
  std::vector<StringTable> categories_;  // one per categorical column
  StringTable split_values_;             // values of the column of split=COLUMN
  RowWriter rows_;
  RowTable data_;
  int64_t offset_ = 0;  // byte offset in a row of the next column to add
};

SampleSourcePtr open_csv(const DataArgs& args) {
  const ColumnTableContext context(args, kCsvKind);
  CsvParser csv(
      read_as_utf8(open_gz_or_plain(args.path(), std::min(kMaxLoadedBytes, args.memory_limit()))),
      args.path());
  return TableReader(context, csv).read();
}

}  // namespace

DataKind csv_kind() {
  return {.name = kCsvKind,
          .usage = "csv:FILE?label=COLUMN",
          .doc =
              "comma-separated numbers with a header line: x f32[columns] holds all columns but "
              "the label, or only columns=a,b, or all but drop=c; y f32[labels] holds label=a,b, "
              "or class indices i64 with classes=1; categories=c,d: text columns, each a column "
              "i64 of ids; integers=e,f: each a column i64; missing=error|drop|mean|NUMBER; "
              "normalize=1 by the mean and the std of "
              "the training rows; unknown=1 allows other categories. Saved parameters keep all of "
              "this, and eval and predict read their data by it; table=FILE, a .safetensors or "
              "JSON, names another file that keeps it, table=none learns it again; memory=0|1: "
              "hold the parsed rows in memory (default: below "
              "64 MiB), else in a temporary file",
          .splits_rows = true,
          .has_table = true,
          .options = {"categories", "classes", "columns", "drop", "integers", "label", "memory",
                      "missing", "normalize"},
          .open_source = open_csv};
}

}  // namespace fluid
