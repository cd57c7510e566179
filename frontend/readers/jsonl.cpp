// The kind of data "jsonl": one JSON object per line.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "frontend/readers/category_columns.h"
#include "frontend/readers/column_table_context.h"
#include "frontend/readers/json_lines.h"
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
constexpr const char* kFloats = "floats";    ///< key in ColumnTable::columns: columns of f32
constexpr const char* kNormalize = "normalize";

/// The keys of a file that are columns, and the key of the column of option split=COLUMN.
struct JsonKeys {
  int64_t first_line = 0;  ///< record from which the keys are taken; all lines before it are bad
  std::vector<KeyColumn> columns = {};
  std::vector<size_t> without_type = {};  ///< columns whose value is missing in `first_line`
  KeyColumn split = {};                   ///< key "": none
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

/// Name of element `i` of a column in ColumnTable::moments: "x", or "x[3]" for an array.
std::string element_name(const KeyColumn& column, int64_t i) {
  return column.shape.empty() ? column.key : column.key + "[" + std::to_string(i) + "]";
}

/// Which columns of numbers are normalised, by option normalize=KEY,KEY.
class NormalizedKeys {
 public:
  /// Throws UserError for a key that is no column of numbers.
  NormalizedKeys(const DataArgs& args, const std::vector<KeyColumn>& columns) {
    const std::string* option = args.find(kNormalize);
    if (option == nullptr || option->empty()) return;
    keys_ = ir::split_at_commas(*option);
    std::vector<std::string> known;
    for (const KeyColumn& column : columns) {
      if (!column.holds_text) known.push_back(column.key);
    }
    for (const std::string& key : keys_) {
      if (std::ranges::find(known, key) != known.end()) continue;
      args.fail("option normalize: no key '" + key + "' of numbers" + did_you_mean(key, known));
    }
  }
  bool contain(const KeyColumn& column) const {
    return std::ranges::find(keys_, column.key) != keys_.end();
  }

 private:
  std::vector<std::string> keys_;
};

/// Sets the rules of option missing for `columns`.
void set_missing_rules(const ColumnTableContext& context, std::vector<KeyColumn>& columns) {
  std::vector<std::string> names;
  for (const KeyColumn& column : columns) names.push_back(column.key);
  const MissingRules rules(context, names, DType::f32);
  for (KeyColumn& column : columns) {
    column.missing = rules.of(column.key);
    column.missing_option = rules.option();
  }
}

/// Throws UserError if option missing names a key of strings to fill in.
void check_missing_rules(const ColumnTableContext& context, const std::vector<KeyColumn>& columns) {
  std::vector<std::string> names;
  for (const KeyColumn& column : columns) names.push_back(column.key);
  const MissingRules rules(context, names, DType::f32);
  for (const KeyColumn& column : columns) {
    if (!column.holds_text || !rules.names(column.key) || !column.missing.fills_in()) continue;
    context.args().fail("option missing fills in key '" + column.key +
                        "', which holds strings: its rule is error or drop");
  }
}

/// Returns the location of the value of `column` in `line`, for messages.
std::string value_location(const JsonLine& line, const KeyColumn& column) {
  return line.location() + ": key '" + column.key + "'";
}

std::vector<std::string> text_keys(const std::vector<KeyColumn>& columns) {
  std::vector<std::string> keys;
  for (const KeyColumn& column : columns) {
    if (column.holds_text) keys.push_back(column.key);
  }
  return keys;
}

bool needs_moments(const KeyColumn& column, const NormalizedKeys& normalized) {
  const bool fills_in_mean = column.missing.kind == MissingRule::kMean;
  return !column.holds_text && (fills_in_mean || normalized.contain(column));
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
    // A key without any value is an error of the whole file, not of a record that is skipped.
    for (const size_t k : keys.without_type) {
      set_type_from_later_line(keys.columns[k], keys.first_line);
    }
    check_missing_rules(context_, keys.columns);
    const NormalizedKeys normalized(args_, keys.columns);
    const CategoryColumns categories(context_, text_keys(keys.columns));
    const RecordFindings found = examine(keys, normalized, categories, scan);
    scan.check_that_rows_are_left(args_, file_.records());
    ColumnTable table = context_.initial_table({"missing", kNormalize, "unknown"});
    const bool learns = context_.given() == nullptr;
    if (learns) table.columns = {{kColumns, {}}, {kFloats, {}}};
    categories.set_classes(found.categories, table);
    const auto given_floats = table.columns.find(kFloats);
    const std::vector<std::string> floats =
        given_floats != table.columns.end() ? given_floats->second : std::vector<std::string>();
    auto moments = found.moments.begin();
    for (size_t k = 0; k < keys.columns.size(); ++k) {
      KeyColumn& column = keys.columns[k];
      const bool is_float = std::ranges::find(floats, column.key) != floats.end();
      column.is_integer = found.is_integer[k] != 0 && !is_float;
      if (column.holds_text) table.feeds[column.key] = column.key;
      if (!learns) continue;
      table.columns[kColumns].push_back(column.key);
      if (!column.is_integer) table.columns[kFloats].push_back(column.key);
      for (int64_t i = 0; needs_moments(column, normalized) && i < column.numel(); ++i, ++moments) {
        const std::string name = element_name(column, i);
        if (moments->count() == 0) {
          args_.fail("key '" + name + "' has no value in the training rows");
        }
        table.moments[name] = moments->moments();
      }
    }
    scan.table = table.to_json();
    scan.learned = to_json(keys);
  }

