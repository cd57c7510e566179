// The kind of data "jsonl": one JSON object per line.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "frontend/files/gz.h"
#include "frontend/files/line_reader.h"
#include "frontend/files/temporary_file.h"
#include "frontend/readers/column_table_context.h"
#include "frontend/readers/kind.h"
#include "frontend/readers/row_table.h"
#include "ir/error.h"
#include "ir/text.h"

namespace fluid {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kJsonlKind = "jsonl";
constexpr const char* kColumns = "columns";  ///< option name, and key in ColumnTable::columns
constexpr size_t kMaxDepth = 8;              ///< maximum nesting of arrays
constexpr double kMaxInteger = 0x1p53 - 1;   ///< doubles represent all integers up to this

/// The values of one key in all lines. A row holds the index of a text in `texts`, or numbers. The
/// numbers are f32 if the first line has a non-integer, else f64.
struct KeyValues {
  std::string key;
  std::vector<int64_t> shape = {};  // shape of one sample
  StringTable texts = {};
  bool holds_text = false, is_integer = true;
  bool is_f32 = false;  // whether the rows hold f32 numbers instead of f64

  int64_t row_bytes() const {
    if (holds_text) return sizeof(int32_t);
    return Column{.shape = shape}.numel() * size_of(is_f32 ? DType::f32 : DType::f64);
  }
};

/// The value of one key in one line.
struct LineValue {
  std::vector<int64_t> shape;
  std::vector<double> numbers;
  std::string text;
  bool is_text = false, is_integer = true;
};

class JsonLines {
 public:
  JsonLines(const ColumnTableContext& context, LineReader lines)
      : context_(context),
        args_(context.args()),
        lines_(std::move(lines)),
        rows_(args_.memory_limit()) {}

  SampleSourcePtr read() {
    for (std::string_view line; lines_.next(line);) {
      if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
      std::vector<LineValue> values;
      try {
        values = values_of(line);
      } catch (const UserError& error) {
        if (args_.bad_records() == BadRecords::stop) throw;
        data_.skipped.add(error.what());
        if (rows_.rows() == 0) keys_.clear();
        continue;
      }
      append(values);
    }
    if (rows_.rows() == 0 && data_.skipped.count == 0) {
      throw UserError(args_.path() + " holds no sample");
    }
    return source();
  }

 private:
  [[noreturn]] void fail(const std::string& message) const {
    throw UserError(ir::file_and_line(args_.path(), lines_.number()) + ": " + message);
  }

  /// Parses a line. If keys_ is empty, chooses the keys from this line. Returns one value for each
  /// of keys_.
  std::vector<LineValue> values_of(std::string_view line) {
    const Json object = Json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!object.is_object()) fail("not a JSON object");
    if (keys_.empty()) choose_keys(object);
    std::vector<LineValue> values;
    for (const KeyValues& key : keys_) {
      const auto found = object.find(key.key);
      if (found == object.end()) fail("no key '" + key.key + "'");
      LineValue value;
      flatten(*found, 0, key.key, value);
      const bool is_first = rows_.rows() == 0;
      if (!is_first && (value.is_text != key.holds_text || value.shape != key.shape)) {
        fail("key '" + key.key + "' has another type or length than in the first line");
      }
      values.push_back(std::move(value));
    }
    return values;
  }

  void choose_keys(const Json& first) {
    const std::string* columns = args_.find(kColumns);
    std::vector<KeyValues> keys;
    if (columns != nullptr) {
      for (std::string& key : ir::split_at_commas(*columns))
        keys.push_back({.key = std::move(key)});
    } else if (context_.given() != nullptr && context_.given()->columns.contains(kColumns)) {
      for (const std::string& key : context_.given()->columns.at(kColumns)) {
        if (first.contains(key)) keys.push_back({.key = key});  // data for prediction has no labels
      }
    } else {
      for (const auto& [key, value] : first.items()) keys.push_back({.key = key});
    }
    if (context_.split().uses_column()) {
      std::vector<std::string> names;
      for (const auto& [key, value] : first.items()) names.push_back(key);
      split_key_ = context_.split().split_column(names);
      const bool is_listed = std::ranges::find(keys, split_key_, &KeyValues::key) != keys.end();
      if (!is_listed) keys.push_back({.key = split_key_});
    }
    if (keys.empty()) fail("the object has no key");
    keys_ = std::move(keys);
  }

  /// Appends the elements of `json` to `value`. All arrays at one depth must have equal lengths.
  void flatten(const Json& json, size_t depth, const std::string& key, LineValue& value) const {
    if (depth > kMaxDepth) fail("key '" + key + "' holds arrays that are nested too deeply");
    if (json.is_array()) {
      const auto length = static_cast<int64_t>(json.size());
      if (value.shape.size() == depth && value.numbers.empty()) value.shape.push_back(length);
      if (depth >= value.shape.size() || value.shape[depth] != length) {
        fail("key '" + key + "' holds arrays of several lengths");
      }
      for (const Json& element : json) flatten(element, depth + 1, key, value);
      return;
    }
    if (depth != value.shape.size()) fail("key '" + key + "' holds arrays of several lengths");
    if (json.is_string() && depth == 0) {
      value.is_text = true;
      value.text = json.get<std::string>();
    } else if (json.is_number() || json.is_boolean()) {
      const double number = json.is_boolean() ? (json.get<bool>() ? 1.0 : 0.0) : json.get<double>();
      const double limit =
          json.is_number_float() ? double{std::numeric_limits<float>::max()} : kMaxInteger;
      if (!(std::abs(number) <= limit)) fail("key '" + key + "' holds a number that is too large");
      value.is_integer = value.is_integer && !json.is_number_float();
      value.numbers.push_back(number);
    } else {
      fail("key '" + key + "' holds neither numbers nor a string");
    }
  }

