#include "frontend/readers/spec.h"

#include <algorithm>

#include "frontend/readers/row_split.h"
#include "frontend/readers/spec_guess.h"
#include "ir/error.h"
#include "ir/number.h"

namespace fluid {
namespace {

const std::vector<std::string> kCommonOptions = {"drop_last", "limit", "shuffle"};

bool contains(const std::vector<std::string>& list, const std::string& name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

/// Suggests a kind similar to the unknown kind `name`: " (did you mean 'mnist'?)". If `spec` is a
/// path without a kind, suggests a SPEC: " (did you mean 'csv:rows.csv?label=y'?)".
std::string did_you_mean_kind(const std::string& name, const std::string& spec,
                              const std::vector<std::string>& kinds) {
  const std::string near = did_you_mean(name, kinds);
  if (spec.starts_with(name + ":") && !near.empty()) return near;
  const size_t mark = std::min(spec.find('?'), spec.size());
  std::string guess = guess_spec(spec.substr(0, mark));
  if (guess.empty()) return near;
  if (mark < spec.size()) guess = guess.substr(0, guess.find('?')) + spec.substr(mark);
  return " (did you mean '" + guess + "'?)";
}

const DataKind& kind_named(const std::string& name, const std::string& spec) {
  std::vector<std::string> names;
  for (const DataKind& kind : data_kinds()) {
    if (kind.name == name) return kind;
    names.push_back(kind.name);
  }
  throw UserError("data '" + spec + "': no kind of data '" + name + "'" +
                  did_you_mean_kind(name, spec, names));
}

/// Returns the names of the options of `kind`, except the options common to all kinds.
std::vector<std::string> options_of(const DataKind& kind) {
  std::vector<std::string> options = kind.options;
  if (!kind.splits_rows) return options;
  options.insert(options.end(), row_split_options().begin(), row_split_options().end());
  return options;
}

std::map<std::string, std::string> parse_options(std::string_view text, const std::string& spec) {
  std::map<std::string, std::string> options;
  while (!text.empty()) {
    const std::string_view item = text.substr(0, text.find('&'));
    const size_t equals = item.find('=');
    if (equals == std::string_view::npos || equals == 0) {
      throw UserError("data '" + spec + "': '" + std::string(item) + "' is not option=value");
    }
    const std::string name(item.substr(0, equals));
    if (!options.emplace(name, item.substr(equals + 1)).second) {
      throw UserError("data '" + spec + "': option '" + name + "' is given twice");
    }
    text.remove_prefix(std::min(text.size(), item.size() + 1));
  }
  return options;
}

/// Applies the options <column>=<feed>, which rename columns. Throws UserError for an option that
/// names no column.
void rename_columns(Dataset& data, std::map<std::string, std::string> renames, const DataKind& kind,
                    const DataArgs& args) {
  std::vector<std::string> known = options_of(kind);
  known.insert(known.end(), kCommonOptions.begin(), kCommonOptions.end());
  for (auto& [name, tensor] : data.columns) {
    known.push_back(name);
    const auto rename = renames.find(name);
    if (rename == renames.end()) continue;
    name = rename->second;
    renames.erase(rename);
  }
  if (!renames.empty()) {
    const std::string& name = renames.begin()->first;
    args.fail("no option or column '" + name + "'" + did_you_mean(name, known));
  }
  for (const auto& [name, tensor] : data.columns) {
    if (data.find(name) != &tensor) args.fail("two columns are named '" + name + "'");
  }
}

}  // namespace

const std::string* DataArgs::find(const std::string& name) const {
  const auto entry = options_.find(name);
  return entry == options_.end() ? nullptr : &entry->second;
}

std::string DataArgs::get_string(const std::string& name, const std::string& fallback) const {
  const std::string* value = find(name);
  return value != nullptr ? *value : fallback;
}

int64_t DataArgs::get_integer(const std::string& name, int64_t fallback, int64_t lowest) const {
  const std::string* value = find(name);
  if (value == nullptr) return fallback;
  const std::optional<int64_t> number = parse_number<int64_t>(*value);
  if (!number || *number < lowest) {
    fail("option " + name + "=" + *value + " must be an integer of at least " +
         std::to_string(lowest));
  }
  return *number;
}

bool DataArgs::get_flag(const std::string& name, bool fallback) const {
  return get_choice(name, fallback ? "1" : "0", {"0", "1"}) == "1";
}

std::string DataArgs::get_choice(const std::string& name, const std::string& fallback,
                                 const std::vector<std::string>& allowed) const {
  const std::string value = get_string(name, fallback);
  if (contains(allowed, value)) return value;
  std::string list;
  for (const std::string& a : allowed) list += (list.empty() ? "" : ", ") + a;
  fail("option " + name + "=" + value + " must be one of " + list + did_you_mean(value, allowed));
}

void DataArgs::fail(const std::string& message) const {
  throw UserError("data '" + spec_ + "': " + message);
}

const std::vector<DataKind>& data_kinds() {
  static const std::vector<DataKind> kinds = {
      mnist_kind(), mnist_json_kind(), cifar10_kind(), digits_kind(), synthetic_linear_kind(),
      csv_kind(),   npy_kind(),        text_kind()};
  return kinds;
}

DataSource open_data(const std::string& spec, const std::string& split) {
  const std::string_view all = spec;
  const std::string_view head = all.substr(0, all.find('?'));
  const std::string name(head.substr(0, head.find(':')));
  const DataKind& kind = kind_named(name, spec);
  const bool has_path = head.size() > name.size() + 1;
  if (kind.needs_path != has_path) {
    throw UserError("data '" + spec + "': write " + kind.usage);
  }
  std::map<std::string, std::string> given = head.size() < all.size()
                                                 ? parse_options(all.substr(head.size() + 1), spec)
                                                 : std::map<std::string, std::string>();
  std::map<std::string, std::string> renames;
  const std::vector<std::string> options = options_of(kind);
  for (const auto& [option, value] : given) {
    if (!contains(options, option) && !contains(kCommonOptions, option)) {
      renames.emplace(option, value);
    }
  }
  const bool split_by_default =
      contains(kind.options, "split") && given.emplace("split", split).second;
  const DataArgs args(spec, has_path ? std::string(head.substr(name.size() + 1)) : "", given);

  DataSource source;
  source.usage = kind.usage;
  source.full_batch = kind.full_batch;
  if (args.find("shuffle") != nullptr) source.shuffle = args.get_flag("shuffle", false);
  if (args.find("drop_last") != nullptr) source.drop_last = args.get_flag("drop_last", false);
  const int64_t limit = args.get_integer("limit", -1, 1);
  source.dataset = kind.load(args);
  if (source.dataset.source.empty()) {
    source.dataset.source =
        split_by_default
            ? spec + (spec.find('?') != std::string::npos ? "&split=" : "?split=") + split
            : spec;
  }
  rename_columns(source.dataset, std::move(renames), kind, args);
  if (kind.splits_rows) source.dataset = split_rows(std::move(source.dataset), args, split);
  if (limit > 0) source.dataset = source.dataset.first(limit);
  return source;
}

}  // namespace fluid