 private:
  bool skips_bad_records() const { return args_.bad_records() != BadRecords::stop; }

  /// Returns the keys of the first line whose values are columns, with the types that this line
  /// shows. Without such a line, there are no keys.
  JsonKeys first_keys() const {
    for (int64_t record = 0; record < file_.records(); ++record) {
      try {
        JsonKeys keys = keys_of(record);
        keys.first_line = record;
        return keys;
      } catch (const UserError&) {
        if (!skips_bad_records()) throw;
      }
    }
    return {.first_line = file_.records()};
  }

  JsonKeys keys_of(int64_t record) const {
    const TextRecord text = file_.read(record);
    const JsonLine line(text, file_.source_name());
    JsonKeys keys;
    if (context_.split().uses_column()) {
      keys.split.key = context_.split().split_column(line.keys());
      set_type(keys.split, line);
      const Column type{keys.split.key, keys.split.is_integer ? DType::i64 : DType::f32,
                        keys.split.shape};
      if (type.numel() != 1) {
        args_.fail("column '" + type.name + "' is " + type.str().substr(type.name.size() + 1) +
                   ": a column to split by has one value a row");
      }
    }
    for (const std::string& key : names_in(line.keys())) {
      if (key != keys.split.key) keys.columns.push_back({.key = key});
    }
    if (keys.columns.empty() && keys.split.key.empty()) line.fail("the object has no key");
    set_missing_rules(context_, keys.columns);
    for (size_t k = 0; k < keys.columns.size(); ++k) {
      if (!set_type(keys.columns[k], line)) keys.without_type.push_back(k);
    }
    return keys;
  }

  /// Sets the type of `column` from its value in `line`. Returns false if that is missing and a
  /// rule allows it. Throws UserError like JsonLine::value_of().
  static bool set_type(KeyColumn& column, const JsonLine& line) {
    const std::optional<LineValue> value = line.value_at(column.key);
    if (!value) {
      const bool is_allowed =
          column.missing.fills_in() || column.missing.kind == MissingRule::kDropRow;
      if (!is_allowed) line.value_of(column);  // throws
      return false;
    }
    column.shape = value->shape;
    column.holds_text = value->is_text;
    column.is_integer = value->is_integer;
    return true;
  }

  void set_type_from_later_line(KeyColumn& column, int64_t record) const {
    while (++record < file_.records()) {
      try {
        const TextRecord text = file_.read(record);
        if (set_type(column, JsonLine(text, file_.source_name()))) return;
      } catch (const UserError&) {
        if (!skips_bad_records()) throw;
      }
    }
    args_.fail("key '" + column.key + "' has no value in any line");
  }