  /// Appends a row with one value for each of keys_.
  void append(const std::vector<LineValue>& values) {
    const bool is_first = rows_.rows() == 0;
    rows_.start_row(lines_.number());
    for (size_t k = 0; k < keys_.size(); ++k) {
      KeyValues& key = keys_[k];
      const LineValue& value = values[k];
      key.is_integer = key.is_integer && value.is_integer;
      if (is_first) {
        key.shape = value.shape;
        key.holds_text = value.is_text;
        key.is_f32 = !value.is_integer;
      }
      if (value.is_text) rows_.append(key.texts.index_of(value.text, lines_.number()));
      for (const double number : value.numbers) {
        key.is_f32 ? rows_.append(static_cast<float>(number)) : rows_.append(number);
      }
    }
    rows_.finish_row();
  }

  SampleSourcePtr source() {
    data_.source = args_.path();
    data_.samples = rows_.rows();
    data_.rows = rows_.release();
    ColumnTable table = context_.initial_table({"unknown"});
    if (context_.given() == nullptr) table.columns[kColumns] = kept_keys();
    data_.row_bytes = sizeof(int64_t);  // a row starts with its line number
    for (KeyValues& key : keys_) {
      if (data_.samples == 0) break;
      RowTableColumn column{.type = {key.key, DType::i64, key.shape}, .offset = data_.row_bytes};
      data_.row_bytes += key.row_bytes();
      if (key.holds_text) {
        add_categories(key, table, column);
      } else if (key.key != split_key_ && table.classes.contains(key.key)) {
        args_.fail("key '" + key.key + "' holds numbers, but categories in the training data");
      } else if (key.is_integer) {
        column.convert = conversion<int64_t>(column.type.numel());
      } else {
        column.type.dtype = DType::f32;
        if (!key.is_f32) column.convert = conversion<float>(column.type.numel());
      }
      data_.columns.push_back(std::move(column));
    }
    data_.table = context_.save_learned_table(std::move(table));
    return make_source(std::move(data_));
  }

  /// Returns a Conversion of `count` numbers from f64 to `Value`.
  template <class Value>
  static Conversion conversion(int64_t count) {
    return [count](const std::byte* from, std::byte* to) {
      for (int64_t i = 0; i < count; ++i) {
        const auto value = static_cast<Value>(value_at<double>(from + i * int64_t{sizeof(double)}));
        std::memcpy(to + i * int64_t{sizeof value}, &value, sizeof value);
      }
    };
  }

  /// Returns keys_ without the key of the split column.
  std::vector<std::string> kept_keys() const {
    std::vector<std::string> keys;
    for (const KeyValues& key : keys_) {
      if (key.key != split_key_) keys.push_back(key.key);
    }
    return keys;
  }

  /// Converts the texts of `key` to category ids in `column`. Adds the categories to `table` if no
  /// table was given.
  void add_categories(const KeyValues& key, ColumnTable& table, RowTableColumn& column) const {
    const bool is_split = key.key == split_key_;
    // Excludes the categories of the split column from `table`, because this column may have other
    // values in other data.
    ColumnTable values;
    ColumnTable& used = is_split ? values : table;
    if (!used.classes.contains(key.key)) {
      if (!is_split && context_.given() != nullptr) context_.fail_without_column(key.key);
      used.classes[key.key] = categories_of(key.texts.texts());
    }
    column.convert = id_conversion(context_.ids_of(key.texts.texts(), key.key, used, [&](size_t i) {
      return ir::file_and_line(args_.path(), key.texts.first_line(i)) + ": key '" + key.key + "'";
    }));
    if (!is_split) table.feeds[key.key] = key.key;
    column.classes = used.classes.at(key.key);
  }

  const ColumnTableContext& context_;
  const DataArgs& args_;
  LineReader lines_;
  std::string split_key_;  // the column of option split; empty: none
  std::vector<KeyValues> keys_;
  RowWriter rows_;
  RowTable data_;
};

SampleSourcePtr open_jsonl(const DataArgs& args) {
  const ColumnTableContext context(args, kJsonlKind);
  return JsonLines(context,
                   {open_gz_or_plain(args.path(), std::min(kMaxLoadedBytes, args.memory_limit())),
                    args.path()})
      .read();
}

}  // namespace

DataKind jsonl_kind() {
  return {.name = kJsonlKind,
          .usage = "jsonl:FILE",
          .doc =
              "a JSON object a line, gzipped or not: each key of the first line, or columns=a,b, "
              "is a column: numbers and arrays of numbers f32, or i64 if all are integers; strings "
              "are ids i64 of categories in sorted order; table=, unknown=1 and memory= as for csv",
          .splits_rows = true,
          .has_table = true,
          .options = {"columns", "memory"},
          .open_source = open_jsonl};
}

}  // namespace fluid
