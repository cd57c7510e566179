#include "frontend/readers/category_columns.h"

#include <utility>

namespace fluid {

CategoryColumns::CategoryColumns(const ColumnTableContext& context, std::vector<std::string> names)
    : names_(std::move(names)), learns_(context.given() == nullptr) {
  if (learns_ || context.args().bad_records() == BadRecords::stop) return;
  for (const std::string& name : names_) {
    given_ids_.push_back(context.category_ids(name, *context.given()));
  }
}

std::vector<StringTable> CategoryColumns::no_findings() const {
  return std::vector<StringTable>(learns_ ? names_.size() : 0);
}

void CategoryColumns::examine(size_t i, std::string_view value, int64_t sample,
                              std::vector<StringTable>& found,
                              FunctionRef<std::string()> subject) const {
  if (!given_ids_.empty()) given_ids_[i].id_of(value, subject);
  if (!found.empty()) found[i].index_of(value, sample);
}

void CategoryColumns::set_classes(const std::vector<StringTable>& found, ColumnTable& table) const {
  for (size_t i = 0; i < found.size(); ++i)
    table.classes[names_[i]] = categories_of(found[i].texts());
}

}  // namespace fluid
