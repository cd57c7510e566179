#include "codegen/cache_files.h"

#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <system_error>
#include <utility>
#include <vector>

namespace fluid {
namespace {

namespace fs = std::filesystem;

constexpr auto kAbandonedAfter = std::chrono::hours(1);

struct CacheFile {
  fs::path path;
  fs::file_time_type used;
  int64_t bytes;
};

/// Lists the cache entries and the abandoned temporary files in a directory. Skips files that
/// disappear during the listing.
std::vector<CacheFile> entries_of(const fs::path& directory, const CacheFiles& files) {
  const auto abandoned = fs::file_time_type::clock::now() - kAbandonedAfter;
  std::vector<CacheFile> entries;
  std::error_code error;
  for (fs::directory_iterator it(directory, error), end; !error && it != end; it.increment(error)) {
    std::error_code gone;
    const std::string name = it->path().filename().string();
    if (!files.names_entry(name) || !fs::is_regular_file(it->symlink_status(gone)) ||
        !files.is_entry(it->path()))
      continue;
    CacheFile entry{it->path(), fs::last_write_time(it->path(), gone), 0};
    if (gone || (!name.ends_with(files.suffix) && entry.used > abandoned)) continue;
    entry.bytes = static_cast<int64_t>(fs::file_size(it->path(), gone));
    if (!gone) entries.push_back(std::move(entry));
  }
  return entries;
}

/// Returns the total size of the files that are named like entries. Faster than entries_of(),
/// because no file is opened.
int64_t bytes_named_as_entries(const fs::path& directory, const CacheFiles& files) {
  int64_t total = 0;
  std::error_code error;
  for (fs::directory_iterator it(directory, error), end; !error && it != end; it.increment(error)) {
    if (!files.names_entry(it->path().filename().native())) continue;
    struct stat info = {};
    if (lstat(it->path().c_str(), &info) == 0) total += info.st_size;
  }
  return total;
}

}  // namespace

void evict_least_recently_used(const std::string& directory, int64_t limit,
                               const CacheFiles& files) {
  if (bytes_named_as_entries(directory, files) <= limit) return;
  std::vector<CacheFile> entries = entries_of(directory, files);
  int64_t total = 0;
  for (const CacheFile& entry : entries) total += entry.bytes;
  std::ranges::sort(entries, {}, &CacheFile::used);
  for (const CacheFile& entry : entries) {
    if (total <= limit) return;
    std::error_code error;
    fs::remove(entry.path, error);
    total -= entry.bytes;
  }
}

}  // namespace fluid
