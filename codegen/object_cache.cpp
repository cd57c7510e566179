#include "codegen/object_cache.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <string_view>
#include <utility>

#include "codegen/cache_files.h"

namespace fluid {
namespace {

namespace fs = std::filesystem;

// An entry holds kMagic, the checksum of all following bytes, the key, a line feed, and the object.
constexpr std::string_view kMagic = "FLUIDOB2";
/// Number of bytes at the end of kMagic that hold the format version. evict() removes entries of
/// every version.
constexpr size_t kVersionBytes = 1;
constexpr size_t kHeader = kMagic.size() + sizeof(uint64_t);
constexpr off_t kMaxEntryBytes = off_t{1} << 30;  ///< maximum size of an entry
constexpr const char* kSuffix = ".o";

/// File whose time of modification is that of the last eviction by evict_if_due().
constexpr const char* kEvictionStamp = "kernels.evicted";
constexpr time_t kEvictionInterval = 60;  ///< seconds

/// Owns a file descriptor: the destructor closes it.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() { close(); }
  Descriptor(const Descriptor&) = delete;
  int get() const { return fd_; }
  /// Closes the file. Returns 0 or an errno value.
  int close() { return fd_ >= 0 && ::close(std::exchange(fd_, -1)) != 0 ? errno : 0; }

 private:
  int fd_;
};

/// Opens the file of an entry for reading. Does not block on a FIFO and does not follow symbolic
/// links.
int open_entry(const fs::path& path) {
  return open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
}

/// Reads the first `bytes` bytes of a file, or the whole file if it is shorter.
std::string beginning_of(int fd, size_t bytes) {
  std::string text(bytes, '\0');
  size_t done = 0;
  while (done < bytes) {
    const ssize_t n = read(fd, text.data() + done, bytes - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    done += static_cast<size_t>(n);
  }
  text.resize(done);
  return text;
}

/// Writes all of `bytes`. Returns 0 or an errno value.
int write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno;
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return 0;
}

uint64_t checksum_of(std::string_view bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }

/// Returns the content that follows the header of an entry, or nullopt if the entry is damaged or
/// has another format version.
std::optional<std::string_view> content_of(std::string_view bytes) {
  if (bytes.size() < kHeader || !bytes.starts_with(kMagic)) return std::nullopt;
  uint64_t checksum = 0;
  std::memcpy(&checksum, bytes.data() + kMagic.size(), sizeof checksum);
  bytes.remove_prefix(kHeader);
  if (checksum_of(bytes) != checksum) return std::nullopt;
  return bytes;
}

/// The process-wide listener for cache errors, and one flag per kind of error. A flag is set when
/// an error of its kind occurs, so that later errors of this kind are not reported.
struct CacheErrors {
  std::mutex mutex;
  std::function<void(const std::string&)> listener;
  bool notified_of_entry = false, notified_of_write = false;
};
CacheErrors& cache_errors() {
  static CacheErrors all;
  return all;
}

void notify_once(bool CacheErrors::*notified, const std::string& what) {
  const std::scoped_lock lock(cache_errors().mutex);
  if (std::exchange(cache_errors().*notified, true) || !cache_errors().listener) return;
  cache_errors().listener(what);
}

void report_entry(const fs::path& path, const std::string& why) {
  notify_once(&CacheErrors::notified_of_entry,
              "cache entry '" + path.string() + "' is not used: " + why);
}

void report_write(const std::string& directory, int error) {
  notify_once(&CacheErrors::notified_of_write,
              "compiled kernels are not kept: cannot write into '" + directory +
                  "': " + std::strerror(error));
}

/// Whether `name` is the file name of an entry, k<32 hexadecimal digits>.o, or of a temporary file
/// that becomes an entry when renamed.
bool names_entry(std::string_view name) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  constexpr size_t kKeyEnd = 33;
  return name.starts_with('k') && name.find_first_not_of(kDigits, 1) == kKeyEnd &&
         name.substr(kKeyEnd).starts_with(kSuffix) &&
         (name.ends_with(kSuffix) || name.ends_with(".tmp"));
}

