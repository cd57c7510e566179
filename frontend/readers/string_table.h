#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace fluid {

/// Hash of a std::unordered_map with keys of std::string that is searched by std::string_view.
struct StringHash {
  using is_transparent = void;
  size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
};
template <class Value>
using StringMap = std::unordered_map<std::string, Value, StringHash, std::equal_to<>>;

/// The distinct texts of a column, in order of first occurrence.
class StringTable {
 public:
  /// Returns the index of `text`. Adds the text if it is new. `record`: record that holds it.
  int32_t index_of(std::string_view text, int64_t record);
  /// Adds the texts of `other`, whose records come after those of this table. Returns their indices
  /// in this table.
  std::vector<int32_t> add(const StringTable& other);
  const std::vector<std::string>& texts() const { return texts_; }
  int64_t first_record(size_t index) const { return records_.at(index); }

 private:
  StringMap<int32_t> indices_;
  std::vector<std::string> texts_;
  std::vector<int64_t> records_;  ///< record where each text occurs first
};

}  // namespace fluid
