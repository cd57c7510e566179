#include "frontend/readers/row_split.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>

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

/// Returns element `i` of `values` as text: the name of its class if it has one.
std::string text_of(const Tensor& values, int64_t i, const std::vector<std::string>& classes) {
  const double number = values.at(i);
  const bool is_class = number >= 0 && number < static_cast<double>(classes.size());
  if (is_class) return classes[static_cast<size_t>(number)];
  if (values.dtype() == f64) return ir::float_text(number);
  if (is_float(values.dtype())) return float_text(static_cast<float>(number));
  return std::to_string(values.integer(i));
}

/// Divides the rows of `data` by the values of a column, which are converted to text once each.
RowsOfSplits rows_of_splits(const SampleSource& data, size_t column, const RowSplit& split,
                            const DataArgs& args) {
  constexpr int64_t kRowsAtOnce = int64_t{1} << 16;
  const Column& type = data.columns()[column];
  if (type.numel() != 1) {
    args.fail("column '" + type.name + "' is " + type.str().substr(type.name.size() + 1) +
              ": a column to split by has one value a row");
  }
  const std::vector<std::string> classes = data.classes(type.name);
  Tensor values(type.dtype, {std::min(kRowsAtOnce, data.samples())});
  auto* const bytes = static_cast<std::byte*>(values.data());
  const auto width = static_cast<size_t>(type.bytes());
  RowsOfSplits rows;
  std::vector<std::string> distinct;
  std::unordered_map<uint64_t, Split> split_of_bits;
  for (int64_t first = 0; first < data.samples(); first += kRowsAtOnce) {
    const int64_t count = std::min(kRowsAtOnce, data.samples() - first);
    data.read_column(first, count, column, bytes);
    for (int64_t i = 0; i < count; ++i) {
      uint64_t bits = 0;
      std::memcpy(&bits, bytes + static_cast<size_t>(i) * width, width);
      const auto [found, is_new] = split_of_bits.try_emplace(bits);
      if (is_new) {
        distinct.push_back(text_of(values, i, classes));
        found->second =
            split.split_of(type.name, distinct.back(), [&] { return data.location(first + i); });
      }
      for (size_t s = 0; s < rows.size(); ++s)
        rows[s].append(s == static_cast<size_t>(found->second));
    }
  }
  split.check_value_occurs(type.name, distinct);
  return rows;
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

RowSet RowSplit::held_out_rows(int64_t rows) const {
  const double fraction = fraction_in(*val_, args_);
  const auto seed = static_cast<uint64_t>(args_.get_integer("seed", 0, 0));
  if (rows < 2) args_.fail("a single row cannot be split");
  const auto share = static_cast<int64_t>(std::llround(fraction * static_cast<double>(rows)));
  SampleOrder order;
  order.set(rows, seed, kSplitEpoch);
  return {rows, std::clamp<int64_t>(share, 1, rows - 1), [&](int64_t i) { return order[i]; }};
}

Split RowSplit::split_of(const std::string& column, const std::string& value,
                         FunctionRef<std::string()> location) const {
  const std::string text = column_text();
  if (text != column) {
    const bool is_equal = equal_values(value, text.substr(column.size() + 1));
    return is_equal ? Split::validation : Split::train;
  }
  if (const std::optional<Split> split = split_of_value(value)) return *split;
  const std::string shown = ir::escape_control_characters(value);
  throw UserError(location() + ": column '" + column + "' holds '" + shown +
                  "', which is none of train, val and test; split=" + column + ":" + shown +
                  " takes the rows with this value for validation");
}

void RowSplit::check_value_occurs(const std::string& column,
                                  const std::vector<std::string>& values) const {
  const std::string text = column_text();
  if (text == column) return;
  const std::string value = text.substr(column.size() + 1);
  const auto is_value = [&](const std::string& v) { return equal_values(v, value); };
  if (std::ranges::any_of(values, is_value)) return;
  const std::set<std::string> sorted(values.begin(), values.end());
  args_.fail("no row has the value '" + value + "' in column '" + column + "'" +
             did_you_mean(value, std::vector<std::string>(sorted.begin(), sorted.end())));
}

std::vector<Split> RowSplit::splits(const std::string& column,
                                    const std::vector<std::string>& values,
                                    const std::function<std::string(size_t)>& location) const {
  std::vector<Split> splits;
  for (size_t i = 0; i < values.size(); ++i) {
    splits.push_back(split_of(column, values[i], [&] { return location(i); }));
  }
  check_value_occurs(column, values);
  return splits;
}

RowSet RowSplit::rows_to_read(RowSet held_out) const {
  return is_training() ? held_out.complement() : std::move(held_out);
}

RowSet RowSplit::rows_to_read(RowsOfSplits rows) const {
  Split split = selected_;
  if (rows[static_cast<size_t>(split)].size() == 0 && !is_training()) {
    split = split == Split::test ? Split::validation : Split::test;
  }
  RowSet& selected = rows[static_cast<size_t>(split)];
  if (selected.size() == 0 && uses_column_) {
    args_.fail("option split=" + column_text() + " leaves no row for " +
               (is_training() ? "training" : "validation and test"));
  }
  return std::move(selected);
}

SplitSource split_rows(SampleSourcePtr data, const DataArgs& args, bool has_splits) {
  const RowSplit split(args, has_splits);
  if (split.has_fraction()) {
    const int64_t rows = data->samples();
    RowSet held_out = split.held_out_rows(rows);
    const SplitCounts counts = {.train = rows - held_out.size(), .validation = held_out.size()};
    return {select_rows(std::move(data), split.rows_to_read(std::move(held_out))), counts};
  }
  if (!split.uses_column()) return {std::move(data), std::nullopt};
  std::vector<std::string> names;
  for (const Column& column : data->columns()) names.push_back(column.name);
  const auto at =
      static_cast<size_t>(std::ranges::find(names, split.split_column(names)) - names.begin());
  RowsOfSplits rows = rows_of_splits(*data, at, split, args);
  const SplitCounts counts = {.train = rows[static_cast<size_t>(Split::train)].size(),
                              .validation = rows[static_cast<size_t>(Split::validation)].size(),
                              .test = rows[static_cast<size_t>(Split::test)].size()};
  std::vector<ColumnSelection> kept;
  for (size_t c = 0; c < names.size(); ++c) {
    if (c != at) kept.push_back({c, names[c]});
  }
  data = select_columns(std::move(data), std::move(kept));
  return {select_rows(std::move(data), split.rows_to_read(std::move(rows))), counts};
}

}  // namespace fluid
