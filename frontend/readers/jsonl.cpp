// The kind of data "jsonl": one JSON object per line.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "frontend/readers/column_table_context.h"
#include "frontend/readers/kind.h"
#include "frontend/readers/record_findings.h"
#include "frontend/readers/record_source.h"
#include "ir/error.h"
#include "ir/text.h"

namespace fluid {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kJsonlKind = "jsonl";
constexpr const char* kColumns = "columns";  ///< option name, and key in ColumnTable::columns
constexpr size_t kMaxDepth = 8;              ///< maximum nesting of arrays
constexpr double kMaxInteger = 0x1p53 - 1;   ///< doubles represent all integers up to this

/// A key whose values are a column. The first good line determines shape and type.
struct KeyColumn {
  std::string key;
  std::vector<int64_t> shape = {};  ///< shape of one sample
  bool holds_text = false;
  bool is_integer = true;  ///< whether the values of all lines are integers
};

/// The value of one key in one line.
struct LineValue {
  std::vector<int64_t> shape = {};
  std::vector<double> numbers = {};
  std::string text = {};
  bool is_text = false, is_integer = true;
};

/// Appends the elements of `json` to `value`. All arrays at one depth must have equal lengths.
/// `fail`(message) throws.
template <class Fail>
void flatten(const Json& json, size_t depth, LineValue& value, const Fail& fail) {
  if (depth > kMaxDepth) fail("holds arrays that are nested too deeply");
  if (json.is_array()) {
    const auto length = static_cast<int64_t>(json.size());
    if (value.shape.size() == depth && value.numbers.empty()) value.shape.push_back(length);
    if (depth >= value.shape.size() || value.shape[depth] != length) {
      fail("holds arrays of several lengths");
    }
    for (const Json& element : json) flatten(element, depth + 1, value, fail);
    return;
  }
  if (depth != value.shape.size()) fail("holds arrays of several lengths");
  if (json.is_string() && depth == 0) {
    value.is_text = true;
    value.text = json.get<std::string>();
  } else if (json.is_number() || json.is_boolean()) {
    const double number = json.is_boolean() ? (json.get<bool>() ? 1.0 : 0.0) : json.get<double>();
    const double limit =
        json.is_number_float() ? double{std::numeric_limits<float>::max()} : kMaxInteger;
    if (!(std::abs(number) <= limit)) fail("holds a number that is too large");
    value.is_integer = value.is_integer && !json.is_number_float();
    value.numbers.push_back(number);
  } else {
    fail("holds neither numbers nor a string");
  }
}

/// A line of a file.
class JsonLine {
 public:
  /// Throws UserError unless `record` is a JSON object.
  JsonLine(const TextRecord& record, const std::string& path)
      : record_(record),
        path_(path),
        object_(Json::parse(record.text, nullptr, /*allow_exceptions=*/false)) {
    if (!object_.is_object()) fail("not a JSON object");
  }

  const Json& object() const { return object_; }

  /// Throws UserError for a value that is no column.
  LineValue value_of(const std::string& key) const {
    const auto found = object_.find(key);
    if (found == object_.end()) fail("no key '" + key + "'");
    LineValue value;
    flatten(*found, 0, value,
            [&](const std::string& message) { fail("key '" + key + "' " + message); });
    return value;
  }

  /// Throws UserError also for a value of another type or shape than those of `column`.
  LineValue value_of(const KeyColumn& column) const {
    LineValue value = value_of(column.key);
    if (value.is_text != column.holds_text || value.shape != column.shape) {
      fail("key '" + column.key + "' has another type or length than in the first line");
    }
    return value;
  }

  std::string location() const { return ir::file_and_line(path_, record_.line()); }
  [[noreturn]] void fail(const std::string& message) const {
    throw UserError(location() + ": " + message);
  }

