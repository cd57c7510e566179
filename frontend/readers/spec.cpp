#include "frontend/readers/spec.h"

#include <algorithm>
#include <limits>

#include "frontend/files/temporary_file.h"
#include "frontend/readers/column_table_context.h"
#include "frontend/readers/row_split.h"
#include "frontend/readers/spec_guess.h"
#include "frontend/readers/stage_spec.h"
#include "ir/error.h"
#include "ir/near.h"
#include "ir/number.h"

namespace fluid {
namespace {

const std::vector<std::string> kCommonOptions = {"drop_last", "limit", "shuffle"};
const std::vector<std::string> kStreamOptions = {"shuffle_buffer", "stream"};
const std::vector<std::string> kFlags = {"characters", "drop_last", "shuffle", "stream"};

bool contains(const std::vector<std::string>& list, const std::string& name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

/// Suggests kinds instead of the unknown kind `name`, as suggest_names() does. If `spec` is a path
/// without a kind, suggests a SPEC: " (did you mean 'csv:rows.csv?label=y'?)".
std::string suggest_kind(const std::string& name, const std::string& spec,
                         const std::vector<std::string>& kinds) {
  const std::string near = did_you_mean(name, kinds);
  if (spec.starts_with(name + ":") && !near.empty()) return near;
  const size_t mark = std::min(spec.find('?'), spec.size());
  std::string guess = guess_spec(spec.substr(0, mark));
  if (guess.empty()) return suggest_names(name, kinds);
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
                  suggest_kind(name, spec, names));
}

/// Returns the names of the options of `kind`, including the options common to all kinds.
std::vector<std::string> options_of(const DataKind& kind) {
  std::vector<std::string> options = kind.options;
  const auto append = [&](bool has, const std::vector<std::string>& more) {
    if (has) options.insert(options.end(), more.begin(), more.end());
  };
  append(kind.splits_rows, RowSplit::options());
  append(kind.has_table, ColumnTableContext::options());
  append(kind.open_stream != nullptr, kStreamOptions);
  append(true, kCommonOptions);
  return options;
}

std::string kind_name_in(const std::string& spec) {
  return spec.substr(0, spec.find_first_of(":?|"));
}

std::map<std::string, std::string> parse_options(std::string_view text, const std::string& spec) {
  std::map<std::string, std::string> options;
  while (!text.empty()) {
    const std::string_view item = text.substr(0, text.find('&'));
    const std::string name(item.substr(0, item.find('=')));
    const bool has_value = name.size() < item.size();
    if (name.empty() || (!has_value && !contains(kFlags, name))) {
      throw UserError("data '" + spec + "': '" + std::string(item) + "' is not option=value");
    }
    const std::string_view value = has_value ? item.substr(name.size() + 1) : "1";
    if (!options.emplace(name, value).second) {
      throw UserError("data '" + spec + "': option '" + name + "' is given twice");
    }
    text.remove_prefix(std::min(text.size(), item.size() + 1));
  }
  return options;
}

/// Applies the options <column>=<feed>, which rename columns. Throws UserError for an option that
/// names no column. `known`: the names of all other options.
void rename_columns(DataSource& data, std::map<std::string, std::string> renames,
                    std::vector<std::string> known, const DataArgs& args) {
  if (renames.empty()) return;
  std::vector<ColumnSelection> kept;
  for (const Column& column : data.data().columns()) {
    known.push_back(column.name);
    kept.push_back({kept.size(), column.name});
    if (const auto rename = renames.find(column.name); rename != renames.end()) {
      kept.back().name = rename->second;
      renames.erase(rename);
    }
  }
  if (!renames.empty()) {
    const std::string& name = renames.begin()->first;
    args.fail("no option or column '" + name + "'" + did_you_mean(name, known));
  }
  for (const ColumnSelection& column : kept) {
    const auto same = [&](const ColumnSelection& other) { return other.name == column.name; };
    if (std::ranges::count_if(kept, same) > 1) {
      args.fail("two columns are named '" + column.name + "'");
    }
  }
  data.transform(
      [&](SampleSourcePtr source) { return select_columns(std::move(source), std::move(kept)); });
}

/// Calls `open`, which opens data. If it throws UserError, and an option of `renames`
/// is similar to an option of `known`, the message also names this option: it may be misspelled.
template <class F>
void open_with_options_checked(F open, const std::map<std::string, std::string>& renames,
                               const std::vector<std::string>& known) {
  try {
    open();
  } catch (const UserError& error) {
    for (const auto& [name, feed] : renames) {
      const std::string near = did_you_mean(name, known);
      if (!near.empty())
        throw UserError(std::string(error.what()) + "; unless '" + name +
                        "' is a column, there is " + "no option '" + name + "'" + near);
    }
    throw;
  }
}

/// Throws UserError for options that a stream does not support: those of RowSplit, and shuffle
/// without shuffle_buffer.
void check_stream_options(const DataArgs& args) {
  for (const std::string& option : RowSplit::options()) {
    if (args.find(option) == nullptr) continue;
    args.fail("option " + option +
              " holds out rows by their index, which a stream does not have: drop `stream`, or "
              "write the validation data by another command");
  }
  if (args.get_flag("shuffle", false) && args.find("shuffle_buffer") == nullptr) {
    args.fail("a stream is shuffled through a buffer: add shuffle_buffer=N");
  }
}

/// Returns a copy of the in-memory data `source` with the name `name`.
SampleSourcePtr name_source(SampleSourcePtr source, std::string name) {
  const Dataset* data = source->in_memory();
  if (data == nullptr) throw InternalError("data on disk has no name");
  Dataset named = *data;
  named.source = std::move(name);
  return make_source(std::move(named));
}

std::string with_split(std::string_view spec, const std::string& split) {
  const bool has_options = spec.find('?') != std::string_view::npos;
  return std::string(spec) + (has_options ? "&split=" : "?split=") + split;
}

/// Opens the data as a stream, if the options ask for one. `limit`: maximum number of samples; -1:
/// no limit.
SampleStreamPtr open_stream(const DataKind& kind, const DataArgs& args, int64_t limit) {
  if (kind.open_stream == nullptr) return nullptr;
  if (!args.get_flag("stream", false)) {
    if (args.find("shuffle_buffer") == nullptr) return nullptr;
    args.fail("option shuffle_buffer is of a stream: add `stream`");
  }
  check_stream_options(args);
  SampleStreamPtr stream = kind.open_stream(args);
  return limit > 0 ? first_samples(std::move(stream), limit) : stream;
}

/// Opens the split that the options select. With option val, opens the training split, from which
/// select_rows() holds out rows. Data without a name gets the name `name`.
SampleSourcePtr open_source(const DataKind& kind, const DataArgs& args, std::string name) {
  const bool has_splits = contains(kind.options, "split");
  const bool holds_out = has_splits && args.find("val") != nullptr;
  SampleSourcePtr source = kind.open_source(holds_out ? args.with_split("train") : args);
  return source->name().empty() ? name_source(std::move(source), std::move(name)) : source;
}

/// Keeps only the rows of the selected split, at most `limit` of them; -1: no limit.
void select_rows(DataSource& data, const DataKind& kind, const DataArgs& args, int64_t limit) {
  if (kind.splits_rows) {
    SplitSource rows = split_rows(std::move(data.source), args, contains(kind.options, "split"));
    data.source = std::move(rows.source);
    data.split_counts = rows.counts;
  }
  if (limit > 0) data.source = first_samples(std::move(data.source), limit);
}

/// Returns the size of the images of data in memory. Images on disk may have several sizes: 0.
augment::Size image_size(const SampleSource& source) {
  if (source.in_memory() == nullptr) return {};
  for (const Column& column : source.columns()) {
    if (column.shape.size() == 3) return {column.shape[1], column.shape[2]};
  }
  return {};
}

void handle_learned_table(const LearnedTable& learned, const OpenOptions& options) {
  if (options.on_learned_table) {
    options.on_learned_table(learned);
  } else if (learned.of_training_rows) {
    learned.table->write(learned.file);
  }
}

}  // namespace

const std::string* DataArgs::find(const std::string& name) const {
  const auto entry = options_.find(name);
  return entry == options_.end() ? nullptr : &entry->second;
}

DataArgs DataArgs::with_split(const std::string& split) const {
  DataArgs args = *this;
  args.options_["split"] = split;
  return args;
}

DataArgs DataArgs::with_defaults(const std::map<std::string, std::string>& defaults) const {
  DataArgs args = *this;
  args.options_.insert(defaults.begin(), defaults.end());
  return args;
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

int64_t DataArgs::memory_limit() const {
  if (find("memory") == nullptr) return kMaxLoadedBytes;
  return get_flag("memory", false) ? std::numeric_limits<int64_t>::max() : 0;
}

void DataArgs::fail(const std::string& message) const {
  throw UserError("data '" + spec_ + "': " + message);
}

const std::vector<DataKind>& data_kinds() {
  static const std::vector<DataKind> kinds = {
      mnist_kind(), mnist_json_kind(), cifar10_kind(),     digits_kind(), synthetic_linear_kind(),
      csv_kind(),   npy_kind(),        npz_kind(),         text_kind(),   folder_kind(),
      tar_kind(),   jsonl_kind(),      safetensors_kind(), pipe_kind()};
  return kinds;
}

const SampleData& DataSource::data() const {
  if (stream != nullptr) return *stream;
  return *source;
}

Reader DataSource::reader(const ReaderOptions& options) const {
  return stream != nullptr ? Reader(stream, options) : Reader(source, options);
}

void DataSource::transform(const SourceTransform& transform) {
  if (stream != nullptr) {
    stream = transform_samples(std::move(stream), transform, first_pass);
  } else {
    source = transform(std::move(source));
  }
}

Dataset DataSource::dataset() const {
  if (stream != nullptr) {
    throw UserError("data '" + stream->name() + "' is a stream, not in memory");
  }
  if (const Dataset* data = source->in_memory()) return *data;
  throw UserError("data '" + source->name() + "' is not in memory: give its source to a Reader");
}

bool has_table(const std::string& spec) {
  const std::string name = kind_name_in(spec);
  return std::ranges::any_of(
      data_kinds(), [&](const DataKind& kind) { return kind.name == name && kind.has_table; });
}

bool uses_training_table(const std::string& spec, const ColumnTable& training_table) {
  const std::string unstaged = spec.substr(0, spec.find('|'));
  const size_t mark = std::min(unstaged.find('?'), unstaged.size());
  const std::string options = unstaged.substr(std::min(mark + 1, unstaged.size()));
  return has_table(spec) && training_table.kind == kind_name_in(spec) &&
         !parse_options(options, spec).contains("table");
}

DataSource open_data(const std::string& spec, const std::string& split,
                     const OpenOptions& options) {
  const std::string_view all = spec, unstaged = all.substr(0, all.find('|'));
  const std::string_view head = unstaged.substr(0, unstaged.find('?'));
  const std::string name = kind_name_in(spec);
  const DataKind& kind = kind_named(name, spec);
  const bool has_path = head.size() > name.size() + 1;
  if (kind.needs_path != has_path) {
    throw UserError("data '" + spec + "': write " + kind.usage);
  }
  std::map<std::string, std::string> given =
      head.size() < unstaged.size() ? parse_options(unstaged.substr(head.size() + 1), spec)
                                    : std::map<std::string, std::string>();
  std::map<std::string, std::string> renames;
  const std::vector<std::string> known = options_of(kind);
  for (const auto& [option, value] : given) {
    if (!contains(known, option)) renames.emplace(option, value);
  }
  const bool has_splits = contains(kind.options, "split");
  // If the format has its own splits, validation uses the test split by default.
  const std::string default_split = has_splits && split == "val" ? "test" : split;
  const bool split_by_default = has_splits && given.emplace("split", default_split).second;
  std::optional<LearnedTable> learned;
  OpenOptions opening = options;
  opening.on_learned_table = [&learned](const LearnedTable& table) { learned = table; };
  const DataArgs args(spec, has_path ? std::string(head.substr(name.size() + 1)) : "", given,
                      default_split, std::move(opening));

  DataSource data{
      .usage = kind.usage, .full_batch = kind.full_batch, .first_pass = options.first_pass};
  if (args.find("shuffle") != nullptr) data.shuffle = args.get_flag("shuffle", false);
  if (args.find("drop_last") != nullptr) data.drop_last = args.get_flag("drop_last", false);
  const int64_t limit = args.get_integer("limit", -1, 1);
  data.shuffle_buffer = args.get_integer("shuffle_buffer", 0, 1);
  const auto open = [&] {
    data.stream = open_stream(kind, args, limit);
    if (data.stream != nullptr) return;
    data.source = open_source(
        kind, args, split_by_default ? with_split(unstaged, default_split) : std::string(unstaged));
  };
  open_with_options_checked(open, renames, known);
  rename_columns(data, std::move(renames), known, args);
  if (data.source != nullptr) select_rows(data, kind, args, limit);
  if (unstaged.size() < all.size()) {
    const std::string_view stages = all.substr(unstaged.size() + 1);
    const augment::Size image = data.source == nullptr ? augment::Size() : image_size(*data.source);
    data.transform(
        [&](SampleSourcePtr source) { return apply_stages(std::move(source), stages, spec); });
    data.random_stages = random_stages(stages, image, spec);
  }
  // after all that may throw, so that no table is left of data that cannot be opened
  if (learned) handle_learned_table(*learned, options);
  return data;
}

}  // namespace fluid
