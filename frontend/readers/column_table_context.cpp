#include "frontend/readers/column_table_context.h"

#include <filesystem>
#include <set>
#include <utility>

#include "frontend/readers/excerpt.h"
#include "ir/error.h"
#include "ir/text.h"

namespace fluid {
namespace {

/// Returns the file of option table=FILE; null without the option or with table=none.
const std::string* table_file(const DataArgs& args) {
  const std::string* path = args.find("table");
  return path != nullptr && *path == "none" ? nullptr : path;
}

bool is_same_path(const std::string& a, const std::string& b) {
  return std::filesystem::absolute(a).lexically_normal() ==
         std::filesystem::absolute(b).lexically_normal();
}

/// Whether the caller of open_data() will write the training table to the file `path`.
bool is_written_later(const DataArgs& args, const std::string& path) {
  return args.training_table() != nullptr && !args.training_table_file().empty() &&
         is_same_path(path, args.training_table_file());
}

bool has_training_rows(const DataArgs& args, bool has_splits) {
  const RowSplit split(args, has_splits);
  return split.is_training() || split.has_fraction() || split.uses_column();
}

ColumnTablePtr table_given_to(const DataArgs& args, const std::string& kind, bool has_splits) {
  const ColumnTablePtr& training = args.training_table();
  if (const std::string* path = table_file(args)) {
    const bool exists = std::filesystem::exists(*path);
    if (exists || is_written_later(args, *path)) {
      const ColumnTablePtr table =
          exists ? std::make_shared<const ColumnTable>(ColumnTable::read(*path)) : training;
      if (table->kind.empty() || table->kind == kind) return table;
      args.fail("'" + *path + "' is a table of " + table->kind + " data");
    }
    if (ir::lowercase(*path).ends_with(".safetensors")) {
      args.fail("there is no file '" + *path +
                "': a table is read from a .safetensors file, but written as JSON");
    }
    if (has_training_rows(args, has_splits)) {
      return training != nullptr && training->kind == kind ? training : nullptr;
    }
    args.fail("there is no table '" + *path + "': training writes it");
  }
  const bool applies =
      args.find("table") == nullptr && training != nullptr && training->kind == kind;
  return applies ? training : nullptr;
}

}  // namespace

CategoryIds::CategoryIds(std::vector<std::string> categories, bool has_other)
    : categories_(std::move(categories)), has_other_(has_other) {
  for (size_t i = 0; i < categories_.size(); ++i) {
    ids_.emplace(categories_[i], static_cast<int64_t>(i));
  }
}

int64_t CategoryIds::id_of(std::string_view value, FunctionRef<std::string()> subject) const {
  if (const auto found = ids_.find(value); found != ids_.end()) return found->second;
  const int64_t next_id = std::ssize(categories_);
  if (has_other_) return next_id;
  throw UserError(subject() + ": no category '" + excerpt(value) + "' in the training data" +
                  did_you_mean(std::string(value), categories_) + "; unknown=1 gives it the id " +
                  std::to_string(next_id));
}

const std::vector<std::string>& ColumnTableContext::options() {
  static const std::vector<std::string> names = {"table", "unknown"};
  return names;
}

ColumnTableContext::ColumnTableContext(const DataArgs& args, const std::string& kind,
                                       bool has_splits)
    : kind_(kind),
      given_(table_given_to(args, kind, has_splits)),
      spec_(args),
      args_(given_ != nullptr ? args.with_defaults(given_->options) : args),
      split_(args_, has_splits) {}

bool ColumnTableContext::option_is_from_table(const std::string& name) const {
  return given_ != nullptr && given_->options.contains(name) && spec_.find(name) == nullptr;
}

ColumnTable ColumnTableContext::initial_table(const std::vector<std::string>& options) const {
  ColumnTable table = given_ != nullptr ? *given_ : ColumnTable();
  table.kind = kind_;
  table.feeds.clear();
  table.options.clear();
  for (const std::string& option : options) {
    if (const std::string* value = args_.find(option)) table.options[option] = *value;
  }
  return table;
}

void ColumnTableContext::report_table(const ColumnTablePtr& table) const {
  const std::string* path = table_file(args_);
  if (path == nullptr || std::filesystem::exists(*path) || is_written_later(args_, *path)) return;
  args_.report_learned_table({.file = *path,
                              .table = table,
                              .of_training_rows = split_.is_training(),
                              .of_earlier_training = given_ != nullptr});
}

CategoryIds ColumnTableContext::category_ids(const std::string& column,
                                             const ColumnTable& table) const {
  const auto classes = table.classes.find(column);
  if (classes == table.classes.end()) fail_without_column(column);
  return {classes->second, args_.get_flag("unknown", false)};
}

void ColumnTableContext::fail_without_column(const std::string& column) const {
  const std::string* path = table_file(args_);
  if (path != nullptr && std::filesystem::exists(*path)) {
    throw UserError("'" + *path + "' has no column '" + column +
                    "': remove the file to learn it again");
  }
  args_.fail("the training data was not read with column '" + column +
             "' in this way: table=none learns it from this data");
}

std::vector<std::string> categories_of(const std::vector<std::string>& values) {
  const std::set<std::string> distinct(values.begin(), values.end());
  return {distinct.begin(), distinct.end()};
}

}  // namespace fluid
