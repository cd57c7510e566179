#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace fluid {

/// The files of one cache in a directory. The user chooses the directory, so it may contain other
/// files.
struct CacheFiles {
  std::string_view suffix;  ///< end of an entry's file name
  /// Whether the name is that of an entry, or of a temporary file that becomes an entry when
  /// renamed.
  bool (*names_entry)(std::string_view name);
  bool (*is_entry)(const std::filesystem::path& path);  ///< checks the name and the content
};

/// Removes the least recently used entries, by time of modification, until their total size is at
/// most `limit` bytes. Temporary files count an hour after they were written last: their writer has
/// died.
void evict_least_recently_used(const std::string& directory, int64_t limit,
                               const CacheFiles& files);

}  // namespace fluid