 private:
  const TextRecord& record_;
  const std::string& path_;
  Json object_;
};

/// The keys of a file that are columns, and the key of the column of option split=COLUMN.
struct JsonKeys {
  int64_t first_line = 0;  ///< record from which the keys are taken; all lines before it are bad
  std::vector<KeyColumn> columns = {};
  KeyColumn split = {};  ///< key "": none
};

std::string to_json(const JsonKeys& keys) {
  Json json = {{"columns", Json::array()}, {"split", keys.split.key}};
  for (const KeyColumn& column : keys.columns) {
    json["columns"].push_back({{"key", column.key},
                               {"shape", column.shape},
                               {"holds_text", column.holds_text},
                               {"is_integer", column.is_integer}});
  }
  return json.dump();
}

/// Parses the output of to_json().
JsonKeys parse_keys(const std::string& text) {
  const Json json = Json::parse(text);
  JsonKeys keys{.split = {.key = json.at("split")}};
  for (const Json& column : json.at("columns")) {
    keys.columns.push_back({.key = column.at("key"),
                            .shape = column.at("shape"),
                            .holds_text = column.at("holds_text"),
                            .is_integer = column.at("is_integer")});
  }
  return keys;
}

/// Returns the value of a column of the split as text.
std::string split_text(const LineValue& value) {
  if (value.is_text) return value.text;
  const double number = value.numbers.front();
  if (value.is_integer) return std::to_string(static_cast<int64_t>(number));
  return ir::float_text(number);
}

/// Learns the columns from the lines of a file, and which lines are left out.
class JsonlScan {
 public:
  JsonlScan(const ColumnTableContext& context, const RecordFile& file)
      : context_(context), args_(context.args()), file_(file) {}

  /// Sets the members of `scan` except `index`.
  void run(TextScan& scan) const {
    if (file_.records() == 0) throw UserError(args_.path() + " holds no sample");
    JsonKeys keys = first_keys();
    const RecordFindings found = examine(keys, scan);
    ColumnTable table = context_.initial_table({"unknown"});
    const bool learns = context_.given() == nullptr;
    if (learns) table.columns[kColumns] = {};
    for (size_t k = 0; k < keys.columns.size(); ++k) {
      KeyColumn& column = keys.columns[k];
      column.is_integer = found.is_integer[k] != 0;
      if (column.holds_text) table.feeds[column.key] = column.key;
      if (!learns) continue;
      table.columns[kColumns].push_back(column.key);
      if (column.holds_text) {
        table.classes[column.key] = categories_of(found.categories[k].texts());
      }
    }
    scan.table = table.to_json();
    scan.learned = to_json(keys);
  }

 private:
  bool skips_bad_records() const { return args_.bad_records() != BadRecords::stop; }

  /// Returns the keys of the first line whose values are columns. Without such a line, there are
  /// none.
  JsonKeys first_keys() const {
    for (int64_t record = 0; record < file_.records(); ++record) {
      try {
        JsonKeys keys = keys_of(file_.read(record));
        keys.first_line = record;
        return keys;
      } catch (const UserError&) {
        if (!skips_bad_records()) throw;
      }
    }
    return {.first_line = file_.records()};
  }

  JsonKeys keys_of(const TextRecord& record) const {
    const JsonLine line(record, file_.source_name());
    JsonKeys keys;
    if (context_.split().uses_column()) {
      std::vector<std::string> names;
      for (const auto& [key, value] : line.object().items()) names.push_back(key);
      keys.split = column_of(line, context_.split().split_column(names));
      const Column type{keys.split.key, keys.split.is_integer ? DType::i64 : DType::f32,
                        keys.split.shape};
      if (type.numel() != 1) {
        args_.fail("column '" + type.name + "' is " + type.str().substr(type.name.size() + 1) +
                   ": a column to split by has one value a row");
      }
    }
    for (const std::string& key : names_in(line.object())) {
      if (key != keys.split.key) keys.columns.push_back(column_of(line, key));
    }
    if (keys.columns.empty() && keys.split.key.empty()) line.fail("the object has no key");
    return keys;
  }

  static KeyColumn column_of(const JsonLine& line, const std::string& key) {
    const LineValue value = line.value_of(key);
    return {.key = key,
            .shape = value.shape,
            .holds_text = value.is_text,
            .is_integer = value.is_integer};
  }

  /// Returns the keys that option columns or the given table selects, else all keys of `first`.
  std::vector<std::string> names_in(const Json& first) const {
    if (const std::string* columns = args_.find(kColumns)) return ir::split_at_commas(*columns);
    std::vector<std::string> keys;
    if (context_.given() != nullptr && context_.given()->columns.contains(kColumns)) {
      for (const std::string& key : context_.given()->columns.at(kColumns)) {
        if (first.contains(key)) keys.push_back(key);  // data for prediction has no labels
      }
      return keys;
    }
    for (const auto& [key, value] : first.items()) keys.push_back(key);
    return keys;
  }

