#include "frontend/readers/row_split.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>

#include "frontend/readers/sample_order.h"
#include "ir/number.h"
#include "ir/text.h"

namespace fluid {
namespace {

/// Returns the shortest text that parses to `value` as an f32.
std::string float_text(float value) {
  std::array<char, 32> buffer = {};
  const auto [end, error] = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
  return {buffer.data(), end};
}

/// The SampleOrder of this epoch begins with the held-out rows. Training uses epochs 0, 1, 2...
constexpr int64_t kSplitEpoch = 0x73706c6974;

const std::vector<std::string> kSplits = {"train", "val", "test"};

double fraction_in(const std::string& text, const DataArgs& args) {
  const double fraction = parse_number<double>(text).value_or(0);
  if (!(fraction > 0 && fraction < 1)) {
    args.fail("option val=" + text + " must be a fraction between 0 and 1");
  }
  return fraction;
}

/// Returns the split called `name`. Throws UserError unless `name` is train, val or test.
Split split_named(const std::string& name, const DataArgs& args) {
  if (std::ranges::find(kSplits, name) == kSplits.end()) {
    args.fail("split '" + name + "' must be train, val or test" + did_you_mean(name, kSplits));
  }
  return name == "train" ? Split::train : name == "val" ? Split::validation : Split::test;
}

/// Returns the split that a value of a split column stands for; nullopt if it is not a split name.
std::optional<Split> split_of_value(const std::string& value) {
  static const std::map<std::string, Split> kNames = {
      {"train", Split::train},         {"training", Split::train},
      {"val", Split::validation},      {"valid", Split::validation},
      {"validate", Split::validation}, {"validation", Split::validation},
      {"dev", Split::validation},      {"test", Split::test},
      {"testing", Split::test}};
  const auto found = kNames.find(ir::lowercase(value));
  return found == kNames.end() ? std::nullopt : std::optional(found->second);
}

/// Whether two values of a column are equal: as text, as numbers or as bools.
bool equal_values(const std::string& a, const std::string& b) {
  if (a == b) return true;
  const auto number = [](const std::string& text) {
    const std::string lowered = ir::lowercase(text);
    if (lowered == "true") return std::optional(1.0);
    if (lowered == "false") return std::optional(0.0);
    return parse_number<double>(text);
  };
  const std::optional<double> left = number(a), right = number(b);
  return left && right && *left == *right;
}

/// The values of a column, converted to text.
struct ColumnValues {
  std::vector<std::string> distinct;   // in order of first occurrence
  std::vector<int64_t> first_samples;  // first sample with each value of `distinct`
  std::vector<int32_t> of_sample;      // index in `distinct` of each sample's value
};

ColumnValues column_values(const SampleSource& data, size_t column, const DataArgs& args) {
  const Column& type = data.columns()[column];
  if (type.numel() != 1) {
    args.fail("column '" + type.name + "' is " + type.str().substr(type.name.size() + 1) +
              ": a column to split by has one value a row");
  }
  const std::vector<std::string> classes = data.classes(type.name);
  Tensor value(type.dtype, {1});
  std::vector<std::byte*> to(data.columns().size(), nullptr);
  to[column] = static_cast<std::byte*>(value.data());
  ColumnValues values;
  std::unordered_map<std::string, int32_t> index_of;
  for (int64_t sample = 0; sample < data.samples(); ++sample) {
    data.read(sample, {}, to);
    const double number = value.at(0);
    const bool is_class = number >= 0 && number < static_cast<double>(classes.size());
    const std::string text = is_class               ? classes[static_cast<size_t>(number)]
                             : type.dtype == f64    ? ir::float_text(number)
                             : is_float(type.dtype) ? float_text(static_cast<float>(number))
                                                    : std::to_string(value.integer(0));
    const auto [found, is_new] =
        index_of.try_emplace(text, static_cast<int32_t>(values.distinct.size()));
    values.of_sample.push_back(found->second);
    if (!is_new) continue;
    values.distinct.push_back(text);
    values.first_samples.push_back(sample);
  }
  return values;
}

}  // namespace

RowSplit::RowSplit(const DataArgs& args, bool has_splits) : args_(args), val_(args.find("val")) {
  const std::string* split = args.find("split");
  const bool names_split = split == nullptr || std::ranges::find(kSplits, *split) != kSplits.end();
  uses_column_ = !has_splits && !names_split;
  is_training_ = (uses_column_ ? args.default_split() : args.split()) == "train";
  if (val_ != nullptr && !names_split) {
    const std::string near = did_you_mean(*split, kSplits);
    args.fail("options val and split=" + *split + " both split the rows" +
              (near.empty() ? ": give one of them" : near));
  }
  if (val_ != nullptr) fraction_in(*val_, args);
  if (val_ != nullptr || uses_column_) {
    selected_ = split_named(uses_column_ ? args.default_split() : args.split(), args);
  }
  if (val_ != nullptr) return;
  if (args.find("seed") != nullptr) {
    args.fail("option seed needs val=0.2, the share of rows held out");
  }
  if (split == nullptr || has_splits || uses_column_) return;
  args.fail("option split=" + *split +
            " needs val=0.2, the share of rows held out; split=COLUMN splits by a column");
}

const std::vector<std::string>& RowSplit::options() {
  static const std::vector<std::string> names = {"seed", "split", "val"};
  return names;
}

std::string RowSplit::column_text() const { return args_.get_string("split", ""); }

std::string RowSplit::split_column(const std::vector<std::string>& names) const {
  const std::string text = column_text();
  if (std::ranges::find(names, text) != names.end()) return text;
  size_t colon = text.rfind(':');
  const std::string name = text.substr(0, colon);
  for (; colon != std::string::npos && colon > 0; colon = text.rfind(':', colon - 1)) {
    const std::string before = text.substr(0, colon);
    if (std::ranges::find(names, before) != names.end()) return before;
  }
  std::vector<std::string> known = names;
  known.insert(known.end(), kSplits.begin(), kSplits.end());
  args_.fail("option split=" + text + ": no column '" + name + "'" + did_you_mean(name, known));
}

std::vector<int64_t> RowSplit::held_out_rows(int64_t rows) const {
  const double fraction = fraction_in(*val_, args_);
  const auto seed = static_cast<uint64_t>(args_.get_integer("seed", 0, 0));
  if (rows < 2) args_.fail("a single row cannot be split");
  const auto share = static_cast<int64_t>(std::llround(fraction * static_cast<double>(rows)));
  SampleOrder order;
  order.set(rows, seed, kSplitEpoch);
  std::vector<int64_t> held_out(static_cast<size_t>(std::clamp<int64_t>(share, 1, rows - 1)));
  for (size_t i = 0; i < held_out.size(); ++i) held_out[i] = order[static_cast<int64_t>(i)];
  std::ranges::sort(held_out);
  return held_out;
}

std::vector<Split> RowSplit::splits(const std::string& column,
                                    const std::vector<std::string>& values,
                                    const std::function<std::string(size_t)>& location) const {
  const std::string text = column_text();
  std::vector<Split> splits;
  if (text != column) {
    const std::string value = text.substr(column.size() + 1);
    for (const std::string& v : values) {
      splits.push_back(equal_values(v, value) ? Split::validation : Split::train);
    }
    if (std::ranges::find(splits, Split::validation) != splits.end()) return splits;
    const std::set<std::string> sorted(values.begin(), values.end());
    args_.fail("no row has the value '" + value + "' in column '" + column + "'" +
               did_you_mean(value, std::vector<std::string>(sorted.begin(), sorted.end())));
  }
  for (size_t i = 0; i < values.size(); ++i) {
    const std::optional<Split> split = split_of_value(values[i]);
    if (split) {
      splits.push_back(*split);
      continue;
    }
    const std::string value = ir::escape_control_characters(values[i]);
    args_.fail(location(i) + ": column '" + column + "' holds '" + value +
               "', which is none of train, val and test; split=" + column + ":" + value +
               " takes the rows with this value for validation");
  }
  return splits;
}

RowSet RowSplit::rows_to_read(int64_t rows, const std::vector<int64_t>& held_out) const {
  if (is_training()) return all_rows_except(rows, held_out);
  return {rows, [&](int64_t row) { return std::ranges::binary_search(held_out, row); }};
}

RowSet RowSplit::rows_to_read(const std::vector<Split>& splits) const {
  const auto rows_for = [&](Split split) {
    return RowSet(std::ssize(splits),
                  [&](int64_t row) { return splits[static_cast<size_t>(row)] == split; });
  };
  RowSet rows = rows_for(selected_);
  if (rows.size() == 0 && !is_training()) {
    rows = rows_for(selected_ == Split::test ? Split::validation : Split::test);
  }
  if (rows.size() == 0 && uses_column_) {
    args_.fail("option split=" + column_text() + " leaves no row for " +
               (is_training() ? "training" : "validation and test"));
  }
  return rows;
}

SplitSource split_rows(SampleSourcePtr data, const DataArgs& args, bool has_splits) {
  const RowSplit split(args, has_splits);
  std::vector<Split> splits;
  if (split.uses_column()) {
    std::vector<std::string> names;
    for (const Column& column : data->columns()) names.push_back(column.name);
    const std::string column = split.split_column(names);
    const auto at = static_cast<size_t>(std::ranges::find(names, column) - names.begin());
    const ColumnValues values = column_values(*data, at, args);
    const std::vector<Split> split_of_distinct = split.splits(
        column, values.distinct, [&](size_t i) { return data->location(values.first_samples[i]); });
    for (const int32_t value : values.of_sample)
      splits.push_back(split_of_distinct[static_cast<size_t>(value)]);
    std::vector<ColumnSelection> kept;
    for (size_t c = 0; c < names.size(); ++c) {
      if (c != at) kept.push_back({c, names[c]});
    }
    data = select_columns(std::move(data), std::move(kept));
  } else if (split.has_fraction()) {
    const int64_t rows = data->samples();
    const std::vector<int64_t> held_out = split.held_out_rows(rows);
    const SplitCounts counts = {.train = rows - std::ssize(held_out),
                                .validation = std::ssize(held_out)};
    return {select_rows(std::move(data), split.rows_to_read(rows, held_out)), counts};
  } else {
    return {std::move(data), std::nullopt};
  }
  SplitCounts counts;
  for (const Split s : splits) {
    ++(s == Split::train ? counts.train : s == Split::test ? counts.test : counts.validation);
  }
  return {select_rows(std::move(data), split.rows_to_read(splits)), counts};
}

}  // namespace fluid
