#include <algorithm>
#include <cmath>
#include <set>

#include "frontend/files/gz.h"
#include "frontend/readers/kind.h"
#include "ir/error.h"
#include "ir/number.h"

namespace fluid {
namespace {

constexpr int64_t kMaxBytes = int64_t{1} << 32;

struct Table {
  std::vector<std::string> names;
  std::vector<double> values;  ///< row-major
  int64_t rows = 0;
};

std::vector<std::string_view> split_line(std::string_view line) {
  if (line.ends_with('\r')) line.remove_suffix(1);
  std::vector<std::string_view> fields;
  for (;;) {
    const size_t comma = line.find(',');
    std::string_view field = line.substr(0, comma);
    while (field.starts_with(' ')) field.remove_prefix(1);
    while (field.ends_with(' ')) field.remove_suffix(1);
    if (field.size() >= 2 && field.starts_with('"') && field.ends_with('"')) {
      field = field.substr(1, field.size() - 2);
    }
    fields.push_back(field);
    if (comma == std::string_view::npos) return fields;
    line.remove_prefix(comma + 1);
  }
}

void check_distinct(const std::vector<std::string>& names, const std::string& place) {
  std::set<std::string> seen;
  for (const std::string& name : names) {
    if (!seen.insert(name).second)
      throw UserError(place + ": two columns are named '" + name + "'");
  }
}

Table read_table(const std::string& path) {
  const std::string text = read_maybe_gz(path, kMaxBytes);
  Table table;
  int64_t number = 0;
  for (std::string_view left = text; !left.empty();) {
    const std::string_view line = left.substr(0, left.find('\n'));
    left.remove_prefix(std::min(left.size(), line.size() + 1));
    const std::string place = path + ":" + std::to_string(++number);
    if (line.empty() || line == "\r") continue;
    const std::vector<std::string_view> fields = split_line(line);
    if (table.names.empty()) {
      table.names.assign(fields.begin(), fields.end());
      check_distinct(table.names, place);
      continue;
    }
    if (fields.size() != table.names.size()) {
      throw UserError(place + ": " + std::to_string(fields.size()) +
                      " fields, but the first line has " + std::to_string(table.names.size()));
    }
    for (const std::string_view& field : fields) {
      const std::optional<double> value = number_in<double>(field);
      if (!value || !std::isfinite(*value)) {
        throw UserError(place + ": '" + std::string(field) + "' is not a finite number");
      }
      if (std::isinf(static_cast<float>(*value))) {
        const auto column = static_cast<size_t>(&field - fields.data());
        throw UserError(place + ": '" + std::string(field) + "' of column '" + table.names[column] +
                        "' is beyond the range of f32");
      }
      table.values.push_back(*value);
    }
    ++table.rows;
  }
  if (table.names.empty()) throw UserError(path + " is empty: no line names the columns");
  return table;
}

/// Label values as classes: i64[rows].
Tensor classes_of(const Tensor& values, const std::string& path) {
  for (int64_t i = 0; i < values.numel(); ++i) {
    const double v = values.at(i);
    if (v != std::floor(v) || v < 0 || v > 0x1p53) {
      throw UserError("'" + path + "': label " + std::to_string(v) + " of sample " +
                      std::to_string(i) + " is not a class number");
    }
  }
  Tensor classes = values.cast(DType::i64);
  const auto owner = std::make_shared<Tensor>(std::move(classes));
  return Tensor::view(DType::i64, {values.numel()}, owner->data(), owner);
}

Dataset read_csv(const DataArgs& args) {
  const std::string* label = args.find("label");
  if (label == nullptr) args.fail("say which column is the label: csv:FILE?label=COLUMN");
  const Table table = read_table(args.path());
  const auto found = std::find(table.names.begin(), table.names.end(), *label);
  if (found == table.names.end()) {
    args.fail("no column '" + *label + "'" + did_you_mean(*label, table.names));
  }
  const auto at = static_cast<size_t>(found - table.names.begin());
  const size_t width = table.names.size();
  Tensor x(DType::f32, {table.rows, static_cast<int64_t>(width) - 1});
  Tensor y(DType::f32, {table.rows, 1});
  float* to = x.as<float>().data();
  for (size_t i = 0; i < table.values.size(); ++i) {
    const auto value = static_cast<float>(table.values[i]);
    if (i % width == at) {
      y.as<float>()[i / width] = value;
    } else {
      *to++ = value;
    }
  }
  Dataset data;
  data.columns.emplace_back("x", std::move(x));
  data.columns.emplace_back("y", args.flag("classes", false) ? classes_of(y, args.path()) : y);
  return data;
}

}  // namespace

DataKind csv_kind() {
  return {.name = "csv",
          .usage = "csv:FILE?label=COLUMN",
          .doc =
              "numbers with a line of names first: x f32[columns - 1], y f32[1] (the label), or "
              "y i64 with classes=1",
          .options = {"classes", "label"},
          .load = read_csv};
}

}  // namespace fluid