/// Whether the file has the name and the first bytes of a cache entry. The directory may contain
/// other files, because the user chooses the directory.
bool is_entry(const fs::path& path) {
  if (!names_entry(path.filename().string())) return false;
  const Descriptor file(open_entry(path));
  constexpr std::string_view kAnyVersion = kMagic.substr(0, kMagic.size() - kVersionBytes);
  return file.get() >= 0 && beginning_of(file.get(), kAnyVersion.size()) == kAnyVersion;
}

constexpr CacheFiles kObjectFiles = {kSuffix, names_entry, is_entry};

}  // namespace

std::string ObjectCache::kernel_cache_directory(const std::string& directory) {
  const char* shared = std::getenv("FLUID_KERNEL_CACHE");
  return shared != nullptr && *shared != '\0' ? shared : directory;
}

ObjectCache ObjectCache::open_kernel_cache(const std::string& directory, int64_t limit) {
  return {kernel_cache_directory(directory), limit};
}

ObjectCache::ObjectCache(std::string directory, int64_t limit)
    : directory_(std::move(directory)), limit_(limit) {
  if (directory_.empty()) return;
  std::error_code found_by_store;
  fs::create_directories(directory_, found_by_store);
}

void ObjectCache::set_error_listener(std::function<void(const std::string&)> listener) {
  const std::scoped_lock lock(cache_errors().mutex);
  cache_errors().listener = std::move(listener);
  cache_errors().notified_of_entry = cache_errors().notified_of_write = false;
}

std::string ObjectCache::hash_digits(const std::string& text) {
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
  const Descriptor file(open_entry(path));
  if (file.get() < 0) {
    const int error = errno;
    const bool absent =
        error == ENOENT || error == ENOTDIR || access(directory_.c_str(), X_OK) != 0;
    if (!absent) report_entry(path, error == ELOOP ? "it is a link" : std::strerror(error));
    return std::nullopt;
  }
  struct stat info = {};
  if (fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode) || info.st_size > kMaxEntryBytes) {
    report_entry(path, "a cache did not write it");
    return std::nullopt;
  }
  const std::string bytes = beginning_of(file.get(), static_cast<size_t>(info.st_size));
  const std::optional<std::string_view> content = content_of(bytes);
  if (!content) {
    std::error_code ignored;
    fs::remove(path, ignored);
    return std::nullopt;
  }
  if (!content->starts_with(key + "\n")) {
    report_entry(path, "it holds another entry");
    return std::nullopt;
  }
  // Updates the time of last use, by which evict() orders entries.
  futimens(file.get(), nullptr);
  return std::string(content->substr(key.size() + 1));
}

void ObjectCache::store(const std::string& key, const std::string& object) const {
  if (directory_.empty()) return;
  static std::atomic<int> serial = 0;
  const std::string path = (fs::path(directory_) / (key + kSuffix)).string();
  const std::string temporary =
      path + "." + std::to_string(getpid()) + "." + std::to_string(serial++) + ".tmp";
  const std::string content = key + "\n" + object;
  const uint64_t checksum = checksum_of(content);
  const std::string_view header(reinterpret_cast<const char*>(&checksum), sizeof checksum);
  Descriptor file(
      open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0666));
  int error = file.get() < 0 ? errno : 0;
  for (const std::string_view part : {kMagic, header, std::string_view(content)}) {
    if (error == 0) error = write_all(file.get(), part);
  }
  if (const int closing = file.close(); error == 0) error = closing;
  if (error == 0 && ::rename(temporary.c_str(), path.c_str()) != 0) error = errno;
  if (error == 0) return;
  unlink(temporary.c_str());
  // EISDIR: a directory has the file name of the entry. find() has already reported this error.
  const bool reported_by_find = error == EISDIR;
  if (!reported_by_find) report_write(directory_, error);
}

void ObjectCache::evict_if_due() const {
  if (directory_.empty()) return;
  const fs::path path = fs::path(directory_) / kEvictionStamp;
  const Descriptor stamp(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  struct stat info = {};
  if (stamp.get() < 0 && lstat(path.c_str(), &info) == 0) {
    const time_t age = time(nullptr) - info.st_mtime;
    if (age >= 0 && age < kEvictionInterval) return;
    utimensat(AT_FDCWD, path.c_str(), nullptr, AT_SYMLINK_NOFOLLOW);
  }
  evict();
}

void ObjectCache::evict() const {
  if (!directory_.empty()) evict_least_recently_used(directory_, limit_, kObjectFiles);
}

}  // namespace fluid
