#include "codegen/object_cache.h"

#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string_view>
#include <vector>

namespace fluid {
namespace {

namespace fs = std::filesystem;

constexpr char kMagic[8] = {'F', 'L', 'U', 'I', 'D', 'O', 'B', '1'};
constexpr size_t kChecksumBytes = sizeof(uint64_t);
constexpr const char* kSuffix = ".o";

constexpr auto kAbandonedAfter = std::chrono::hours(1);

struct Entry {
  fs::path path;
  fs::file_time_type used;
  int64_t bytes;
};

bool has_magic(const std::string& bytes) {
  return bytes.starts_with(std::string_view(kMagic, sizeof kMagic));
}

/// Whether a name is that of an entry, k<32 hexadecimal digits>.o, or of a temporary file of one.
bool names_entry(std::string_view name) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  constexpr size_t kKeyEnd = 33;
  return name.starts_with('k') && name.find_first_not_of(kDigits, 1) == kKeyEnd &&
         name.substr(kKeyEnd).starts_with(kSuffix) &&
         (name.ends_with(kSuffix) || name.ends_with(".tmp"));
}

/// Whether the file's name and first bytes say that a cache wrote it. The directory is the user's
/// choice and may hold anything else.
bool is_entry(const fs::path& path) {
  if (!names_entry(path.filename().string())) return false;
  std::string start(sizeof kMagic, '\0');
  std::ifstream(path, std::ios::binary).read(start.data(), sizeof kMagic);
  return has_magic(start);
}

/// The directory's entries, and what writers that died left; files that vanish meanwhile are left
/// out.
std::vector<Entry> entries_of(const fs::path& directory) {
  const auto abandoned = fs::file_time_type::clock::now() - kAbandonedAfter;
  std::vector<Entry> entries;
  std::error_code error;
  for (fs::directory_iterator it(directory, error), end; !error && it != end; it.increment(error)) {
    if (!is_entry(it->path())) continue;
    std::error_code gone;
    Entry entry{it->path(), fs::last_write_time(it->path(), gone), 0};
    if (gone || (it->path().extension() != kSuffix && entry.used > abandoned)) continue;
    entry.bytes = static_cast<int64_t>(fs::file_size(it->path(), gone));
    if (!gone) entries.push_back(std::move(entry));
  }
  return entries;
}

}  // namespace

ObjectCache::ObjectCache(std::string directory, int64_t limit)
    : directory_(std::move(directory)), limit_(limit) {
  if (directory_.empty()) return;
  std::error_code error;
  fs::create_directories(directory_, error);
  if (error) directory_.clear();
}

std::string ObjectCache::refusal(const std::string& directory) {
  std::error_code error;
  fs::create_directories(directory, error);
  if (!error && access(directory.c_str(), W_OK | X_OK) != 0) {
    error = std::error_code(errno, std::generic_category());
  }
  return error ? error.message() : "";
}

std::string ObjectCache::key_of(const std::string& text) {
  const XXH128_hash_t hash = XXH3_128bits(text.data(), text.size());
  constexpr char kDigits[] = "0123456789abcdef";
  std::string key;
  for (uint64_t word : {hash.high64, hash.low64}) {
    for (int shift = 60; shift >= 0; shift -= 4) key += kDigits[word >> shift & 15];
  }
  return key;
}

std::optional<std::string> ObjectCache::find(const std::string& key) const {
  if (directory_.empty()) return std::nullopt;
  const fs::path path = fs::path(directory_) / (key + kSuffix);
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  std::string bytes(std::istreambuf_iterator<char>(file), {});
  constexpr size_t kHeader = sizeof kMagic + kChecksumBytes;
  bool whole = bytes.size() >= kHeader && has_magic(bytes);
  if (whole) {
    uint64_t checksum = 0;
    std::memcpy(&checksum, bytes.data() + sizeof kMagic, kChecksumBytes);
    whole = XXH3_64bits(bytes.data() + kHeader, bytes.size() - kHeader) == checksum;
  }
  std::error_code error;
  if (!whole) {
    fs::remove(path, error);
    return std::nullopt;
  }
  fs::last_write_time(path, fs::file_time_type::clock::now(), error);
  return bytes.substr(kHeader);
}

void ObjectCache::put(const std::string& key, const std::string& object) const {
  if (directory_.empty()) return;
  static std::atomic<int> serial = 0;
  const fs::path path = fs::path(directory_) / (key + kSuffix);
  const fs::path temporary =
      path.string() + "." + std::to_string(getpid()) + "." + std::to_string(serial++) + ".tmp";
  const uint64_t checksum = XXH3_64bits(object.data(), object.size());
  std::ofstream file(temporary, std::ios::binary);
  file.write(kMagic, sizeof kMagic);
  file.write(reinterpret_cast<const char*>(&checksum), kChecksumBytes);
  file.write(object.data(), static_cast<std::streamsize>(object.size()));
  file.close();
  std::error_code error;
  if (file) fs::rename(temporary, path, error);
  if (!file || error) fs::remove(temporary, error);
}

void ObjectCache::evict() const {
  if (directory_.empty()) return;
  std::vector<Entry> entries = entries_of(directory_);
  int64_t total = 0;
  for (const Entry& entry : entries) total += entry.bytes;
  if (total <= limit_) return;
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return a.used < b.used; });
  for (const Entry& entry : entries) {
    if (total <= limit_) return;
    std::error_code error;
    fs::remove(entry.path, error);
    total -= entry.bytes;
  }
}

}  // namespace fluid