  /// Returns the keys that option columns or the given table selects, else `all`, those of a line.
  std::vector<std::string> names_in(const std::vector<std::string>& all) const {
    if (const std::string* columns = args_.find(kColumns)) return ir::split_at_commas(*columns);
    if (context_.given() == nullptr || !context_.given()->columns.contains(kColumns)) return all;
    std::vector<std::string> keys;
    for (const std::string& key : context_.given()->columns.at(kColumns)) {
      const bool is_there = std::ranges::find(all, key) != all.end();
      if (is_there) keys.push_back(key);  // data for prediction has no labels
    }
    return keys;
  }

  RecordFindings examine(const JsonKeys& keys, const NormalizedKeys& normalized,
                         const CategoryColumns& categories, TextScan& scan) const {
    const size_t count = keys.columns.size();
    RecordFindings initial = {.categories = categories.no_findings(),
                              .is_integer = std::vector<char>(count, 1)};
    bool drops_lines = false;
    int64_t moments = 0;
    for (const KeyColumn& column : keys.columns) {
      drops_lines |= column.missing.kind == MissingRule::kDropRow;
      if (needs_moments(column, normalized)) moments += column.numel();
    }
    if (context_.given() == nullptr) initial.moments.resize(static_cast<size_t>(moments));
    const auto examine_line = [&](int64_t sample, const TrainingRows& training,
                                  RecordFindings& found, SetSplit set_split) {
      if (sample < keys.first_line) keys_of(sample);  // throws the error of the line
      const TextRecord record = file_.read(sample);
      const JsonLine line(record, file_.source_name());
      std::vector<LineValue> values;
      for (const KeyColumn& column : keys.columns) {
        std::optional<LineValue> value = line.value_of(column);
        if (!value) return false;
        values.push_back(std::move(*value));
      }
      if (!keys.split.key.empty()) set_split(split_text(*line.value_of(keys.split)));
      size_t category = 0;
      for (size_t k = 0; k < count; ++k) {
        const KeyColumn& column = keys.columns[k];
        if (!column.holds_text) continue;
        categories.examine(category++, values[k].text, sample, found.categories,
                           [&] { return value_location(line, column); });
      }
      for (size_t k = 0; k < count; ++k) {
        if (!stays_integer(values[k], keys.columns[k])) found.is_integer[k] = 0;
      }
      if (!found.moments.empty() && training.contains(sample)) {
        add_moments(keys.columns, normalized, values, found.moments);
      }
      return true;
    };
    return examine_records({.samples = file_.records(),
                            .chunk = file_.records_per_chunk(),
                            .skips_bad_records = skips_bad_records(),
                            .drops_rows = drops_lines,
                            .split_column = keys.split.key,
                            .location = [&](int64_t sample) { return file_.location(sample); }},
                           context_.split(), initial, examine_line, scan);
  }

  /// Whether an i64 holds `value`, with the numbers that are filled in.
  static bool stays_integer(const LineValue& value, const KeyColumn& column) {
    const MissingRule& rule = column.missing;
    const bool fills_in_integer = rule.kind == MissingRule::kConstant &&
                                  rule.constant == std::floor(rule.constant) &&
                                  std::abs(rule.constant) <= kMaxJsonInteger;
    return value.is_integer && (!value.has_missing || fills_in_integer);
  }

