#include "frontend/readers/string_table.h"

namespace fluid {

int32_t StringTable::index_of(std::string_view text, int64_t record) {
  if (const auto found = indices_.find(text); found != indices_.end()) return found->second;
  const auto index = static_cast<int32_t>(texts_.size());
  indices_.emplace(text, index);
  texts_.emplace_back(text);
  records_.push_back(record);
  return index;
}

std::vector<int32_t> StringTable::add(const StringTable& other) {
  std::vector<int32_t> indices;
  for (size_t i = 0; i < other.texts_.size(); ++i) {
    indices.push_back(index_of(other.texts_[i], other.records_[i]));
  }
  return indices;
}

}  // namespace fluid
