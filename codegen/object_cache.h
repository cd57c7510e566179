#pragma once

#include <functional>
#include <optional>
#include <string>

namespace fluid {

/// A disk cache of compiled objects. Any number of threads and processes may share a directory: an
/// entry is written to a temporary file, which is then renamed. An entry contains its key and a
/// checksum. Disk errors never make a compilation fail. If an entry cannot be read, its object is
/// compiled again; if an entry cannot be written, its object is not cached. The directory may hold
/// other files: the cache changes only files that are named like an entry, and "kernels.evicted".
class ObjectCache {
 public:
  /// An empty `directory` disables the cache. `limit` is in bytes.
  ObjectCache(std::string directory, int64_t limit);
  /// Returns the object that is stored under `key`, which is "k" followed by the digits that
  /// hash_digits() returns. Returns nullopt if the entry is missing, is not a regular file, has
  /// another key or is damaged. Removes a damaged entry. Never blocks, even if the entry is a FIFO.
  std::optional<std::string> find(const std::string& key) const;
  void store(const std::string& key, const std::string& object) const;
  /// Removes the least recently used entries until the total size of the entries is within the
  /// limit.
  void evict() const;
  /// Calls evict() unless a process has done so in the last minute: listing a large directory takes
  /// as long as compiling a kernel.
  void evict_if_due() const;

  /// Sets the process-wide error listener. The listener receives one line of text for the first
  /// unusable entry, and one for the first entry that cannot be written. The listener may be called
  /// from any thread.
  static void set_error_listener(std::function<void(const std::string&)> listener);

  /// Returns the cache of compiled kernels in $FLUID_KERNEL_CACHE, or in `directory` if this
  /// variable is empty or not set. If both are empty, the cache is disabled. The variable does not
  /// apply to tuning choices, so it cannot change results.
  static ObjectCache open_kernel_cache(const std::string& directory, int64_t limit);
  /// Returns the directory of open_kernel_cache(); empty if the cache is disabled.
  static std::string kernel_cache_directory(const std::string& directory);

  /// Returns the 128-bit XXH3 hash of `text` as 32 hexadecimal digits.
  static std::string hash_digits(const std::string& text);

 private:
  std::string directory_;
  int64_t limit_;
};

}  // namespace fluid