  static void add_moments(const std::vector<KeyColumn>& columns, const NormalizedKeys& normalized,
                          const std::vector<LineValue>& values,
                          std::vector<RunningMoments>& moments) {
    auto element = moments.begin();
    for (size_t k = 0; k < columns.size(); ++k) {
      if (!needs_moments(columns[k], normalized)) continue;
      for (const double number : values[k].numbers) {
        if (!std::isnan(number)) element->add(number);
        ++element;
      }
    }
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
      : RecordSource(std::move(opened.file), 0, std::move(opened.scan), table) {
    set_missing_rules(context, keys.columns);
    const NormalizedKeys normalized(context.args(), keys.columns);
    for (KeyColumn& key : keys.columns) {
      JsonlColumn& column = columns_.emplace_back(JsonlColumn{.key = std::move(key)});
      const std::string& name = column.key.key;
      if (column.key.holds_text) {
        column.ids = context.category_ids(name, *table);
      } else if (table->classes.contains(name)) {
        context.args().fail("key '" + name +
                            "' holds numbers, but categories in the training data");
      } else {
        set_conversion(context, normalized, *table, column);
      }
      const bool is_i64 = column.key.holds_text || (column.key.is_integer && !column.normalizes);
      column.dtype = is_i64 ? DType::i64 : DType::f32;
      add_column({name, column.dtype, column.key.shape}, column.ids.categories());
    }
    if (!keys.split.key.empty()) add_split_column(keys.split.key);
  }

 private:
  /// How a column is read.
  struct JsonlColumn {
    KeyColumn key;
    DType dtype = DType::f32;
    CategoryIds ids = {{}, false};  ///< of a column of texts
    bool normalizes = false;
    std::vector<ColumnTable::Moments> moments = {};  ///< of each element, if it is normalised
    std::vector<double> fills = {};  ///< value of each element that replaces a missing one
  };

  static void set_conversion(const ColumnTableContext& context, const NormalizedKeys& normalized,
                             const ColumnTable& table, JsonlColumn& column) {
    column.normalizes = normalized.contain(column.key);
    const bool needs_them = needs_moments(column.key, normalized);
    const MissingRule& rule = column.key.missing;
    for (int64_t i = 0; i < column.key.numel(); ++i) {
      const std::string name = element_name(column.key, i);
      const auto found = table.moments.find(name);
      if (needs_them && found == table.moments.end()) context.fail_without_column(name);
      column.moments.push_back(needs_them ? found->second : ColumnTable::Moments());
      column.fills.push_back(rule.kind == MissingRule::kMean ? column.moments.back().mean
                                                             : rule.constant);
    }
  }

  void parse(const TextRecord& record, std::span<std::byte* const> to) const override {
    const std::string path = name();
    const JsonLine line(record, path);
    for (size_t k = 0; k < columns_.size(); ++k) {
      const JsonlColumn& column = columns_[k];
      std::optional<LineValue> value = line.value_of(column.key);
      if (!value) throw InternalError("a line that is left out is read");
      if (value->is_text) {
        const int64_t id =
            column.ids.id_of(value->text, [&] { return value_location(line, column.key); });
        if (to[k] != nullptr) std::memcpy(to[k], &id, sizeof id);
        continue;
      }
      if (to[k] == nullptr) continue;
      convert(column, value->numbers);
      column.dtype == DType::i64 ? write<int64_t>(value->numbers, to[k])
                                 : write<float>(value->numbers, to[k]);
    }
  }

  /// Fills in missing numbers, and normalises.
  static void convert(const JsonlColumn& column, std::vector<double>& numbers) {
    for (size_t i = 0; i < numbers.size(); ++i) {
      if (std::isnan(numbers[i])) numbers[i] = column.fills[i];
      if (!column.normalizes) continue;
      numbers[i] = (numbers[i] - column.moments[i].mean) / column.moments[i].std;
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

  std::vector<JsonlColumn> columns_;
};

SampleSourcePtr open_jsonl(const DataArgs& args) {
  const ColumnTableContext context(args, kJsonlKind);
  ScannedFile opened = scan_text_file(
      args, context.given(), line_syntax(),
      [&](ScannedFile& scanned) { JsonlScan(context, *scanned.file).run(scanned.scan); });
  JsonKeys keys = parse_keys(opened.scan.learned);
  const auto table =
      std::make_shared<const ColumnTable>(ColumnTable::from_json(opened.scan.table, args.path()));
  const bool is_in_memory = opened.is_in_memory;
  SampleSourcePtr source = open_records(
      std::make_shared<JsonlSource>(context, std::move(keys), std::move(opened), table),
      is_in_memory);
  context.report_table(table);
  return source;
}

}  // namespace

DataKind jsonl_kind() {
  return {.name = kJsonlKind,
          .usage = "jsonl:FILE",
          .doc =
              "a JSON object a line, gzipped or not: each key of the first line, or columns=a,b, "
              "is a column: numbers and arrays of numbers f32, or i64 if all are integers; strings "
              "are ids i64 of categories in sorted order; normalize=a,b: keys of numbers, each "
              "element by its mean and std in the training rows; missing= as for csv, for null and "
              "absent keys; table=, unknown=1 and memory= as for csv",
          .splits_rows = true,
          .has_table = true,
          .options = {"columns", "memory", "missing", kNormalize},
          .open_source = open_jsonl};
}

}  // namespace fluid