  RecordFindings examine(const JsonKeys& keys, TextScan& scan) const {
    const size_t count = keys.columns.size();
    const bool has_split = !keys.split.key.empty();
    const RecordFindings none = {.categories = std::vector<StringTable>(count),
                                 .is_integer = std::vector<char>(count, 1)};
    const auto examine_line = [&](int64_t sample, RecordFindings& found, std::string& split) {
      const TextRecord record = file_.read(sample);
      if (sample < keys.first_line) keys_of(record);  // throws the error of the line
      const JsonLine line(record, file_.source_name());
      std::vector<LineValue> values;
      for (const KeyColumn& column : keys.columns) values.push_back(line.value_of(column));
      if (has_split) split = split_text(line.value_of(keys.split));
      for (size_t k = 0; k < count; ++k) {
        if (values[k].is_text) found.categories[k].index_of(values[k].text, sample);
        if (!values[k].is_integer) found.is_integer[k] = 0;
      }
      return true;
    };
    return examine_records(file_.records(),
                           {.chunk = file_.records_per_chunk(),
                            .skips_bad_records = skips_bad_records(),
                            .has_split = has_split},
                           none, examine_line, scan);
  }

  const ColumnTableContext& context_;
  const DataArgs& args_;
  const RecordFile& file_;
};

/// The lines of a file.
class JsonlSource : public RecordSource {
 public:
  JsonlSource(const ColumnTableContext& context, JsonKeys keys, ScannedFile opened,
              const ColumnTablePtr& table)
      : RecordSource(std::move(opened.file), 0, std::move(opened.scan), table),
        keys_(std::move(keys.columns)) {
    for (const KeyColumn& column : keys_) {
      ids_.emplace_back(std::vector<std::string>(), false);
      if (column.holds_text) {
        ids_.back() = context.category_ids(column.key, *table);
      } else if (table->classes.contains(column.key)) {
        context.args().fail("key '" + column.key +
                            "' holds numbers, but categories in the training data");
      }
      const bool is_i64 = column.holds_text || column.is_integer;
      add_column({column.key, is_i64 ? DType::i64 : DType::f32, column.shape},
                 ids_.back().categories());
    }
    if (!keys.split.key.empty()) add_split_column(keys.split.key);
  }

 private:
  void parse(const TextRecord& record, std::span<std::byte* const> to) const override {
    const std::string path = name();
    const JsonLine line(record, path);
    for (size_t k = 0; k < keys_.size(); ++k) {
      const LineValue value = line.value_of(keys_[k]);
      if (value.is_text) {
        const int64_t id = ids_[k].id_of(
            value.text, [&] { return line.location() + ": key '" + keys_[k].key + "'"; });
        if (to[k] != nullptr) std::memcpy(to[k], &id, sizeof id);
      } else if (to[k] != nullptr) {
        keys_[k].is_integer ? write<int64_t>(value.numbers, to[k])
                            : write<float>(value.numbers, to[k]);
      }
    }
  }

  template <class Value>
  static void write(const std::vector<double>& numbers, std::byte* to) {
    for (const double number : numbers) {
      const auto value = static_cast<Value>(number);
      std::memcpy(to, &value, sizeof value);
      to += sizeof value;
    }
  }

  std::vector<KeyColumn> keys_;
  std::vector<CategoryIds> ids_;  ///< of each of keys_; empty for one that holds numbers
};

SampleSourcePtr open_jsonl(const DataArgs& args) {
  const ColumnTableContext context(args, kJsonlKind);
  ScannedFile opened = scan_text_file(
      args, context.given(), line_syntax(),
      [&](const RecordFile& file, TextScan& scan) { JsonlScan(context, file).run(scan); });
  JsonKeys keys = parse_keys(opened.scan.learned);
  const ColumnTablePtr table =
      context.save_learned_table(ColumnTable::from_json(opened.scan.table, args.path()));
  const bool in_memory = opened.in_memory;
  return open_records(
      std::make_shared<JsonlSource>(context, std::move(keys), std::move(opened), table), in_memory);
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
