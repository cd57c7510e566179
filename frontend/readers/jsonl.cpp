// The kind of data "jsonl": one JSON object per line.

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "frontend/files/gz.h"
#include "frontend/readers/kind.h"
#include "frontend/readers/table_use.h"
#include "ir/error.h"
#include "ir/text.h"

namespace fluid {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kJsonlKind = "jsonl";
constexpr const char* kColumns = "columns";  ///< option, and entry of ColumnTable::columns
constexpr size_t kMaxDepth = 8;              ///< maximum nesting of arrays
constexpr double kMaxInteger = 0x1p53 - 1;   ///< integers up to this one are exact in a double

/// The values of a key in all lines.
struct KeyValues {
  std::string key;
  std::vector<int64_t> shape;      // shape of one sample
  std::vector<double> numbers;     // elements of all samples; empty for strings
  std::vector<std::string> texts;  // of all samples; empty if the values are numbers
  bool holds_text = false, is_integer = true;
};

/// A value of a line: its shape and elements.
struct LineValue {
  std::vector<int64_t> shape;
  std::vector<double> numbers;
  std::string text;
  bool is_text = false, is_integer = true;
};

class JsonLines {
 public:
  JsonLines(const TableUse& use, std::string_view text)
      : use_(use), args_(use.args()), text_(text) {}

  Dataset read() {
    for (std::string_view line; next_line(line);) {
      std::vector<LineValue> values;
      try {
        values = values_of(line);
      } catch (const UserError& error) {
        if (args_.bad_records() == BadRecords::stop) throw;
        skipped_.add(error.what());
        if (lines_.empty()) keys_.clear();
        continue;
      }
      lines_.push_back(line_);
      for (size_t k = 0; k < keys_.size(); ++k) append(keys_[k], values[k]);
    }
    if (lines_.empty() && skipped_.count == 0) throw UserError(args_.path() + " holds no sample");
    return dataset();
  }

 private:
  [[noreturn]] void fail(const std::string& message) const {
    throw UserError(ir::file_and_line(args_.path(), line_) + ": " + message);
  }

  /// Finds the next line that is not blank.
  bool next_line(std::string_view& line) {
    while (!text_.empty()) {
      ++line_;
      line = text_.substr(0, text_.find('\n'));
      text_.remove_prefix(std::min(text_.size(), line.size() + 1));
      if (line.find_first_not_of(" \t\r") != std::string_view::npos) return true;
    }
    return false;
  }

  /// Returns the values in `line` of the keys of the first line, or of option columns.
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
      const bool is_first = lines_.empty();
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
      for (std::string& key : ir::split_at_commas(*columns)) keys.push_back({std::move(key)});
    } else if (use_.given() != nullptr && use_.given()->columns.contains(kColumns)) {
      for (const std::string& key : use_.given()->columns.at(kColumns)) {
        if (first.contains(key)) keys.push_back({key});  // data to predict has no labels
      }
    } else {
      for (const auto& [key, value] : first.items()) keys.push_back({key});
    }
    if (use_.split().uses_column()) {
      std::vector<std::string> names;
      for (const auto& [key, value] : first.items()) names.push_back(key);
      split_key_ = use_.split().column(names);
      const bool is_listed = std::ranges::find(keys, split_key_, &KeyValues::key) != keys.end();
      if (!is_listed) keys.push_back({split_key_});
    }
    if (keys.empty()) fail("the object has no key");
    keys_ = std::move(keys);
  }

  /// Appends the elements of `json` to `value`. Arrays at `depth` must have equal lengths.
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

  void append(KeyValues& key, LineValue& value) const {
    if (lines_.size() == 1) {
      key.shape = value.shape;
      key.holds_text = value.is_text;
    }
    key.is_integer = key.is_integer && value.is_integer;
    key.numbers.insert(key.numbers.end(), value.numbers.begin(), value.numbers.end());
    if (value.is_text) key.texts.push_back(std::move(value.text));
  }

  Dataset dataset() {
    Dataset data;
    data.source = args_.path();
    data.skipped = skipped_;
    ColumnTable table = use_.start({"unknown"});
    if (use_.given() == nullptr) table.columns[kColumns] = kept_keys();
    for (const KeyValues& key : keys_) {
      if (lines_.empty()) break;
      std::vector<int64_t> shape = {static_cast<int64_t>(lines_.size())};
      shape.insert(shape.end(), key.shape.begin(), key.shape.end());
      if (key.holds_text) {
        add_categories(key, table, data);
      } else if (key.key != split_key_ && table.classes.contains(key.key)) {
        args_.fail("key '" + key.key + "' holds numbers, but categories in the training data");
      } else if (key.is_integer) {
        const std::vector<int64_t> integers(key.numbers.begin(), key.numbers.end());
        data.columns.emplace_back(key.key, Tensor::of<int64_t>(shape, integers));
      } else {
        const std::vector<float> floats(key.numbers.begin(), key.numbers.end());
        data.columns.emplace_back(key.key, Tensor::of<float>(shape, floats));
      }
    }
    data.lines = std::move(lines_);
    data.table = use_.keep(std::move(table));
    return data;
  }

  /// The keys of the data, without the column of the split.
  std::vector<std::string> kept_keys() const {
    std::vector<std::string> keys;
    for (const KeyValues& key : keys_) {
      if (key.key != split_key_) keys.push_back(key.key);
    }
    return keys;
  }

  /// Replaces the texts of a key by the ids of their categories, which `table` gives or learns.
  void add_categories(const KeyValues& key, ColumnTable& table, Dataset& data) const {
    const bool is_split = key.key == split_key_;
    // A separate table for the split column: other data need not have these values.
    ColumnTable values;
    ColumnTable& used = is_split ? values : table;
    if (!used.classes.contains(key.key)) {
      if (!is_split && use_.given() != nullptr) use_.fail_without_column(key.key);
      used.classes[key.key] = categories_of(key.texts);
    }
    const std::vector<int64_t> ids = use_.ids_of(key.texts, key.key, used, [&](size_t line) {
      return ir::file_and_line(args_.path(), lines_[line]) + ": key '" + key.key + "'";
    });
    if (!is_split) table.feeds[key.key] = key.key;
    data.classes[key.key] = used.classes.at(key.key);
    data.columns.emplace_back(key.key,
                              Tensor::of<int64_t>({static_cast<int64_t>(ids.size())}, ids));
  }

  const TableUse& use_;
  const DataArgs& args_;
  std::string_view text_;  // text after the current line
  std::string split_key_;  // the column of option split; empty: none
  int64_t line_ = 0;
  std::vector<KeyValues> keys_;
  std::vector<int64_t> lines_;
  SkippedRecords skipped_;
};

Dataset read_jsonl(const DataArgs& args) {
  const TableUse use(args, kJsonlKind);
  const std::string text = read_maybe_gz(args.path());
  return JsonLines(use, text).read();
}

}  // namespace

DataKind jsonl_kind() {
  return {.name = kJsonlKind,
          .usage = "jsonl:FILE",
          .doc =
              "a JSON object a line, gzipped or not: each key of the first line, or columns=a,b, "
              "is a column: numbers and arrays of numbers f32, or i64 if all are integers; strings "
              "are ids i64 of categories in sorted order; table= and unknown=1 as for csv",
          .splits_rows = true,
          .keeps_table = true,
          .options = {"columns"},
          .open = in_memory(read_jsonl)};
}

}  // namespace fluid
