#include "codegen/object_cache.h"

#include <unistd.h>
#include <xxhash.h>

#include <atomic>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

namespace fluid {
namespace {

namespace fs = std::filesystem;

constexpr char kMagic[8] = {'F', 'L', 'U', 'I', 'D', 'O', 'B', '1'};
constexpr size_t kChecksumBytes = sizeof(uint64_t);
constexpr const char* kSuffix = ".o";

struct Entry {
  fs::path path;
  fs::file_time_type used;
  int64_t bytes;
};

/// The directory's entries; files that vanish meanwhile are left out.
std::vector<Entry> entries_of(const fs::path& directory) {
  std::vector<Entry> entries;
  std::error_code error;
  for (fs::directory_iterator it(directory, error), end; !error && it != end; it.increment(error)) {
    std::error_code gone;
    Entry entry{it->path(), fs::last_write_time(it->path(), gone), 0};
    if (gone) continue;
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
  bool whole = bytes.size() >= kHeader && std::memcmp(bytes.data(), kMagic, sizeof kMagic) == 0;
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
